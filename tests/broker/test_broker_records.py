"""DeleteRecords, retention, DescribeLogDirs, DescribeProducers: what is kept and what is told of it."""

import pytest

from broker.harness import Harness, batch, codes, fetch, produce, read
from cordwood.errors import Error
from cordwood.ids import NodeId
from cordwood.log.directory import LOG_STARTS, RECOVERY_POINTS
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsRequestTopic,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersRequestTopic,
    DescribeProducersResponse,
    FetchResponse,
    ProduceResponse,
)

SEGMENT = "0000000000000000000{}.log"


def delete(harness: Harness, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    part = DeleteRecordsRequestPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequestTopic(name=topic, partitions=[part])])
    ((answer,),) = [t.partitions for t in harness.connect().ask(request, version, DeleteRecordsResponse).topics]
    assert answer.partition_index == partition
    return answer.error_code, answer.low_watermark


def small_segments(harness: Harness, count: int = 4, **config: int) -> None:
    """A topic with one record in each segment."""
    harness.topic("t", internal_segment_bytes=100, **config)
    for number in range(count):
        harness.append("t", b"%d" % number * 30)


def bytes_of(records: int) -> int:
    """Bytes of so many records as ``small_segments`` writes."""
    return records * len(batch(b"0" * 30))


def logs(harness: Harness) -> list[str]:
    return [name for name in harness.disk.list("t-0") if name.endswith(".log")]


# ---------------------------------------------------------------------- DeleteRecords


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_partition_starts_later(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b", b"c")
    assert delete(harness, "t", 2, version=version) == (Error.NONE, 2)
    client = harness.connect()
    assert codes(client.ask(fetch(("t", 0, 1)), 12, FetchResponse)) == {("t", 0): Error.OFFSET_OUT_OF_RANGE}
    assert read(client.ask(fetch(("t", 0, 2)), 12, FetchResponse)) == {("t", 0): [b"a", b"b", b"c"]}


def test_minus_one_is_the_high_watermark() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b", b"c")
    assert delete(harness, "t", -1) == (Error.NONE, 3)
    assert harness.append("t", b"d") == 3


def test_an_earlier_offset_changes_nothing() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b", b"c")
    delete(harness, "t", 2)
    assert delete(harness, "t", 1) == (Error.NONE, 2)
    assert delete(harness, "t", 2) == (Error.NONE, 2)


def test_what_can_not_be_deleted_is_refused() -> None:
    harness = Harness()
    harness.topic("t")
    harness.topic("compacted", cleanup_policy="compact")
    harness.topic("both", cleanup_policy="compact,delete")
    harness.topic("neither", cleanup_policy="")
    harness.topic("__consumer_offsets")
    harness.append("t", b"a")
    assert delete(harness, "t", 2) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete(harness, "t", -2) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete(harness, "t", 0, partition=3) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(harness, "no", 0) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(harness, "__consumer_offsets", 0) == (Error.INVALID_TOPIC, -1)
    assert delete(harness, "compacted", 0) == (Error.POLICY_VIOLATION, -1)
    assert delete(harness, "both", 0) == (Error.NONE, 0)
    assert delete(harness, "neither", 0) == (Error.NONE, 0)
    harness.partition("t").become(leader=NodeId(2), epoch=1, isr=(NodeId(2),))
    assert delete(harness, "t", 0) == (Error.NOT_LEADER_OR_FOLLOWER, -1)


def test_records_beyond_the_high_watermark_can_not_be_deleted() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    harness.connect().send(produce("t", batch(b"a")), 9)
    assert delete(harness, "t", 1) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete(harness, "t", -1) == (Error.NONE, 0)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_start_is_known_after_a_restart(end: str) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b", b"c")
    delete(harness, "t", 2)
    getattr(harness, end)()
    harness.start()
    assert harness.partition("t").log.log_start_offset == 2
    assert harness.append("t", b"d") == 3


def test_segments_wholly_before_the_start_go_after_a_while() -> None:
    harness = Harness()
    small_segments(harness, file_delete_delay_ms=5_000)
    delete(harness, "t", 2)
    assert len(logs(harness)) == 2
    assert len([name for name in harness.disk.list("t-0") if name.endswith(".deleted")]) > 0
    harness.advance(5_000)
    assert not [name for name in harness.disk.list("t-0") if name.endswith(".deleted")]


def test_a_deletion_is_no_retention() -> None:
    harness = Harness(log_retention_check_interval_ms=60_000)
    small_segments(harness, retention_ms=10_000)
    harness.advance(30_000)
    assert delete(harness, "t", 2) == (Error.NONE, 2)
    assert len(logs(harness)) == 2
    harness.advance(30_000)
    assert harness.partition("t").log.log_start_offset == 4


def test_a_reader_may_finish_what_is_being_deleted() -> None:
    harness = Harness()
    small_segments(harness, file_delete_delay_ms=0)
    piece = harness.partition("t").log.read(0, 1000, up_to_offset=4)
    assert piece is not None
    delete(harness, "t", 4)
    harness.advance(1)
    assert len(piece.read()) == len(piece)


def test_a_disk_that_fails_refuses_the_deletion() -> None:
    harness = Harness()
    small_segments(harness)
    harness.disk.fails_after = 0
    assert delete(harness, "t", 2) == (Error.KAFKA_STORAGE_ERROR, -1)
    assert "records could not be deleted" in harness.logger


def test_checkpoints_asked_for_during_one_follow_it() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b", b"c")
    harness.hold_syncs = True
    for offset in (1, 2, 3):
        delete(harness, "t", offset)
    assert not harness.disk.exists(LOG_STARTS)
    harness.release(1)
    assert b"t 0 1\n" in harness.disk.read(LOG_STARTS)
    harness.release()
    assert b"t 0 3\n" in harness.disk.read(LOG_STARTS)


# ---------------------------------------------------------------------- retention and other regular work


def test_old_segments_go_by_time() -> None:
    harness = Harness(log_retention_check_interval_ms=1_000)
    small_segments(harness, retention_ms=10_000)
    harness.advance(9_000)
    assert harness.partition("t").log.log_start_offset == 0
    harness.append("t", b"young" * 6)
    harness.advance(3_000)
    assert harness.partition("t").log.log_start_offset == 4
    assert "t-0 now starts at offset 4" in harness.logger


def test_old_segments_go_by_size() -> None:
    harness = Harness(log_retention_check_interval_ms=1_000)
    small_segments(harness, retention_bytes=bytes_of(2), retention_ms=-1)
    harness.advance(1_000)
    assert harness.partition("t").log.log_start_offset == 2


def test_a_shorter_retention_takes_effect_on_a_running_log() -> None:
    harness = Harness(log_retention_check_interval_ms=1_000)
    small_segments(harness)
    harness.advance(5_000)
    assert harness.partition("t").log.log_start_offset == 0
    partition = harness.partition("t")
    partition.log.update_config(partition.log.config.parse({"retention.ms": "1", "internal.segment.bytes": "100"}))
    harness.advance(1_000)
    assert harness.partition("t").log.log_start_offset == 4


def test_a_disk_that_fails_does_not_end_the_regular_work() -> None:
    harness = Harness(log_retention_check_interval_ms=1_000)
    small_segments(harness, retention_ms=1)
    harness.disk.fails_after = 0
    harness.advance(2_000)
    assert "old segments of t-0 could not be deleted" in harness.logger


def test_a_rotten_segment_does_not_end_the_regular_work() -> None:
    harness = Harness(log_retention_check_interval_ms=1_000)
    harness.topic("other", retention_ms=1)
    harness.append("other", b"x")
    small_segments(harness, retention_ms=1)
    harness.stop()
    harness.disk.remove(f"t-0/{SEGMENT.format(0)[:-4]}.timeindex")
    harness.damage(f"t-0/{SEGMENT.format(0)}", 16)
    harness.start()
    harness.advance(2_000)
    assert "old segments of t-0 could not be deleted" in harness.logger
    assert harness.partition("other").log.log_start_offset == 1


def test_complete_segments_are_synced_and_the_recovery_point_moves() -> None:
    harness = Harness(log_flush_offset_checkpoint_interval_ms=5_000)
    small_segments(harness)
    assert harness.partition("t").log.unsynced_from == 0
    harness.advance(1_000)
    assert harness.partition("t").log.unsynced_from == 3
    harness.advance(5_000)
    assert b"t 0 3\n" in harness.disk.read(RECOVERY_POINTS)


@pytest.mark.parametrize("interval_ms", [0, 1])
def test_a_checkpoint_interval_of_nothing_does_not_stop_time(interval_ms: int) -> None:
    harness = Harness(log_flush_offset_checkpoint_interval_ms=interval_ms)
    harness.advance(10)


# ---------------------------------------------------------------------- DescribeLogDirs, DescribeProducers


def log_dirs(
    harness: Harness, topics: list[DescribeLogDirsRequestTopic] | None, version: int = 5
) -> dict[str, dict[int, int]]:
    response = harness.connect().ask(DescribeLogDirsRequest(topics=topics), version, DescribeLogDirsResponse)
    (directory,) = response.results
    assert (directory.error_code, directory.log_dir, directory.is_cordoned) == (Error.NONE, "/simulated", False)
    assert (directory.total_bytes > directory.usable_bytes > 0) if version >= 4 else directory.total_bytes == -1
    return {t.name: {p.partition_index: p.partition_size for p in t.partitions} for t in directory.topics}


@pytest.mark.parametrize("version", range(1, 6))
def test_partitions_have_a_size(version: int) -> None:
    harness = Harness()
    harness.topic("b")
    harness.topic("a", partitions=2)
    harness.append("a", b"x" * 100, partition=1)
    size = harness.partition("a", 1).log.size
    assert log_dirs(harness, None, version) == {"a": {0: 0, 1: size}, "b": {0: 0}}


def test_a_topic_may_be_named_twice() -> None:
    harness = Harness()
    harness.topic("a", partitions=3)
    asked = [DescribeLogDirsRequestTopic(topic="a", partitions=[index]) for index in (0, 2, 2)]
    assert log_dirs(harness, asked) == {"a": {0: 0, 2: 0}}


def test_only_what_is_asked_for_and_here_is_told() -> None:
    harness = Harness()
    harness.topic("a", partitions=2)
    harness.topic("b")
    wanted = [
        DescribeLogDirsRequestTopic(topic="a", partitions=[1, 7]),
        DescribeLogDirsRequestTopic(topic="no", partitions=[0]),
    ]
    assert log_dirs(harness, wanted) == {"a": {1: 0}}
    assert log_dirs(harness, []) == {}


def test_producers_are_described() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    data = batch(b"a", b"b", producer_id=5, producer_epoch=3, base_sequence=0)
    client.ask(produce("t", data), 9, ProduceResponse)
    wanted = [
        DescribeProducersRequestTopic(name="t", partition_indexes=[0, 4]),
        DescribeProducersRequestTopic(name="no", partition_indexes=[0]),
        DescribeProducersRequestTopic(name="a b", partition_indexes=[0]),
    ]
    response = client.ask(DescribeProducersRequest(topics=wanted), 0, DescribeProducersResponse)
    known, unknown = response.topics[0].partitions
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5, 3, 1)
    assert producer.last_timestamp == harness.now.wall_ms
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert response.topics[1].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert response.topics[2].partitions[0].error_code == Error.INVALID_TOPIC
