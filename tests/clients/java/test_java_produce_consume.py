"""Kafka's Java producer and consumer: every codec, every shape of record, every way to choose a place."""

from collections import defaultdict

import pytest
from confluent_kafka import Producer

from clients.java.client import JavaKafka, Read, Sent

pytestmark = pytest.mark.java

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SHAPES = [
    Sent(b"plain", key=b"key"),
    Sent(None, key=b"key of a tombstone"),
    Sent(b"value without key"),
    Sent(b"", key=b""),
    Sent(None),
    Sent(b"1"),
    Sent(
        b"with headers",
        headers=[("name", b"value"), ("name", b"twice"), ("null", None), ("empty", b""), ("ü", b"\xff")],
    ),
    Sent(b"x" * 1_000, key=b"k" * 100),
    Sent(bytes(range(256)) * 400),
    Sent(b"of a time", timestamp_ms=1_600_000_000_000),
]


def shape(record: Sent | Read) -> tuple[object, ...]:
    return record.key, record.value, tuple(record.headers)


@pytest.mark.parametrize("codec", CODECS)
def test_records_of_every_shape_come_back_with_every_codec(java: JavaKafka, topic: str, codec: str) -> None:
    java.create_topic(topic)
    large = Sent(bytes(range(250)) * 4_000, key=b"1 MB")
    placed = java.produce(topic, [*SHAPES, large], compression_type=codec)
    assert [place.offset for place in placed] == list(range(len(SHAPES) + 1))
    read = java.consume(topic, {0: 0}, len(SHAPES) + 1)
    assert [shape(record) for record in read] == [shape(record) for record in [*SHAPES, large]]
    assert [record.offset for record in read] == [place.offset for place in placed]
    assert [record.timestamp_ms for record in read] == [place.timestamp_ms for place in placed]
    assert read[9].timestamp_ms == 1_600_000_000_000


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acknowledgement_stores(java: JavaKafka, topic: str, acks: str) -> None:
    java.create_topic(topic)
    placed = java.produce(topic, [Sent(b"a"), Sent(b"b")], acks=acks)
    assert [place.offset for place in placed] == ([-1, -1] if acks == "0" else [0, 1])
    assert [record.value for record in java.consume(topic, {0: 0}, 2)] == [b"a", b"b"]


def test_partition_named_by_the_producer_is_kept(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=3)
    placed = java.produce(topic, [Sent(b"%d" % number, partition=number % 3) for number in range(9)])
    assert [place.partition for place in placed] == [0, 1, 2] * 3
    assert [record.value for record in java.consume(topic, {1: 0}, 3)] == [b"1", b"4", b"7"]


def test_same_key_has_the_same_partition_in_java_and_librdkafka(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=7)
    keys = [b"key-%d" % number for number in range(50)]
    placed = java.produce(topic, [Sent(b"java", key=key) for key in keys])
    expected = {key: place.partition for key, place in zip(keys, placed, strict=True)}
    assert set(expected.values()) == set(range(7))
    producer = Producer({"bootstrap.servers": java.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(topic, b"librdkafka", key=key)
    assert producer.flush(20) == 0
    found = defaultdict(set)
    for record in java.consume(topic, dict.fromkeys(range(7), 0), 2 * len(keys)):
        found[record.key].add((record.partition, record.value))
    assert found == {key: {(place, b"java"), (place, b"librdkafka")} for key, place in expected.items()}


def test_round_robin_reaches_every_partition(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=4)
    partitioner = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    placed = java.produce(topic, [Sent(b"x") for _ in range(40)], partitioner_class=partitioner)
    assert {place.partition for place in placed} == {0, 1, 2, 3}


def test_reading_begins_at_any_offset_even_inside_a_batch(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"%d" % number) for number in range(100)], linger_ms="100", compression_type="lz4")
    for start in (0, 1, 50, 99):
        read = java.consume(topic, {0: start}, 1)
        assert (read[0].offset, read[0].value) == (start, b"%d" % start)


def test_offset_out_of_range_resets_to_the_beginning(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"first"), Sent(b"second")])
    read = java.consume(topic, {0: 1_000}, 2, auto_offset_reset="earliest")
    assert [record.offset for record in read] == [0, 1]


def test_offsets_are_found_by_time(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=2)
    begin_ms = 1_700_000_000_000
    java.produce(topic, [Sent(b"x", partition=0, timestamp_ms=begin_ms + 1_000 * number) for number in range(10)])
    assert java.offsets_for_times(topic, {0: begin_ms}) == {0: (0, begin_ms)}
    assert java.offsets_for_times(topic, {0: begin_ms + 3_500}) == {0: (4, begin_ms + 4_000)}
    assert java.offsets_for_times(topic, {0: begin_ms + 60_000, 1: begin_ms}) == {0: None, 1: None}


def test_time_of_append_replaces_the_producers(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    [placed] = java.produce(topic, [Sent(b"x", timestamp_ms=1_600_000_000_000)])
    [read] = java.consume(topic, {0: 0}, 1)
    assert placed.timestamp_ms == read.timestamp_ms > 1_600_000_000_000


def test_record_beyond_the_topics_limit_is_refused(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, configs={"max.message.bytes": "2000"})
    placed = java.try_produce(topic, [Sent(b"x" * 3_000)])
    assert [place.error for place in placed] == ["RecordTooLargeException"]
    [kept] = java.produce(topic, [Sent(b"x" * 1_000)])
    assert kept.offset == 0


def test_time_outside_the_allowed_is_refused(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, configs={"message.timestamp.before.max.ms": "60000"})
    [placed] = java.try_produce(topic, [Sent(b"x", timestamp_ms=1_600_000_000_000)])
    assert placed.error == "InvalidTimestampException"


def test_thousands_of_idempotent_records_in_flight_keep_their_order(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    records = [Sent(b"%d" % number) for number in range(5_000)]
    placed = java.produce(topic, records, batch_size="1000", linger_ms="0", enable_idempotence="true")
    assert [place.offset for place in placed] == list(range(5_000))
    read = java.consume(topic, {0: 0}, 5_000)
    assert [record.value for record in read] == [record.value for record in records]


def test_topic_is_made_when_first_written_to(java: JavaKafka, topic: str) -> None:
    [placed] = java.produce(topic, [Sent(b"x")])
    assert placed.offset == 0


def test_one_fetch_serves_many_partitions_within_its_limit(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=5)
    java.produce(topic, [Sent(b"v" * 2_000, partition=number % 5) for number in range(100)])
    read = java.consume(
        topic, dict.fromkeys(range(5), 0), 100, fetch_max_bytes="5000", max_partition_fetch_bytes="3000"
    )
    assert sorted((record.partition, record.offset) for record in read) == [(p, o) for p in range(5) for o in range(20)]
