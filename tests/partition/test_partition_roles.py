"""Leading and following, one rule at a time: who counts, who may join, what is committed, where logs are cut."""

from random import Random
from uuid import UUID

import pytest

from cordwood.cluster.image import NO_LEADER
from cordwood.config import TopicConfig
from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.epochs import EpochEnd
from cordwood.log.log import Log
from cordwood.log.recovery import open_log
from cordwood.partition.follower import NEVER_MS, Follower
from cordwood.partition.partition import Partition
from cordwood.partition.truncation import divergence, truncation_offset
from cordwood.ports import Instant
from cordwood.record.batch import stamp
from cordwood.record.build import build_values
from cordwood.sim.disk import SimDisk

NOW = Instant(1000, 1000)
ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ALL = (ONE, TWO, THREE)


class Waiting:
    """Somebody who waits for a commit."""

    def __init__(self) -> None:
        self.done = False
        self.told: list[Error] = []

    def settled(self, error: Error, /) -> None:
        self.told.append(error)


class Counter:
    def __init__(self) -> None:
        self.told: list[int] = []

    def advanced(self, size: int, /) -> None:
        self.told.append(size)

    def appended(self, size: int, /) -> None:
        self.told.append(-size)


def replica(
    node: NodeId = ONE, *, high_watermark: int | None = None, config: dict[str, str] | None = None
) -> Partition:
    settings = TopicConfig.parse({name.replace("_", "."): text for name, text in (config or {}).items()})
    log = open_log(SimDisk(Random(1)), "t-0", settings, now=NOW)
    return Partition(TopicPartition(TopicName("t"), 0), TopicId(UUID(int=1)), log, node, high_watermark=high_watermark)


def leader(isr: tuple[NodeId, ...] = ALL, *, epoch: int = 3, version: int = 0, **config: str) -> Partition:
    partition = replica(config=config)
    lead(partition, isr, epoch=epoch, version=version)
    return partition


def lead(partition: Partition, isr: tuple[NodeId, ...], *, epoch: int = 3, version: int = 0, by: NodeId = ONE) -> bool:
    return partition.become(leader=by, epoch=epoch, isr=isr, replicas=ALL, version=version, now_ms=NOW.mono_ms)


def append(partition: Partition, count: int = 1, *, acks: int = -1, now_ms: int = NOW.mono_ms) -> None:
    data = memoryview(build_values([b"x"] * count))
    partition.append(data, required_acks=acks, now=Instant(NOW.wall_ms, now_ms))
    partition.check()


def fetched(
    partition: Partition, node: NodeId, offset: int, *, eligible: bool = True, now_ms: int = NOW.mono_ms, start: int = 0
) -> bool:
    joins = partition.fetched_by(node, offset, start, epoch=1, eligible=eligible, now_ms=now_ms)
    partition.check()
    return joins


def sent(base_offset: int, count: int, epoch: int) -> bytearray:
    """A batch as a leader sends it."""
    data = build_values([b"x"] * count)
    stamp(data, base_offset, epoch)
    return data


def history(*spans: tuple[int, int]) -> Log:
    """A log with so many records of each of these epochs, in batches of one."""
    partition = replica()
    for epoch, count in spans:
        for _ in range(count):
            partition.log.append_as_follower(memoryview(sent(partition.log.end_offset, 1, epoch)), now=NOW)
    return partition.log


# ---------------------------------------------------------------------- committed


def test_nothing_is_committed_before_all_in_sync_have_it() -> None:
    partition = leader()
    append(partition, 5)
    fetched(partition, TWO, 4)
    assert partition.high_watermark == 0
    fetched(partition, THREE, 2)
    assert partition.high_watermark == 2
    fetched(partition, THREE, 5)
    assert partition.high_watermark == 4


def test_whoever_is_not_in_sync_is_not_waited_for() -> None:
    partition = leader((ONE, TWO))
    append(partition, 5)
    fetched(partition, TWO, 5)
    assert partition.high_watermark == 5


def test_a_leader_by_itself_commits_at_once() -> None:
    partition = leader((ONE,))
    append(partition)
    assert partition.high_watermark == 1


def test_the_high_watermark_never_goes_back() -> None:
    partition = leader((ONE,))
    append(partition, 5)
    lead(partition, ALL, epoch=4, version=1)
    fetched(partition, TWO, 3)
    fetched(partition, THREE, 1)
    assert partition.high_watermark == 5


def test_a_confirmed_loss_of_a_replica_commits_what_the_others_have() -> None:
    partition = leader()
    append(partition, 5)
    fetched(partition, TWO, 5)
    partition.proposing = True  # a proposal does nothing by itself
    partition.advance(NOW.mono_ms)
    assert partition.high_watermark == 0
    lead(partition, (ONE, TWO), version=1)
    assert partition.high_watermark == 5


def test_who_is_proposed_counts_at_once_and_until_it_is_settled() -> None:
    partition = leader((ONE, TWO))
    assert fetched(partition, THREE, 0)
    partition.proposing = True
    append(partition, 2)
    fetched(partition, TWO, 2)
    assert partition.high_watermark == 0, "the third may be in sync by now"
    lead(partition, (ONE, TWO))
    assert partition.high_watermark == 0, "the same version says nothing of what was proposed"
    lead(partition, (ONE, TWO), version=1)
    assert partition.followers[THREE].joining is False
    partition.followers[THREE].eligible = False
    partition.advance(NOW.mono_ms)
    assert partition.high_watermark == 2


@pytest.mark.parametrize(
    ("eligible", "waited_ms", "high_watermark"),
    [(True, 0, 2), (True, 30_000, 2), (True, 30_001, 5), (False, 0, 5)],
)
def test_a_follower_about_to_come_in_is_waited_for(eligible: bool, waited_ms: int, high_watermark: int) -> None:
    """Or the leader would always be ahead of it, and it would never have what is committed."""
    partition = leader((ONE, TWO))
    partition.proposing = True
    fetched(partition, THREE, 0, eligible=eligible)
    append(partition, 2)
    fetched(partition, THREE, 2, eligible=eligible)
    fetched(partition, TWO, 2)
    later = NOW.mono_ms + waited_ms
    append(partition, 3, now_ms=later)
    fetched(partition, TWO, 5, now_ms=later)
    assert partition.high_watermark == high_watermark


def test_too_few_in_sync_commit_nothing() -> None:
    partition = leader((ONE, TWO), min_insync_replicas="2")
    waiting = Waiting()
    append(partition, 2)
    partition.wait_for(2, waiting)
    lead(partition, (ONE,), version=1)
    assert waiting.told == [Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    append(partition, 1, acks=1)
    assert partition.high_watermark == 0
    with pytest.raises(Refused, match="NOT_ENOUGH_REPLICAS"):
        append(partition, acks=-1)
    lead(partition, (ONE, TWO), version=2)
    fetched(partition, TWO, 3)
    assert partition.high_watermark == 3


def test_a_leader_that_must_sync_counts_what_is_synced() -> None:
    partition = leader((ONE, TWO), flush_messages="2")
    append(partition)
    fetched(partition, TWO, 1)
    assert partition.high_watermark == 1, "one record does not ask for a sync"
    append(partition, 2)
    fetched(partition, TWO, 3)
    assert partition.high_watermark == 1
    job = partition.log.files_to_sync()
    partition.log.synced(job, NOW)
    partition.advance(NOW.mono_ms)
    assert partition.high_watermark == 3


def test_readers_are_told_how_much_came_as_well_as_anybody_knows() -> None:
    partition = leader((ONE, TWO))
    reader, follower = Counter(), Counter()
    partition.watchers[reader] = None
    partition.end_watchers[follower] = None
    for _ in range(4):
        append(partition)
    size = partition.log.size // 4
    assert follower.told == [-size] * 4
    for offset in (1, 3, 4):
        fetched(partition, TWO, offset)
    assert reader.told == [size, 2 * size, size]


# ---------------------------------------------------------------------- joining and lagging


def test_a_follower_must_have_what_is_committed_to_join() -> None:
    partition = leader((ONE,))
    append(partition, 5)
    assert not fetched(partition, TWO, 4)
    assert fetched(partition, TWO, 5)


def test_a_follower_must_have_what_earlier_leaders_left_to_join() -> None:
    """Some of it may have been committed, though this leader does not know it yet."""
    partition = replica(high_watermark=0)
    partition.append_as_follower(memoryview(sent(0, 5, 2)), NOW)
    lead(partition, (ONE, TWO))
    assert (partition.high_watermark, partition.epoch_start) == (0, 5)
    assert not fetched(partition, THREE, 4)
    assert fetched(partition, THREE, 5)


@pytest.mark.parametrize("why", ["not eligible", "proposing", "fenced", "in sync already"])
def test_who_may_not_join(why: str) -> None:
    partition = leader(ALL if why == "in sync already" else (ONE,))
    partition.proposing = why == "proposing"
    partition.fence(why == "fenced")
    assert not fetched(partition, TWO, 0, eligible=why != "not eligible")
    assert not partition.let_in(NOW.mono_ms)


def test_who_could_not_join_when_it_fetched_is_let_in_later() -> None:
    partition = leader((ONE,))
    fetched(partition, TWO, 0, eligible=False)
    partition.followers[TWO].eligible = True
    assert partition.let_in(NOW.mono_ms)
    assert partition.followers[TWO].joining


def test_who_was_taken_out_for_its_lag_must_fetch_to_come_in_again() -> None:
    partition = leader((ONE, TWO), min_insync_replicas="2")
    fetched(partition, TWO, 0)
    append(partition, acks=1)
    late = NOW.mono_ms + 30_001
    assert partition.lagging(late) == [TWO]
    lead(partition, (ONE,), version=1)
    assert not partition.let_in(late)
    assert fetched(partition, TWO, 0, now_ms=late), "though it is not at the end yet"
    assert partition.lagging(late + 30_000) == [], "it has some time to get there"
    assert partition.lagging(late + 30_001) == [TWO]


def test_where_nothing_happens_nobody_lags() -> None:
    partition = leader()
    append(partition)
    fetched(partition, TWO, 1)
    assert partition.lagging(NOW.mono_ms + 100_000) == [THREE]
    append(partition, now_ms=NOW.mono_ms + 100_001)
    assert partition.lagging(NOW.mono_ms + 130_000) == [THREE]
    assert partition.lagging(NOW.mono_ms + 130_001) == [TWO, THREE]


def test_a_follower_that_always_asks_for_what_came_since_is_caught_up() -> None:
    follower = Follower(TWO)
    for moment in range(10):
        follower.fetched(moment * 10, 0, epoch=1, leader_end=moment * 10 + 10, now_ms=moment * 1000)
    assert follower.caught_up_ms == 8000
    follower.fetched(95, 0, epoch=1, leader_end=200, now_ms=10_000)
    assert follower.caught_up_ms == 8000, "it did not get all that there was at the fetch before"
    follower.fetched(200, 0, epoch=1, leader_end=200, now_ms=11_000)
    assert follower.caught_up_ms == 11_000


def test_in_a_new_epoch_those_in_sync_have_time_to_fetch_and_others_none() -> None:
    partition = leader((ONE, TWO))
    assert partition.followers[TWO].caught_up_ms == NOW.mono_ms
    assert partition.followers[THREE].caught_up_ms == NEVER_MS


def test_what_followers_had_before_an_epoch_of_somebody_else_does_not_count() -> None:
    """Broker 2 may have cut its log while broker 3 led, of which this one never heard."""
    partition = leader(epoch=3)
    append(partition, 2)
    fetched(partition, TWO, 2)
    waiting = Waiting()
    partition.wait_for(2, waiting)
    lead(partition, (ONE, TWO), epoch=5, version=2)
    assert (partition.high_watermark, waiting.told) == (0, [])
    fetched(partition, TWO, 2)
    assert (partition.high_watermark, waiting.told) == (2, [Error.NONE])


def test_what_followers_have_counts_on_when_their_leader_is_elected_again() -> None:
    partition = leader(epoch=3)
    append(partition, 2)
    fetched(partition, TWO, 2)
    lead(partition, (ONE, TWO), epoch=4, version=1)
    assert partition.high_watermark == 2


def test_what_a_former_life_of_a_follower_says_late_does_not_count() -> None:
    partition = leader()
    append(partition, 2)
    partition.fetched_by(TWO, 1, 0, epoch=7, eligible=True, now_ms=NOW.mono_ms)
    assert not partition.fetched_by(TWO, 2, 0, epoch=5, eligible=False, now_ms=NOW.mono_ms)
    follower = partition.followers[TWO]
    assert (follower.end_offset, follower.epoch, follower.eligible) == (1, 7, True)


def test_another_life_of_a_follower_has_nothing() -> None:
    partition = leader()
    append(partition, 2)
    fetched(partition, TWO, 2)
    partition.followers[TWO].forget()
    fetched(partition, THREE, 2)
    assert partition.high_watermark == 0
    fetched(partition, TWO, 2)
    assert partition.high_watermark == 2


def test_the_low_watermark_is_the_smallest_start_of_the_living() -> None:
    partition = leader()
    append(partition, 5)
    for node in (TWO, THREE):
        fetched(partition, node, 5)
    partition.log.advance_start(3, high_watermark=5)
    fetched(partition, TWO, 5, start=3)
    assert partition.low_watermark({ONE, TWO, THREE}) == 0
    assert partition.low_watermark({ONE, TWO}) == 3


# ---------------------------------------------------------------------- roles


def test_a_state_of_an_older_epoch_is_ignored() -> None:
    partition = leader(epoch=3)
    assert not lead(partition, (TWO,), epoch=2, version=9, by=TWO)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (ONE, 3, ALL)
    assert lead(partition, (TWO,), epoch=4, version=10, by=TWO)
    assert not partition.leading
    assert partition.followers == {}


def test_a_leadership_of_a_former_life_does_not_count() -> None:
    partition = replica()
    partition.former_epoch = 3
    lead(partition, ALL, epoch=3)
    assert (partition.leader, partition.leading) == (NO_LEADER, False)
    lead(partition, ALL, epoch=3, version=1)
    assert not partition.leading
    lead(partition, ALL, epoch=4, version=2)
    assert partition.leading


def test_whoever_waits_is_told_when_the_role_changes() -> None:
    for change, error in (
        (lambda partition: lead(partition, ALL, epoch=4, by=TWO), Error.NOT_LEADER_OR_FOLLOWER),
        (lambda partition: partition.fence(True), Error.NOT_LEADER_OR_FOLLOWER),
        (lambda partition: partition.leave(Error.UNKNOWN_TOPIC_OR_PARTITION), Error.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        partition, waiting = leader(), Waiting()
        append(partition)
        partition.wait_for(1, waiting)
        change(partition)
        assert waiting.told == [error]
        with pytest.raises(Refused, match="NOT_LEADER_OR_FOLLOWER"):
            append(partition)


def test_whoever_waits_goes_on_waiting_when_its_leader_is_elected_again() -> None:
    partition, waiting = leader(), Waiting()
    append(partition)
    partition.wait_for(1, waiting)
    lead(partition, (ONE,), epoch=4, version=1)
    assert waiting.told == [Error.NONE]


def test_a_fenced_broker_reads_and_does_not_lead() -> None:
    partition = leader()
    partition.fence(True)
    partition.check_reader(3)
    with pytest.raises(Refused, match="NOT_LEADER_OR_FOLLOWER"):
        partition.check_leader()
    lead(partition, ALL, epoch=5)
    assert not partition.leading, "a new epoch does not end it"
    partition.fence(False)
    assert partition.leading


def test_those_who_wait_are_told_in_order_and_the_repeated_with_the_last() -> None:
    partition = leader((ONE, TWO))
    first, second, again, gone = Waiting(), Waiting(), Waiting(), Waiting()
    append(partition)
    partition.wait_for(1, gone)
    partition.wait_for(1, first)
    append(partition)
    partition.wait_for(2, second)
    partition.wait_for(1, again)
    gone.done = True
    partition.drop_done()
    fetched(partition, TWO, 1)
    assert (gone.told, first.told, second.told, again.told) == ([], [Error.NONE], [], [])
    fetched(partition, TWO, 2)
    assert (second.told, again.told) == ([Error.NONE], [Error.NONE])


# ---------------------------------------------------------------------- following


def follower(end: int = 0, high_watermark: int = 0) -> Partition:
    partition = replica(TWO, high_watermark=high_watermark)
    lead(partition, ALL)
    if end:
        partition.append_as_follower(memoryview(sent(0, end, 2)), NOW)
    return partition


def test_a_follower_has_its_leaders_high_watermark_as_far_as_its_log_reaches() -> None:
    partition = follower(5)
    for leaders, own in ((3, 3), (2, 3), (9, 5)):
        partition.follow(leaders)
        partition.check()
        assert partition.high_watermark == own


@pytest.mark.parametrize(("checkpoint", "high_watermark"), [(0, 2), (3, 3), (9, 5)])
def test_a_replica_begins_with_what_is_written_down_if_that_can_be(checkpoint: int, high_watermark: int) -> None:
    log = replica().log
    log.append_as_follower(memoryview(sent(0, 5, 0)), now=NOW)
    log.advance_start(2, high_watermark=5)
    name = TopicPartition(TopicName("t"), 0)
    partition = Partition(name, TopicId(UUID(int=1)), log, ONE, high_watermark=checkpoint)
    partition.check()
    assert partition.high_watermark == high_watermark


def test_a_log_that_begins_inside_of_a_batch_can_be_followed() -> None:
    partition = follower()
    partition.restart_at(12, NOW)
    partition.append_as_follower(memoryview(sent(10, 5, 2)), NOW)
    partition.follow(15)
    partition.check()
    assert (partition.log.log_start_offset, partition.log.end_offset, partition.high_watermark) == (10, 15, 15)


def test_what_does_not_follow_is_refused() -> None:
    partition = follower(5)
    with pytest.raises(CorruptData):
        partition.append_as_follower(memoryview(sent(3, 5, 2)), NOW)
    with pytest.raises(CorruptData):
        partition.append_as_follower(memoryview(sent(5, 5, 2))[:70], NOW)
    assert partition.log.end_offset == 5
    assert partition.has_already(memoryview(sent(3, 2, 2)))
    assert not partition.has_already(memoryview(sent(3, 3, 2)))


def test_a_cut_below_the_high_watermark_takes_it_along() -> None:
    partition = follower(5, high_watermark=0)
    partition.follow(5)
    partition.truncate(EpochEnd(-1, 0), NOW)
    partition.check()
    assert (partition.log.end_offset, partition.high_watermark) == (0, 0)


def test_records_without_an_epoch_are_kept_as_far_as_they_are_committed() -> None:
    partition = replica(TWO, high_watermark=0)
    for offset in range(3):
        partition.log.append_as_follower(memoryview(sent(offset, 1, -1)), now=NOW)
    partition.follow(2)
    partition.forget_unknown(NOW)
    assert partition.log.end_offset == 2
    partition.append_as_follower(memoryview(sent(2, 1, 0)), NOW)
    partition.forget_unknown(NOW)
    assert partition.log.end_offset == 3, "now there is an epoch to go by"


@pytest.mark.parametrize(
    ("spans", "last_epoch", "offset", "parted"),
    [
        ([(1, 5)], 1, 5, None),  # the same
        ([(1, 5)], 1, 3, None),  # behind
        ([(1, 5)], 1, 7, EpochEnd(1, 5)),  # more of the epoch than the leader has
        ([(1, 5), (3, 2)], 2, 6, EpochEnd(1, 5)),  # an epoch that the leader never had
        ([(1, 5), (3, 2)], 3, 7, None),
        ([(2, 5)], 1, 3, EpochEnd(1, 0)),  # older than all that the leader knows, and not empty
        ([(1, 5)], -1, 5, None),  # nothing to compare
    ],
)
def test_where_two_logs_part(
    spans: list[tuple[int, int]], last_epoch: int, offset: int, parted: EpochEnd | None
) -> None:
    assert divergence(history(*spans), last_epoch=last_epoch, offset=offset) == parted


def test_a_log_that_knows_nothing_of_an_epoch_says_so() -> None:
    with pytest.raises(Refused, match="OFFSET_OUT_OF_RANGE"):
        divergence(history((1, 5)), last_epoch=4, offset=5)


@pytest.mark.parametrize(
    ("spans", "leaders", "offset"),
    [
        ([(1, 5)], EpochEnd(1, 3), 3),  # the leader has less of it
        ([(1, 5), (2, 3)], EpochEnd(1, 5), 5),  # the leader never had the second
        ([(1, 5), (2, 3)], EpochEnd(1, 9), 5),  # and has more of the first
        ([(1, 5), (4, 3)], EpochEnd(3, 9), 5),  # it names one that is not known here: back to what comes before it
        ([(1, 5), (4, 3), (6, 1)], EpochEnd(5, 99), 8),
        ([(3, 5)], EpochEnd(2, 2), 0),  # nothing here is so old
        ([(1, 5)], EpochEnd(-1, 2), 2),  # the leader knows no epoch
        ([(1, 5)], EpochEnd(7, 2), 2),  # it is newer than all here
        ([], EpochEnd(3, 0), 0),
    ],
)
def test_where_a_follower_cuts(spans: list[tuple[int, int]], leaders: EpochEnd, offset: int) -> None:
    assert truncation_offset(history(*spans), leaders) == offset
