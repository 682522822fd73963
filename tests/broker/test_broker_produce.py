"""Produce: where batches go, who is told what, and when."""

from uuid import UUID

import pytest

from broker.harness import Client, Harness, batch, fetch, produce, produced, read
from cordwood.errors import Error
from cordwood.ids import NodeId, TopicName
from cordwood.record.batch import CRC_AT, Codec
from cordwood.record.build import Record, build
from cordwood.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
)

UNKNOWN_ID = UUID(int=12345)


def send(
    client: Client, topic: str, data: bytes | None, *, version: int = 9, acks: int = -1
) -> ProduceResponsePartition:
    return produced(client.ask(produce(topic, data, acks=acks), version, ProduceResponse))


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
def test_a_batch_is_appended_in_every_version(version: int, acks: int) -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    assert send(client, "t", batch(b"a", b"b"), version=version, acks=acks).base_offset == 0
    answer = send(client, "t", batch(b"c"), version=version, acks=acks)
    assert (answer.index, answer.error_code, answer.base_offset) == (0, Error.NONE, 2)
    assert answer.log_append_time_ms == -1
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert read(client.ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"a", b"b", b"c"]}


def test_version_13_names_topics_by_id() -> None:
    harness = Harness()
    harness.topic("t")
    topic_id = harness.broker.image.topics[TopicName("t")].id
    parts = [ProduceRequestPartition(index=index, records=memoryview(batch(b"x"))) for index in (0, 7)]
    request = ProduceRequest(
        acks=1,
        topic_data=[
            ProduceRequestTopic(topic_id=topic_id, partition_data=parts),
            ProduceRequestTopic(topic_id=UNKNOWN_ID, partition_data=parts[:1]),
        ],
    )
    known, unknown = harness.connect().ask(request, 13, ProduceResponse).responses
    assert known.topic_id == topic_id
    assert [p.error_code for p in known.partition_responses] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert unknown.topic_id == UNKNOWN_ID
    assert [p.error_code for p in unknown.partition_responses] == [Error.UNKNOWN_TOPIC_ID]


def test_a_partition_named_twice_gets_both_batches_in_their_order() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    first, second = produce("t", batch(b"a")), produce("t", batch(b"b"))
    first.topic_data += second.topic_data
    answer = client.ask(first, 9, ProduceResponse)
    assert [part.base_offset for topic in answer.responses for part in topic.partition_responses] == [0, 1]
    assert read(client.ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"a", b"b"]}


def test_each_partition_succeeds_or_fails_by_itself() -> None:
    harness = Harness()
    harness.topic("a", partitions=2)
    harness.topic("b", max_message_bytes=100)

    def part(index: int, data: bytes | None) -> ProduceRequestPartition:
        return ProduceRequestPartition(index=index, records=None if data is None else memoryview(data))

    corrupt = bytearray(batch(b"x"))
    corrupt[CRC_AT] ^= 1
    request = ProduceRequest(
        acks=-1,
        topic_data=[
            ProduceRequestTopic(name="a", partition_data=[part(0, bytes(corrupt)), part(1, batch(b"good"))]),
            ProduceRequestTopic(name="b", partition_data=[part(0, batch(b"x" * 100)), part(9, batch(b"x"))]),
            ProduceRequestTopic(name="c", partition_data=[part(0, batch(b"x"))]),
        ],
    )
    response = harness.connect().ask(request, 9, ProduceResponse)
    assert [(t.name, [(p.index, p.error_code) for p in t.partition_responses]) for t in response.responses] == [
        ("a", [(0, Error.CORRUPT_MESSAGE), (1, Error.NONE)]),
        ("b", [(0, Error.MESSAGE_TOO_LARGE), (9, Error.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("c", [(0, Error.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]
    refused = response.responses[0].partition_responses[0]
    assert (refused.base_offset, refused.log_append_time_ms, refused.log_start_offset) == (-1, -1, -1)
    assert harness.partition("a", 1).log.end_offset == 1
    assert harness.partition("a", 0).log.end_offset == 0


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, Error.INVALID_RECORD),
        (b"", Error.INVALID_RECORD),
        (b"\0" * 61, Error.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (batch(b"a") + batch(b"b"), Error.INVALID_RECORD),
        (batch(b"a")[:-1], Error.INVALID_RECORD),
        (bytes(build([Record(0, 0, None, b"x")], control=True)), Error.INVALID_RECORD),
        (bytes(build([Record(5, 0, None, b"x")])), Error.INVALID_RECORD),
    ],
)
def test_what_is_not_one_good_batch_is_refused(data: bytes | None, error: Error) -> None:
    harness = Harness()
    harness.topic("t")
    answer = send(harness.connect(), "t", data)
    assert answer.error_code == error
    assert answer.error_message
    assert harness.partition("t").log.end_offset == 0


def test_errors_have_a_message_from_version_8_on() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    assert send(client, "t", None, version=7).error_message is None
    assert send(client, "t", None, version=8).error_message == "There is no record batch."


def test_the_records_at_fault_are_named() -> None:
    harness = Harness()
    harness.topic("t", cleanup_policy="compact")
    data = bytes(build([Record(0, 0, b"k", b"v"), Record(1, 0, None, b"v"), Record(2, 0, None, b"v")]))
    answer = send(harness.connect(), "t", data)
    assert answer.error_code == Error.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 2]
    assert all(error.batch_index_error_message for error in answer.record_errors)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(acks: int) -> None:
    harness = Harness()
    harness.topic("t")
    assert send(harness.connect(), "t", batch(b"x"), acks=acks).error_code == Error.INVALID_REQUIRED_ACKS
    assert harness.partition("t").log.end_offset == 0


def test_internal_topics_are_not_for_clients() -> None:
    harness = Harness()
    harness.topic("__consumer_offsets")
    answer = send(harness.connect(), "__consumer_offsets", batch(b"x"))
    assert answer.error_code == Error.INVALID_TOPIC


@pytest.mark.parametrize(("version", "error"), [(6, Error.UNSUPPORTED_COMPRESSION_TYPE), (7, Error.NONE)])
def test_zstd_needs_version_7(version: int, error: Error) -> None:
    harness = Harness()
    harness.topic("t")
    data = bytes(build([Record(0, 0, None, b"x" * 1000)], codec=Codec.ZSTD))
    assert send(harness.connect(), "t", data, version=version).error_code == error


@pytest.mark.parametrize("data", [None, b"", b"\0" * 61, batch(b"x")])
def test_versions_before_zstd_take_and_refuse_what_later_ones_do(data: bytes | None) -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    assert send(client, "t", data, version=6).error_code == send(client, "t", data, version=7).error_code


def test_a_topic_that_needs_more_replicas_refuses_acks_all_only() -> None:
    harness = Harness()
    harness.topic("t", min_insync_replicas=2)
    client = harness.connect()
    assert send(client, "t", batch(b"x"), acks=-1).error_code == Error.NONE, "more than there are nobody can want"
    both = (NodeId(1), NodeId(2))
    harness.partition("t").become(leader=NodeId(1), epoch=1, isr=(NodeId(1),), replicas=both)
    assert send(client, "t", batch(b"x"), acks=-1).error_code == Error.NOT_ENOUGH_REPLICAS
    assert send(client, "t", batch(b"x"), acks=1).error_code == Error.NONE


def test_only_the_leader_appends() -> None:
    harness = Harness()
    harness.topic("t")
    harness.partition("t").become(leader=NodeId(2), epoch=3, isr=(NodeId(2),))
    assert send(harness.connect(), "t", batch(b"x"), acks=1).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_topic_may_want_the_brokers_time() -> None:
    harness = Harness()
    harness.topic("t", message_timestamp_type="LogAppendTime")
    answer = send(harness.connect(), "t", batch(b"x", timestamp=1))
    assert answer.log_append_time_ms == harness.now.wall_ms


def test_a_disk_that_fails_is_told_to_the_client() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    harness.disk.fails_after = 0
    assert send(client, "t", batch(b"x")).error_code == Error.KAFKA_STORAGE_ERROR
    assert "a batch could not be written" in harness.logger
    assert send(client, "t", batch(b"x")).base_offset == 0


def test_an_index_that_can_not_be_written_fails_no_batch() -> None:
    harness = Harness()
    harness.topic("t", index_interval_bytes=0)
    client = harness.connect()
    harness.append("t", b"the first, which has a leader epoch to note")
    for number in range(1, 600):
        harness.disk.fails_after = 1  # the batch is written; whatever comes after it is not
        assert send(client, "t", batch(b"x")).base_offset == number
    harness.disk.fails_after = None
    assert len(harness.partition("t").log.segments) == 1
    response = client.ask(fetch(("t", 0, 599)), 12, FetchResponse)
    assert read(response) == {("t", 0): [b"x"]}
    harness.stop()
    harness.start()
    assert harness.append("t", b"y") == 600


# ---------------------------------------------------------------------- acks=0


def test_acks_none_has_no_answer() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(produce("t", batch(b"x"), acks=0), 9)
    assert not client.inbox
    assert harness.partition("t").high_watermark == 1
    client.ask(MetadataRequest(topics=[]), 9, MetadataResponse)


def test_acks_none_behind_a_parked_request_keeps_the_order() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=100, min_bytes=10_000), 12)
    client.send(produce("t", batch(b"x"), acks=0), 9)
    client.send(MetadataRequest(topics=[]), 9)
    assert not client.inbox
    harness.advance(100)
    client.take(FetchResponse)
    client.take(MetadataResponse)


def test_acks_none_ends_the_connection_when_it_fails() -> None:
    harness = Harness()
    client = harness.connect()
    client.send(produce("nowhere", batch(b"x"), acks=0), 9)
    assert client.closed == "a produce request with acks=0 failed: UNKNOWN_TOPIC_OR_PARTITION"


# ---------------------------------------------------------------------- idempotence


def test_a_duplicate_is_answered_with_its_first_offset() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    assert send(client, "t", idempotent(0, b"a", b"b")).base_offset == 0
    assert send(client, "t", idempotent(2, b"c")).base_offset == 2
    again = send(client, "t", idempotent(0, b"a", b"b"))
    assert (again.error_code, again.base_offset) == (Error.NONE, 0)
    assert harness.partition("t").log.end_offset == 3


def test_a_gap_in_the_sequence_is_refused() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    send(client, "t", idempotent(0, b"a"))
    assert send(client, "t", idempotent(2, b"c")).error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, "t", idempotent(1, b"b")).base_offset == 1


def test_an_old_epoch_is_refused() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    send(client, "t", idempotent(0, b"a", epoch=1))
    assert send(client, "t", idempotent(1, b"b", epoch=0)).error_code == Error.INVALID_PRODUCER_EPOCH
    assert send(client, "t", idempotent(0, b"b", epoch=2)).error_code == Error.NONE


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_duplicates_are_known_after_a_restart(end: str) -> None:
    harness = Harness()
    harness.topic("t")
    send(harness.connect(), "t", idempotent(0, b"a", b"b"))
    harness.stop() if end == "stop" else harness.kill()
    harness.start()
    client = harness.connect()
    assert send(client, "t", idempotent(0, b"a", b"b")).base_offset == 0
    assert send(client, "t", idempotent(3, b"d")).error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(client, "t", idempotent(2, b"c")).base_offset == 2


def test_an_idle_producer_is_forgotten() -> None:
    harness = Harness(producer_id_expiration_ms=1_000, producer_id_expiration_check_interval_ms=500)
    harness.topic("t")
    send(harness.connect(), "t", idempotent(0, b"a"))
    harness.advance(400)
    assert harness.partition("t").log.producers.known
    harness.advance(1_200)
    assert not harness.partition("t").log.producers.known


def test_an_id_from_the_broker_starts_a_sequence() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    granted = client.ask(InitProducerIdRequest(), 4, InitProducerIdResponse)
    data = batch(b"a", producer_id=granted.producer_id, producer_epoch=granted.producer_epoch, base_sequence=0)
    assert send(client, "t", data).error_code == Error.NONE


# ---------------------------------------------------------------------- flush.messages


def test_a_synced_topic_answers_when_the_disk_has_it() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    client = harness.connect()
    client.send(produce("t", batch(b"x")), 9)
    assert not client.inbox
    assert harness.partition("t").high_watermark == 0, "nobody reads what may still be lost"
    harness.release()
    assert produced(client.take(ProduceResponse)).base_offset == 0
    assert harness.partition("t").high_watermark == 1


def test_an_answered_record_of_a_synced_topic_survives_the_loss_of_power() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.append("t", b"safe")
    harness.lose_power()
    harness.start()
    assert read(harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"safe"]}


def test_requests_that_come_during_a_sync_share_the_next_one() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    clients = [harness.connect() for _ in range(5)]
    before = harness.syncs
    for client in clients:
        client.send(produce("t", batch(b"x")), 9)
    harness.release(1)
    assert [len(client.inbox) for client in clients] == [1, 0, 0, 0, 0]
    harness.release()
    assert [len(client.inbox) for client in clients] == [1, 1, 1, 1, 1]
    assert harness.syncs - before == 2


def test_a_request_to_two_synced_topics_waits_for_both() -> None:
    harness = Harness()
    harness.topic("a", flush_messages=1)
    harness.topic("b", flush_messages=1)
    harness.hold_syncs = True
    client = harness.connect()
    request = produce("a", batch(b"x"))
    request.topic_data += produce("b", batch(b"x")).topic_data
    client.send(request, 9)
    harness.release(1)
    assert not client.inbox
    harness.release()
    client.take(ProduceResponse)


def test_a_duplicate_waits_for_the_sync_of_its_original() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    first, second = harness.connect(), harness.connect()
    first.send(produce("t", idempotent(0, b"a")), 9)
    second.send(produce("t", idempotent(0, b"a")), 9)
    assert not second.inbox
    harness.release()
    assert produced(second.take(ProduceResponse)).base_offset == 0
    assert harness.partition("t").log.end_offset == 1


def test_every_nth_record_may_bring_a_sync() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=3)
    before = harness.syncs
    harness.append("t", b"1")
    harness.append("t", b"2")
    assert harness.syncs == before
    harness.append("t", b"3")
    assert harness.syncs == before + 1
    harness.append("t", b"4")
    assert harness.syncs == before + 1


def test_acks_none_on_a_synced_topic_is_readable_after_one_sync() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    client = harness.connect()
    client.send(produce("t", batch(b"x"), acks=0), 9)
    assert harness.partition("t").high_watermark == 1


def test_a_topic_may_be_synced_by_time() -> None:
    harness = Harness()
    harness.topic("t", flush_ms=5_000)
    harness.append("t", b"x")
    before = harness.syncs
    harness.advance(4_000)
    assert harness.syncs == before
    harness.advance(2_000)
    assert harness.syncs == before + 1
    harness.advance(20_000)
    assert harness.syncs == before + 1, "there was nothing new"


def test_a_topic_deleted_during_a_sync_answers_its_producers() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    client, admin = harness.connect(), harness.connect()
    client.send(produce("t", batch(b"x")), 9)
    client.send(produce("t", batch(b"y")), 9)
    admin.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    harness.release()
    assert len(client.inbox) == 2
    assert len(harness.broker.replicas.syncs) == 0


def idempotent(sequence: int, *values: bytes, epoch: int = 0) -> bytes:
    return batch(*values, producer_id=900, producer_epoch=epoch, base_sequence=sequence)


def test_what_a_dead_process_left_unsynced_is_synced_before_it_is_served() -> None:
    harness = Harness()
    harness.topic("t", flush_messages=1)
    harness.hold_syncs = True
    harness.connect().send(produce("t", idempotent(0, b"a")), 9)
    harness.kill()
    harness.hold_syncs = False
    harness.start()
    assert send(harness.connect(), "t", idempotent(0, b"a")).error_code == Error.NONE, "it is there already"
    harness.lose_power()
    harness.start()
    assert read(harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"a"]}


def test_a_damaged_first_batch_keeps_no_new_records_out() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"one")
    harness.append("t", b"two")
    harness.stop()
    harness.start()
    segment = harness.partition("t").log.segments[0]
    harness.damage(f"{segment._directory}/00000000000000000000.log", 16)
    answer = produced(harness.connect().ask(produce("t", batch(b"three")), 9, ProduceResponse))
    assert answer.error_code in (Error.NONE, Error.KAFKA_STORAGE_ERROR)


def test_what_lies_behind_damage_after_a_clean_stop_is_kept() -> None:
    harness = Harness()
    harness.topic("t")
    for value in (b"one", b"two", b"three"):
        harness.append("t", value)
    harness.stop()
    path = "t-0/00000000000000000000.log"
    whole = harness.disk.read(path)
    harness.damage(path, 16)
    harness.start()
    kept = harness.disk.read(path + ".damaged")
    assert (len(kept), kept[17:]) == (len(whole), whole[17:])
