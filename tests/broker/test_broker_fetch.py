"""Fetch: what is read, how much, and how long a reader waits."""

from uuid import UUID

import pytest

from broker.harness import Harness, batch, codes, fetch, produce, produced, read, values_of
from cordwood.broker.handlers.fetch import PARKED_PER_CONNECTION_MAX
from cordwood.errors import Error
from cordwood.ids import NodeId, TopicName
from cordwood.log.log import LARGE_BATCH_BYTES
from cordwood.record.batch import Codec
from cordwood.record.build import Record, build
from cordwood.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestReplicaState,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
    ProduceResponse,
)

SIZE = len(batch(b"0123456789"))


def only(response: FetchResponse) -> FetchResponsePartition:
    ((answer,),) = [topic.partitions for topic in response.responses]
    return answer


def by_id(topic_id: UUID, offset: int = 0, **more: int) -> FetchRequest:
    wanted = FetchRequestPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=more.get("max_wait_ms", 0),
        min_bytes=1,
        topics=[FetchRequestTopic(topic_id=topic_id, partitions=[wanted])],
    )


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize("version", range(4, 13))
def test_batches_are_read_in_every_version(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b")
    harness.append("t", b"c")
    answer = only(harness.connect().ask(fetch(("t", 0, 0)), version, FetchResponse))
    assert (answer.partition_index, answer.error_code, answer.high_watermark) == (0, Error.NONE, 3)
    assert answer.last_stable_offset == 3
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert answer.preferred_read_replica == -1
    assert values_of(answer.records) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_read_by_id(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    topic_id = harness.broker.image.topics[TopicName("t")].id
    response = harness.connect().ask(by_id(topic_id), version, FetchResponse)
    assert response.responses[0].topic_id == topic_id
    assert values_of(only(response).records) == [b"a"]


def test_an_unknown_id_is_told_apart_from_an_unknown_partition() -> None:
    harness = Harness()
    harness.topic("t")
    request = by_id(UUID(int=5))
    known = by_id(harness.broker.image.topics[TopicName("t")].id).topics[0]
    known.partitions[0].partition = 9
    request.topics.append(known)
    response = harness.connect().ask(request, 13, FetchResponse)
    assert [t.partitions[0].error_code for t in response.responses] == [
        Error.UNKNOWN_TOPIC_ID,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_an_offset_inside_a_batch_gets_the_whole_batch() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    harness.append("t", b"b", b"c", b"d")
    response = harness.connect().ask(fetch(("t", 0, 2)), 12, FetchResponse)
    assert read(response) == {("t", 0): [b"b", b"c", b"d"]}


def test_errors_are_per_partition() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    request = fetch(("t", 0, 0), ("t", 7, 0), ("no", 0, 0), max_wait_ms=1000)
    response = harness.connect().ask(request, 12, FetchResponse)
    assert codes(response) == {
        ("t", 0): Error.NONE,
        ("t", 7): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("no", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    refused = response.responses[0].partitions[1]
    assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (-1, -1, -1)


@pytest.mark.parametrize("offset", [-1, 2, 2**40])
def test_an_offset_out_of_range_is_answered_at_once(offset: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    response = harness.connect().ask(fetch(("t", 0, offset), max_wait_ms=1000), 12, FetchResponse)
    assert codes(response) == {("t", 0): Error.OFFSET_OUT_OF_RANGE}


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, Error.NONE), (-1, Error.NONE), (1, Error.UNKNOWN_LEADER_EPOCH)],
)
def test_a_clients_leader_epoch_is_compared(epoch: int, error: Error) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    request = fetch(("t", 0, 0))
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert only(harness.connect().ask(request, 12, FetchResponse)).error_code == error


def test_an_old_leader_epoch_is_fenced() -> None:
    harness = Harness()
    harness.topic("t")
    harness.partition("t").become(leader=NodeId(1), epoch=4, isr=(NodeId(1),))
    request = fetch(("t", 0, 0), max_wait_ms=1000)
    request.topics[0].partitions[0].current_leader_epoch = 3
    assert only(harness.connect().ask(request, 12, FetchResponse)).error_code == Error.FENCED_LEADER_EPOCH


def test_only_the_leader_is_read_from_by_old_consumers() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    harness.partition("t").become(leader=NodeId(2), epoch=4, isr=(NodeId(2),))
    response = harness.connect().ask(fetch(("t", 0, 0), max_wait_ms=1000), 10, FetchResponse)
    assert only(response).error_code == Error.NOT_LEADER_OR_FOLLOWER
    response = harness.connect().ask(fetch(("t", 0, 0), max_wait_ms=1000), 11, FetchResponse)
    assert read(response) == {("t", 0): [b"a"]}


@pytest.mark.parametrize("version", [14, 15])
def test_a_replica_that_the_partition_does_not_have_is_refused(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    request = by_id(harness.broker.image.topics[TopicName("t")].id)
    if version >= 15:
        request.replica_state = FetchRequestReplicaState(replica_id=3)
    else:
        request.replica_id = 3
    response = harness.connect().ask(request, version, FetchResponse)
    assert only(response).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_read_committed_names_no_aborted_transactions() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    client = harness.connect()
    assert only(client.ask(fetch(("t", 0, 0)), 12, FetchResponse)).aborted_transactions is None
    committed = client.ask(fetch(("t", 0, 0), isolation_level=1), 12, FetchResponse)
    assert only(committed).aborted_transactions == []


@pytest.mark.parametrize(
    ("last_epoch", "offset", "diverging"),
    [
        (0, 2, None),  # the same history
        (-1, 2, None),  # nothing is said
        (3, 2, (0, 2)),  # an epoch that we never had
        (0, 3, (0, 2)),  # more of an epoch than we have
        (5, 3, None),  # the end
    ],
)
def test_a_reader_with_another_history_learns_where_they_part(
    last_epoch: int, offset: int, diverging: tuple[int, int] | None
) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b")
    harness.partition("t").become(leader=NodeId(1), epoch=5, isr=(NodeId(1),))
    harness.append("t", b"c")
    request = fetch(("t", 0, offset), max_wait_ms=1)
    request.topics[0].partitions[0].last_fetched_epoch = last_epoch
    client = harness.connect()
    client.send(request, 12)
    harness.advance(1)
    answer = only(client.take(FetchResponse))
    if diverging is None:
        assert answer.diverging_epoch is None
    else:
        assert answer.diverging_epoch is not None
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == diverging
        assert values_of(answer.records) == []


@pytest.mark.parametrize(("last_epoch", "offset"), [(7, 1), (0, 0)])
def test_a_history_that_we_know_nothing_of_is_out_of_range(last_epoch: int, offset: int) -> None:
    """A last epoch after all of ours has no end here, and what was deleted has none any more."""
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b")
    harness.partition("t").log.advance_start(1, high_watermark=2)
    request = fetch(("t", 0, offset), max_wait_ms=1)
    request.topics[0].partitions[0].last_fetched_epoch = last_epoch
    response = harness.connect().ask(request, 12, FetchResponse)
    assert codes(response) == {("t", 0): Error.OFFSET_OUT_OF_RANGE}


def test_a_reader_at_the_end_keeps_its_place_when_all_records_are_deleted() -> None:
    harness = Harness(log_retention_check_interval_ms=100)
    harness.topic("t", retention_ms=1)
    harness.append("t", b"a", b"b")
    harness.advance(1_000)
    assert harness.partition("t").log.log_start_offset == 2
    request = fetch(("t", 0, 2))
    request.topics[0].partitions[0].last_fetched_epoch = 0
    assert codes(harness.connect().ask(request, 12, FetchResponse)) == {("t", 0): Error.NONE}


@pytest.mark.parametrize("version", [4, 9, 10])
def test_a_topic_kept_in_zstd_is_read_in_every_version(version: int) -> None:
    harness = Harness()
    harness.topic("t", compression_type="zstd")
    harness.append("t", b"a")
    assert only(harness.connect().ask(fetch(("t", 0, 0)), version, FetchResponse)).error_code == Error.NONE


def test_compressed_batches_are_handed_on_as_they_are() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    data = bytes(build([Record(n, 0, None, b"x" * 100) for n in range(5)], codec=Codec.GZIP))
    assert produced(client.ask(produce("t", data), 9, ProduceResponse)).base_offset == 0
    answer = only(client.ask(fetch(("t", 0, 0)), 12, FetchResponse))
    assert isinstance(answer.records, memoryview)
    assert bytes(answer.records[61:]) == data[61:]


def test_a_disk_that_can_not_be_read_is_told_to_the_client() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a")
    harness.stop()
    harness.start()
    harness.close_files()
    response = harness.connect().ask(fetch(("t", 0, 0), max_wait_ms=1000), 12, FetchResponse)
    assert codes(response) == {("t", 0): Error.KAFKA_STORAGE_ERROR}
    assert "a batch of t-0 could not be read" in harness.logger


def test_a_rotten_batch_ends_neither_the_broker_nor_other_partitions() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    for partition in range(2):
        harness.append("t", b"a", partition=partition)
    harness.stop()
    harness.start()
    harness.damage("t-0/00000000000000000000.log", 16)
    response = harness.connect().ask(fetch(("t", 0, 0), ("t", 1, 0)), 12, FetchResponse)
    assert codes(response) == {("t", 0): Error.CORRUPT_MESSAGE, ("t", 1): Error.NONE}


# ---------------------------------------------------------------------- limits


def test_the_first_batch_is_whole_whatever_the_limits() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a" * 1000)
    harness.append("t", b"b")
    response = harness.connect().ask(fetch(("t", 0, 0), partition_max_bytes=1, max_bytes=1), 12, FetchResponse)
    assert read(response) == {("t", 0): [b"a" * 1000]}


def test_a_partition_gets_no_more_than_its_limit() -> None:
    harness = Harness()
    harness.topic("t")
    for _ in range(4):
        harness.append("t", b"0123456789")
    response = harness.connect().ask(fetch(("t", 0, 0), partition_max_bytes=2 * SIZE + 5), 12, FetchResponse)
    answer = only(response)
    assert isinstance(answer.records, memoryview)
    assert len(answer.records) <= 2 * SIZE + 5
    assert values_of(answer.records) == [b"0123456789"] * 2


def test_an_answer_gets_no_more_than_its_limit() -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    for partition in range(3):
        harness.append("t", b"0123456789", partition=partition)
    request = fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), max_bytes=2 * SIZE + 5)
    response = harness.connect().ask(request, 12, FetchResponse)
    assert read(response) == {("t", 0): [b"0123456789"], ("t", 1): [b"0123456789"], ("t", 2): []}
    assert codes(response)["t", 2] == Error.NONE


def test_a_large_batch_comes_whole_only_as_the_first_of_an_answer() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    harness.append("t", b"0123456789", partition=0)
    harness.append("t", b"x" * 1000, partition=1)
    client = harness.connect()
    request = fetch(("t", 0, 0), ("t", 1, 0), max_bytes=500, partition_max_bytes=500)
    assert read(client.ask(request, 12, FetchResponse)) == {("t", 0): [b"0123456789"], ("t", 1): []}
    request = fetch(("t", 0, 1), ("t", 1, 0), max_bytes=500, partition_max_bytes=500)
    assert read(client.ask(request, 12, FetchResponse)) == {("t", 0): [], ("t", 1): [b"x" * 1000]}


def test_the_brokers_own_limit_counts_too() -> None:
    harness = Harness(fetch_max_bytes=1024)
    harness.topic("t", partitions=2)
    harness.append("t", b"x" * 800, partition=0)
    harness.append("t", b"y" * 800, partition=1)
    response = harness.connect().ask(fetch(("t", 0, 0), ("t", 1, 0)), 12, FetchResponse)
    assert read(response) == {("t", 0): [b"x" * 800], ("t", 1): []}


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
def test_limits_of_nothing_still_give_the_first_batch(limit: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"x")
    response = harness.connect().ask(fetch(("t", 0, 0), max_bytes=limit, partition_max_bytes=limit), 12, FetchResponse)
    assert read(response) == {("t", 0): [b"x"]}


# ---------------------------------------------------------------------- waiting


def test_a_reader_at_the_end_waits_for_the_next_batch() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    harness.advance(100)
    assert not client.inbox
    harness.append("t", b"x")
    assert read(client.take(FetchResponse)) == {("t", 0): [b"x"]}
    assert harness.watchers() == 0


def test_a_reader_waits_no_longer_than_it_says() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    harness.advance(499)
    assert not client.inbox
    harness.advance(1)
    assert read(client.take(FetchResponse)) == {("t", 0): []}
    assert harness.watchers() == 0


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (-5, 1), (500, 0), (500, -1)])
def test_a_reader_that_does_not_want_to_wait_does_not(max_wait_ms: int, min_bytes: int) -> None:
    harness = Harness()
    harness.topic("t")
    request = fetch(("t", 0, 0), max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    assert read(harness.connect().ask(request, 12, FetchResponse)) == {("t", 0): []}


def test_a_reader_of_a_partition_that_is_not_there_waits_for_the_others() -> None:
    """Else a client that does not let go of a deleted topic would ask without a pause."""
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session_id = 0
    for session_epoch in (0, 1):
        wanted = ("t", 0, 0), ("t", 7, 0), ("no", 0, 0)
        client.send(fetch(*wanted, max_wait_ms=500, session_id=session_id, session_epoch=session_epoch), 12)
        harness.advance(499)
        assert not client.inbox
        harness.advance(1)
        response = client.take(FetchResponse)
        unknown = {("t", 7): Error.UNKNOWN_TOPIC_OR_PARTITION, ("no", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
        assert codes(response) == unknown | ({} if session_epoch else {("t", 0): Error.NONE})
        session_id = response.session_id


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_where_there_is_nothing_to_wait_for_nobody_waits(session_epoch: int) -> None:
    request = fetch(("no", 0, 0), ("no", 1, 0), max_wait_ms=500, session_epoch=session_epoch)
    response = Harness().connect().ask(request, 12, FetchResponse)
    assert set(codes(response).values()) == {Error.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_fetch_of_nothing_is_answered_at_once() -> None:
    response = Harness().connect().ask(fetch(max_wait_ms=500), 12, FetchResponse)
    assert response.responses == []


def test_a_reader_waits_for_its_minimum_over_all_partitions() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    harness.append("t", b"0123456789", partition=0)
    client = harness.connect()
    client.send(fetch(("t", 0, 0), ("t", 1, 0), max_wait_ms=500, min_bytes=3 * SIZE), 12)
    harness.append("t", b"0123456789", partition=1)
    assert not client.inbox
    harness.append("t", b"0123456789", partition=0)
    assert read(client.take(FetchResponse)) == {("t", 0): [b"0123456789"] * 2, ("t", 1): [b"0123456789"]}


def test_a_minimum_beyond_the_maximum_counts_as_the_maximum() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500, min_bytes=1 << 30, max_bytes=SIZE), 12)
    harness.append("t", b"0123456789")
    assert read(client.take(FetchResponse)) == {("t", 0): [b"0123456789"]}


def test_nobody_waits_for_the_part_of_a_batch_that_is_left_out() -> None:
    harness = Harness()
    harness.topic("t")
    for _ in range(3):
        harness.append("t", bytes(LARGE_BATCH_BYTES))
    size = len(batch(bytes(LARGE_BATCH_BYTES)))
    wanted = fetch(("t", 0, 0), max_wait_ms=500, min_bytes=2 * size - 1)
    wanted.topics[0].partitions[0].partition_max_bytes = 2 * size - 1
    answer = only(harness.connect().ask(wanted, 12, FetchResponse))
    assert answer.records is not None
    assert len(answer.records) == size


def test_nobody_waits_for_a_batch_of_another_partition_that_does_not_fit() -> None:
    harness = Harness()
    harness.topic("t", partitions=2, segment_bytes=1 << 22)
    harness.append("t", bytes(600_000))
    harness.append("t", bytes(500_000), partition=1)
    wanted = fetch(("t", 0, 0), ("t", 1, 0), max_wait_ms=500, min_bytes=1_000_000, max_bytes=1_000_000)
    assert read(harness.connect().ask(wanted, 12, FetchResponse)) == {("t", 0): [bytes(600_000)], ("t", 1): []}


def test_nobody_waits_at_the_end_of_a_segment_when_there_is_more_in_the_next() -> None:
    harness = Harness()
    harness.topic("t", segment_bytes=1 << 20)
    for _ in range(3):
        harness.append("t", bytes(400_000))
    assert len(harness.partition("t").log.segments) == 2
    wanted = fetch(("t", 0, 0), max_wait_ms=500, min_bytes=1_000_000)
    wanted.topics[0].partitions[0].partition_max_bytes = 1_000_000
    answer = only(harness.connect().ask(wanted, 12, FetchResponse))
    assert values_of(answer.records) == 2 * [bytes(400_000)]


def test_what_is_left_out_leaves_room_for_other_partitions() -> None:
    harness = Harness()
    harness.topic("t", partitions=2, segment_bytes=1 << 20)
    for _ in range(3):
        harness.append("t", bytes(400_000))
    harness.append("t", b"of the other", partition=1)
    wanted = fetch(("t", 0, 1), ("t", 1, 0), max_bytes=1_000_000)
    assert read(harness.connect().ask(wanted, 12, FetchResponse)) == {
        ("t", 0): [bytes(400_000)],
        ("t", 1): [b"of the other"],
    }


def test_waiting_costs_nothing_but_one_timer() -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=700), 12)
    assert harness.broker.next_deadline() == harness.now.mono_ms + 700
    harness.append("t", b"elsewhere", partition=2)
    assert not client.inbox


def test_a_client_that_lets_too_many_fetches_wait_gets_answers_at_once() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    for _ in range(PARKED_PER_CONNECTION_MAX + 3):
        client.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    assert harness.watchers() == PARKED_PER_CONNECTION_MAX
    assert not client.inbox, "answers leave in order"
    harness.advance(500)
    assert len(client.inbox) == PARKED_PER_CONNECTION_MAX + 3


def test_several_readers_get_the_same_batch() -> None:
    harness = Harness()
    harness.topic("t")
    clients = [harness.connect() for _ in range(3)]
    for client in clients:
        client.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    harness.append("t", b"x")
    for client in clients:
        assert read(client.take(FetchResponse)) == {("t", 0): [b"x"]}


def test_a_deleted_topic_wakes_its_readers() -> None:
    harness = Harness()
    harness.topic("t")
    harness.topic("other")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), ("other", 0, 0), max_wait_ms=500), 12)
    harness.connect().ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    assert codes(client.take(FetchResponse)) == {
        ("t", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("other", 0): Error.NONE,
    }
    assert harness.watchers() == 0


def test_a_topic_deleted_and_made_anew_is_another_one_by_id_and_the_same_by_name() -> None:
    harness = Harness()
    harness.topic("t")
    old_id = harness.broker.image.topics[TopicName("t")].id
    named, identified = harness.connect(), harness.connect()
    harness.hold_metadata = True
    named.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    identified.send(by_id(old_id, max_wait_ms=500), 13)
    harness.hold_metadata = False
    harness.connect().ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    assert only(named.take(FetchResponse)).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert only(identified.take(FetchResponse)).error_code == Error.UNKNOWN_TOPIC_ID
    harness.topic("t")
    assert only(named.ask(fetch(("t", 0, 0)), 12, FetchResponse)).error_code == Error.NONE
    assert only(identified.ask(by_id(old_id), 13, FetchResponse)).error_code == Error.UNKNOWN_TOPIC_ID


def test_the_first_to_wait_is_answered_when_fetches_that_wait_want_too_many_partitions() -> None:
    harness = Harness()
    harness.broker.waiters.partitions_max = 5
    harness.topic("t", partitions=3)
    clients = [harness.connect() for _ in range(4)]
    wanted = [("t", 0, 0), ("t", 1, 0)]
    for client in clients[:2]:
        client.send(fetch(*wanted, max_wait_ms=1000), 12)
    assert not harness.broker.ready
    clients[0].disconnect()
    clients[2].send(fetch(*wanted, max_wait_ms=1000), 12)
    assert not clients[1].inbox, "who went does not count"
    clients[3].send(fetch(*wanted, max_wait_ms=1000), 12)
    assert read(clients[1].take(FetchResponse)) == {("t", 0): [], ("t", 1): []}
    harness.append("t", b"x")
    for client in clients[2:]:
        assert read(client.take(FetchResponse))["t", 0] == [b"x"]
    assert harness.watchers() == 0


def test_a_reader_of_a_synced_topic_waits_for_the_sync() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=500), 12)
    harness.connect().send(produce("t", batch(b"x")), 9)
    assert not client.inbox
    harness.release()
    assert read(client.take(FetchResponse)) == {("t", 0): [b"x"]}


def test_a_reader_between_the_high_watermark_and_the_end_waits() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    harness.connect().send(produce("t", batch(b"x", b"y")), 9)
    client = harness.connect()
    client.send(fetch(("t", 0, 2), max_wait_ms=500), 12)
    harness.advance(500)
    assert codes(client.take(FetchResponse)) == {("t", 0): Error.NONE}
