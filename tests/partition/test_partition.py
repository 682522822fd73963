"""One replica: who may append, what readers see, who is told."""

from random import Random
from uuid import UUID

import pytest

from cordwood.config import TopicConfig
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.recovery import open_log
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
from cordwood.record.build import build_values
from cordwood.sim.disk import SimDisk

NOW = Instant(1000, 1000)
ONE, TWO = NodeId(1), NodeId(2)


class Counter:
    """A watcher that adds up what it is told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def advanced(self, size: int, /) -> None:
        self.told.append(size)


def replica(**config: str) -> Partition:
    settings = TopicConfig.parse({name.replace("_", "."): text for name, text in config.items()})
    log = open_log(SimDisk(Random(1)), "t-0", settings, now=NOW)
    partition = Partition(TopicPartition(TopicName("t"), 0), TopicId(UUID(int=1)), log, ONE)
    partition.become(leader=ONE, epoch=4, isr=(ONE,))
    return partition


def append(partition: Partition, *values: bytes, acks: int = -1) -> int:
    data = memoryview(build_values(values or (b"x",)))
    offset = partition.append(data, required_acks=acks, now=NOW).first_offset
    partition.check()
    return offset


def test_what_is_appended_is_committed_at_once() -> None:
    partition = replica()
    assert append(partition, b"a", b"b") == 0
    assert partition.high_watermark == 2
    assert partition.readable_end(0) == partition.readable_end(1) == 2
    assert partition.log.latest_epoch == 4


def test_a_synced_partition_commits_when_it_is_told_to() -> None:
    partition = replica(flush_messages="1")
    append(partition, b"a", b"b")
    assert partition.high_watermark == 0
    assert partition.sync_due()
    job = partition.log.files_to_sync()
    partition.log.synced(job, NOW)
    partition.commit(job.up_to)
    assert partition.high_watermark == 2
    assert not partition.sync_due()


def test_watchers_are_told_how_much_came() -> None:
    partition = replica()
    watcher = Counter()
    partition.watchers[watcher] = None
    append(partition)
    append(partition)
    size = partition.log.size // 2
    partition.changed()
    assert watcher.told == [size, size, 0]


def test_watchers_of_a_synced_partition_are_told_of_all_at_once() -> None:
    partition = replica(flush_messages="1")
    watcher = Counter()
    partition.watchers[watcher] = None
    append(partition)
    append(partition)
    assert watcher.told == []
    partition.commit(2)
    assert watcher.told == [partition.log.size]


def test_a_watcher_may_stop_watching_when_it_is_told() -> None:
    partition = replica()

    class Once(Counter):
        def advanced(self, size: int, /) -> None:
            super().advanced(size)
            del partition.watchers[self]

    watchers = [Once(), Once()]
    partition.watchers = dict.fromkeys(watchers)
    append(partition)
    append(partition)
    assert [len(watcher.told) for watcher in watchers] == [1, 1]


def test_a_new_replica_begins_where_its_log_ends() -> None:
    partition = replica()
    append(partition)
    again = Partition(partition.name, partition.topic_id, partition.log, ONE)
    assert again.high_watermark == 1


def test_only_the_leader_appends() -> None:
    partition = replica()
    partition.become(leader=TWO, epoch=5, isr=(ONE, TWO))
    with pytest.raises(Refused) as refusal:
        append(partition)
    assert refusal.value.error == Error.NOT_LEADER_OR_FOLLOWER


def test_acks_all_needs_enough_replicas() -> None:
    partition = replica(min_insync_replicas="2")
    append(partition, acks=-1)  # more than there are nobody can want
    partition.become(leader=ONE, epoch=4, isr=(ONE,), replicas=(ONE, TWO))
    with pytest.raises(Refused) as refusal:
        append(partition, acks=-1)
    assert refusal.value.error == Error.NOT_ENOUGH_REPLICAS
    append(partition, acks=1)
    partition.become(leader=ONE, epoch=5, isr=(ONE, TWO))
    append(partition, acks=-1)


@pytest.mark.parametrize(
    ("claimed", "error"),
    [(-1, None), (4, None), (3, Error.FENCED_LEADER_EPOCH), (5, Error.UNKNOWN_LEADER_EPOCH)],
)
def test_a_claimed_epoch_must_be_the_leaders(claimed: int, error: Error | None) -> None:
    partition = replica()
    if error is None:
        partition.check_leader(claimed)
        return
    with pytest.raises(Refused) as refusal:
        partition.check_leader(claimed)
    assert refusal.value.error == error


def test_a_follower_is_not_the_leader_whatever_is_claimed() -> None:
    partition = replica()
    partition.become(leader=TWO, epoch=4, isr=(ONE, TWO))
    with pytest.raises(Refused) as refusal:
        partition.check_leader(4)
    assert refusal.value.error == Error.NOT_LEADER_OR_FOLLOWER


def test_internal_topics_are_known_by_name() -> None:
    partition = replica()
    assert not partition.internal
    name = TopicPartition(TopicName("__consumer_offsets"), 0)
    assert Partition(name, partition.topic_id, partition.log, ONE).internal


@pytest.mark.parametrize("high_watermark", [-1, 3])
def test_check_sees_a_high_watermark_outside_the_log(high_watermark: int) -> None:
    partition = replica()
    append(partition)
    partition.high_watermark = high_watermark
    with pytest.raises(AssertionError):
        partition.check()


def test_what_the_broker_itself_appends_is_committed_like_the_rest() -> None:
    partition = replica()
    append(partition, b"a")
    assert partition.append_own(memoryview(build_values([b"b", b"c"])), NOW).first_offset == 1
    partition.check()
    assert partition.high_watermark == 3


def test_the_broker_itself_is_refused_what_it_may_not_append() -> None:
    partition = replica(max_message_bytes="100", min_insync_replicas="1")
    with pytest.raises(Refused) as refusal:
        partition.append_own(memoryview(build_values([b"x" * 200])), NOW)
    assert refusal.value.error is Error.MESSAGE_TOO_LARGE
    partition.become(leader=TWO, epoch=5, isr=(TWO,))
    with pytest.raises(Refused) as refusal:
        partition.append_own(memoryview(build_values([b"x"])), NOW)
    assert refusal.value.error is Error.NOT_LEADER_OR_FOLLOWER
    partition.become(leader=ONE, epoch=6, isr=())
    with pytest.raises(Refused) as refusal:
        partition.append_own(memoryview(build_values([b"x"])), NOW)
    assert refusal.value.error is Error.NOT_ENOUGH_REPLICAS
    assert partition.log.end_offset == 0
