"""ListOffsets and OffsetForLeaderEpoch: offsets by time, by end, by leader epoch."""

import pytest

from broker.harness import START, Harness, batch, produce
from cordwood.errors import Error
from cordwood.ids import NodeId
from cordwood.record.build import Record, build
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
    ListOffsetsResponsePartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestPartition,
    OffsetForLeaderEpochRequestTopic,
    OffsetForLeaderEpochResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def ask(
    harness: Harness, timestamp: int, *, version: int = 11, partition: int = 0, epoch: int = -1
) -> ListOffsetsResponsePartition:
    wanted = ListOffsetsRequestPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequestTopic(name="t", partitions=[wanted])])
    response = harness.connect().ask(request, version, ListOffsetsResponse)
    ((answer,),) = [topic.partitions for topic in response.topics]
    return answer


def answer_of(found: ListOffsetsResponsePartition) -> tuple[int, int]:
    assert found.error_code == Error.NONE
    return found.timestamp, found.offset


@pytest.fixture
def harness() -> Harness:
    """Offsets 0 to 5; timestamps 100, 200, 300 | 250 | 400, 400."""
    harness = Harness()
    harness.topic("t", partitions=2, retention_ms=-1)
    client = harness.connect()
    for times in ((100, 200, 300), (250,), (400, 400)):
        client.send(produce("t", _timed(*times)), 9)
    return harness


def _timed(*times: int) -> bytes:
    return bytes(build([Record(n, time, None, b"x") for n, time in enumerate(times)]))


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_are_known_in_every_version(harness: Harness, version: int) -> None:
    latest, earliest = ask(harness, LATEST, version=version), ask(harness, EARLIEST, version=version)
    assert answer_of(latest) == (-1, 6)
    assert answer_of(earliest) == (-1, 0)
    assert latest.leader_epoch == earliest.leader_epoch == (0 if version >= 4 else -1)


def test_an_empty_partition_begins_where_it_ends(harness: Harness) -> None:
    assert answer_of(ask(harness, LATEST, partition=1)) == (-1, 0)
    assert answer_of(ask(harness, EARLIEST, partition=1)) == (-1, 0)
    assert answer_of(ask(harness, MAX_TIMESTAMP, partition=1)) == (-1, -1)
    assert answer_of(ask(harness, 0, partition=1)) == (-1, -1)


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (100, 0)),
        (100, (100, 0)),
        (101, (200, 1)),
        (250, (300, 2)),
        (300, (300, 2)),
        (301, (400, 4)),
        (400, (400, 4)),
        (401, (-1, -1)),
        (2**62, (-1, -1)),
    ],
)
def test_a_time_finds_the_first_record_at_or_after_it(harness: Harness, timestamp: int, found: tuple[int, int]) -> None:
    assert answer_of(ask(harness, timestamp)) == found


def test_a_found_record_has_its_leader_epoch(harness: Harness) -> None:
    harness.partition("t").become(leader=NodeId(1), epoch=7, isr=(NodeId(1),))
    harness.connect().send(produce("t", _timed(900)), 9)
    assert ask(harness, 900).leader_epoch == 7
    assert ask(harness, 100).leader_epoch == 0
    assert ask(harness, LATEST).leader_epoch == 7
    assert ask(harness, EARLIEST).leader_epoch == 0


def test_the_largest_timestamp_is_found(harness: Harness) -> None:
    assert answer_of(ask(harness, MAX_TIMESTAMP)) == (400, 4)


def test_the_start_moves_with_deleted_records(harness: Harness) -> None:
    part = DeleteRecordsRequestPartition(partition_index=0, offset=2)
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequestTopic(name="t", partitions=[part])])
    harness.connect().ask(request, 2, DeleteRecordsResponse)
    assert answer_of(ask(harness, EARLIEST)) == (-1, 2)
    assert answer_of(ask(harness, EARLIEST_LOCAL)) == (-1, 2)
    assert answer_of(ask(harness, 0)) == (300, 2)


def test_the_largest_timestamp_is_that_of_a_record_that_is_left(harness: Harness) -> None:
    client = harness.connect()
    client.send(produce("t", _timed(10)), 9)
    client.send(produce("t", _timed(20)), 9)
    harness.partition("t").log.advance_start(6, high_watermark=8)
    assert answer_of(ask(harness, MAX_TIMESTAMP)) == (20, 7)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11)],
)
def test_each_question_came_with_a_version(harness: Harness, timestamp: int, since: int) -> None:
    refused = ask(harness, timestamp, version=since - 1)
    assert (refused.error_code, refused.offset, refused.timestamp) == (Error.UNSUPPORTED_VERSION, -1, -1)
    assert ask(harness, timestamp, version=since).error_code == Error.NONE


@pytest.mark.parametrize("timestamp", [-7, -(2**63)])
def test_questions_that_nobody_knows_are_refused(harness: Harness, timestamp: int) -> None:
    assert ask(harness, timestamp).error_code == Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize("timestamp", [LATEST_TIERED, EARLIEST_PENDING_UPLOAD])
def test_nothing_is_tiered(harness: Harness, timestamp: int) -> None:
    found = ask(harness, timestamp)
    assert (answer_of(found), found.leader_epoch) == ((-1, -1), -1)


def test_what_is_not_committed_is_not_found() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.append("t", b"x")
    harness.hold_syncs = True
    harness.connect().send(produce("t", batch(b"y", timestamp=START.wall_ms + 5)), 9)
    assert answer_of(ask(harness, LATEST)) == (-1, 1)
    assert answer_of(ask(harness, START.wall_ms + 1)) == (-1, -1)
    assert answer_of(ask(harness, MAX_TIMESTAMP)) == (-1, -1)


def test_errors_are_per_partition(harness: Harness) -> None:
    assert ask(harness, LATEST, partition=9).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(harness, LATEST, epoch=3).error_code == Error.UNKNOWN_LEADER_EPOCH
    harness.partition("t").become(leader=NodeId(1), epoch=5, isr=(NodeId(1),))
    assert ask(harness, LATEST, epoch=3).error_code == Error.FENCED_LEADER_EPOCH
    harness.partition("t").become(leader=NodeId(2), epoch=6, isr=(NodeId(2),))
    assert ask(harness, LATEST).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_partition_named_twice_is_refused_and_others_are_not(harness: Harness) -> None:
    def wanted(index: int) -> ListOffsetsRequestPartition:
        return ListOffsetsRequestPartition(partition_index=index, timestamp=LATEST)

    topics = [
        ListOffsetsRequestTopic(name="t", partitions=[wanted(0), wanted(1)]),
        ListOffsetsRequestTopic(name="t", partitions=[wanted(0)]),
    ]
    response = harness.connect().ask(ListOffsetsRequest(topics=topics), 7, ListOffsetsResponse)
    assert [[p.error_code for p in topic.partitions] for topic in response.topics] == [
        [Error.INVALID_REQUEST, Error.NONE],
        [Error.INVALID_REQUEST],
    ]


def test_a_disk_that_fails_and_one_that_rots_are_told_apart() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    for partition in range(2):
        harness.append("t", b"x", partition=partition)
    harness.stop()
    harness.start()
    harness.damage("t-1/00000000000000000000.log", 16)
    assert ask(harness, 0, partition=1).error_code == Error.CORRUPT_MESSAGE
    assert ask(harness, 0, partition=0).error_code == Error.NONE
    harness.close_files()
    assert ask(harness, 0, partition=0).error_code == Error.KAFKA_STORAGE_ERROR
    assert ask(harness, LATEST, partition=0).error_code == Error.NONE, "the ends are known without the disk"


# ---------------------------------------------------------------------- leader epochs


def epoch_end(
    harness: Harness, epoch: int, *, version: int = 4, partition: int = 0, current: int = -1
) -> tuple[int, int, int]:
    wanted = OffsetForLeaderEpochRequestPartition(partition=partition, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderEpochRequestTopic(topic="t", partitions=[wanted])]
    )
    (topic,) = harness.connect().ask(request, version, OffsetForLeaderEpochResponse).topics
    (answer,) = topic.partitions
    assert (topic.topic, answer.partition) == ("t", partition)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
def test_leader_epochs_end_where_the_next_begins(harness: Harness, version: int) -> None:
    harness.partition("t").become(leader=NodeId(1), epoch=5, isr=(NodeId(1),))
    harness.append("t", b"x")
    assert epoch_end(harness, 0, version=version) == (0, 0, 6)
    assert epoch_end(harness, 3, version=version) == (0, 0, 6)
    assert epoch_end(harness, 5, version=version) == (0, 5, 7)
    assert epoch_end(harness, 6, version=version) == (0, -1, -1)


def test_a_leader_knows_its_epoch_before_the_first_record_of_it(harness: Harness) -> None:
    harness.partition("t").become(leader=NodeId(1), epoch=5, isr=(NodeId(1),))
    assert epoch_end(harness, 5) == (0, 5, 6)
    assert epoch_end(harness, 3) == (0, 0, 6)
    assert ask(harness, LATEST).leader_epoch == 5


def test_a_leader_of_an_empty_log_knows_its_epoch(harness: Harness) -> None:
    harness.topic("empty")
    log = harness.partition("empty").log
    assert log.end_offset_for(0) == (0, 0)
    assert log.latest().leader_epoch == log.earliest().leader_epoch == 0


def test_a_follower_does_not_begin_an_epoch(harness: Harness) -> None:
    harness.partition("t").become(leader=NodeId(2), epoch=5, isr=(NodeId(1), NodeId(2)))
    assert harness.partition("t").log.latest_epoch == 0


def test_leader_epochs_of_what_is_not_here(harness: Harness) -> None:
    assert epoch_end(harness, 0, partition=9) == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert epoch_end(harness, 0, current=2) == (Error.UNKNOWN_LEADER_EPOCH, -1, -1)
