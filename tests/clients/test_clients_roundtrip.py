"""What a client sends comes back: every codec, every shape of record, every way to choose its place, every reader."""

from collections import defaultdict
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, TopicPartition

from clients.drivers import Client, Header, Librdkafka, MakeTopic, Read, Sent, clients
from cordwood.record.batch import batches
from cordwood.wire.messages import FetchRequest, FetchRequestPartition, FetchRequestTopic, FetchResponse
from support.raw import RawClient

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS: tuple[Header, ...] = (("name", b"value"), ("name", b"twice"), ("empty", b""), ("ü", b"\xff"))
SHAPES = [
    Sent(b"plain", key=b"key"),
    Sent(None, key=b"key of a tombstone"),
    Sent(b"value without key"),
    Sent(b"", key=b""),
    Sent(b"1"),
    Sent(b"with headers", headers=HEADERS),
    Sent(b"x" * 1_000, key=b"k" * 100),
    Sent(bytes(range(256)) * 400),
    Sent(b"of a time", timestamp_ms=1_600_000_000_000),
]
# The other two clients refuse to send these.
SHAPES_OF_LIBRDKAFKA = [Sent(None), Sent(None, headers=(("null", None), ("", b"no name"))), Sent(None, key=b"")]
BEGIN_MS = 1_700_000_000_000
# What Java's client makes of these keys on a topic of 12 partitions.
JAVA_PARTITIONS_OF_12 = {
    b"": 9,
    b"1": 3,
    b"21": 0,
    b"foobar": 6,
    b"a-little-bit-long-string": 8,
    b"a-little-bit-longer-string": 11,
    b"user-42": 4,
    "grüße".encode(): 8,
}


def shape(record: Sent | Read) -> tuple[object, ...]:
    return record.key, record.value, record.headers


def numbers(count: int, *, partition: int | None = None) -> list[Sent]:
    return [Sent(b"%d" % number, partition=partition) for number in range(count)]


def whole(partitions: int) -> dict[int, int]:
    """Every partition from its beginning."""
    return dict.fromkeys(range(partitions), 0)


def codecs_stored(bootstrap: str, topic: str) -> set[str]:
    """The codecs of the batches in a topic's first partition."""
    place = FetchRequestPartition(partition=0, partition_max_bytes=10_000_000)
    request = FetchRequest(min_bytes=1, topics=[FetchRequestTopic(topic=topic, partitions=[place])])
    with RawClient(bootstrap) as raw:
        [found] = raw.ask(request, FetchResponse, version=12).responses
    [partition] = found.partitions
    assert isinstance(partition.records, memoryview)
    return {header.codec.name.lower() for _, header in batches(partition.records)}


@pytest.mark.parametrize("codec", CODECS)
def test_what_one_client_writes_every_client_reads(client: Client, bootstrap: str, topic: str, codec: str) -> None:
    placed = client.produce(topic, SHAPES, codec=codec)
    assert [place.offset for place in placed] == list(range(len(SHAPES)))
    for reader in clients(bootstrap):
        read = reader.consume(topic, {0: 0}, len(SHAPES))
        assert [shape(record) for record in read] == [shape(record) for record in SHAPES], reader.name
        assert [record.offset for record in read] == list(range(len(SHAPES)))
        assert read[-1].timestamp_ms == 1_600_000_000_000
    # A client that thinks the broker too old for a codec leaves it out and says nothing.
    assert codec in codecs_stored(bootstrap, topic)


def test_records_of_nothing_come_back(bootstrap: str, topic: str) -> None:
    Librdkafka(bootstrap).produce(topic, SHAPES_OF_LIBRDKAFKA)
    for reader in clients(bootstrap):
        read = reader.consume(topic, {0: 0}, len(SHAPES_OF_LIBRDKAFKA))
        assert [shape(record) for record in read] == [shape(record) for record in SHAPES_OF_LIBRDKAFKA], reader.name


@pytest.mark.parametrize("size", [1, 1_000, 1_000_000])
def test_records_of_any_size_come_back(client: Client, topic: str, size: int) -> None:
    values = [bytes((start + 7 * index) % 256 for index in range(250)) * (size // 250 + 1) for start in (0, 1)]
    client.produce(topic, [Sent(value[:size]) for value in values])
    assert [record.value for record in client.consume(topic, {0: 0}, 2)] == [value[:size] for value in values]


def test_partition_named_by_the_producer_is_kept(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    placed = client.produce(topic, [Sent(b"%d" % number, partition=number % 3) for number in range(9)])
    assert [place.partition for place in placed] == [0, 1, 2] * 3
    assert [record.value for record in client.consume(topic, {1: 0}, 3)] == [b"1", b"4", b"7"]


def test_same_key_goes_to_the_same_partition_in_every_client(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=12)
    keys = [b"key-%d" % number for number in range(200)] + [bytes([byte] * (byte % 9 + 1)) for byte in range(256)]
    places: defaultdict[bytes, set[int]] = defaultdict(set)
    for client in clients(bootstrap):
        for key, place in zip(keys, client.produce(topic, [Sent(b"x", key=key) for key in keys]), strict=True):
            places[key].add(place.partition)
    assert {key: len(found) for key, found in places.items() if len(found) > 1} == {}
    assert set().union(*places.values()) == set(range(12))


def test_keys_go_where_javas_client_puts_them(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=12)
    placed = client.produce(topic, [Sent(b"x", key=key) for key in JAVA_PARTITIONS_OF_12])
    assert [place.partition for place in placed] == list(JAVA_PARTITIONS_OF_12.values())


def test_records_without_key_reach_every_partition(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=4)
    placed = client.produce(topic, numbers(200))
    assert {place.partition for place in placed} == {0, 1, 2, 3}
    read = client.consume(topic, whole(4), 200)
    assert sorted(int(record.value or b"") for record in read) == list(range(200))


def test_reading_begins_at_any_offset_even_inside_a_batch(client: Client, topic: str) -> None:
    client.produce(topic, numbers(100), codec="lz4", linger_ms=100)
    for start in (0, 1, 50, 99):
        [record] = client.consume(topic, {0: start}, 1)
        assert (record.offset, record.value) == (start, b"%d" % start)


def test_ends_of_partitions_are_known(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    client.produce(topic, numbers(7, partition=1))
    assert client.ends(topic, [0, 1]) == {0: (0, 0), 1: (0, 7)}


def test_offsets_are_found_by_time(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    client.produce(topic, [Sent(b"x", partition=0, timestamp_ms=BEGIN_MS + 1_000 * step) for step in range(10)])
    assert client.offsets_for_times(topic, {0: 0}) == {0: 0}
    assert client.offsets_for_times(topic, {0: BEGIN_MS}) == {0: 0}
    assert client.offsets_for_times(topic, {0: BEGIN_MS + 3_500}) == {0: 4}
    assert client.offsets_for_times(topic, {0: BEGIN_MS + 60_000, 1: BEGIN_MS}) == {0: None, 1: None}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_level_of_acknowledgement_stores(client: Client, topic: str, acks: str) -> None:
    placed = client.produce(topic, numbers(3), acks=acks)
    if acks != "0":  # nobody knows the offset of what is not acknowledged; the clients make up different ones
        assert [place.offset for place in placed] == [0, 1, 2]
    assert [record.value for record in client.consume(topic, {0: 0}, 3)] == [b"0", b"1", b"2"]


def test_idempotent_records_in_many_batches_keep_their_order(client: Client, bootstrap: str, topic: str) -> None:
    records = numbers(1_000)
    placed = client.produce(topic, records, idempotent=True, batch_bytes=500, linger_ms=0)
    assert [place.offset for place in placed] == list(range(1_000))
    read = client.consume(topic, {0: 0}, 1_000)
    assert [record.value for record in read] == [record.value for record in records]
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        place = TopicPartition(topic, 0)
        [producer] = admin.describe_producers([place])[place].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, 999)
