"""Record batches that lie, and batches that grow when somebody looks at them."""

from functools import cache

import cramjam
import pytest

from attacks.arena import MIB, create_topic, fetched, produced, read_all
from cordwood.errors import Error
from cordwood.record.batch import Codec
from cordwood.record.build import Record, build
from cordwood.record.glance import RECORDS_MAX
from cordwood.wire.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
    ListOffsetsResponsePartition,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from support.batches import PRODUCE_VERSION, altered, one_record, produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, encoded

GOOD = values_batch(b"one", b"two", b"three", timestamp=1_000_000)
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


def refused(client: RawClient, topic: str, batch: bytes | None) -> Error:
    """The error that a batch meets; a good batch behind it in the same request is taken."""
    answer = client.ask(produce(topic, batch, GOOD), ProduceResponse, version=PRODUCE_VERSION)
    outcome, good = answer.responses[0].partition_responses
    assert good.error_code == Error.NONE
    return Error(outcome.error_code)


def list_offset(client: RawClient, topic: str, timestamp: int) -> ListOffsetsResponsePartition:
    wanted = ListOffsetsRequestPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsRequestTopic(name=topic, partitions=[wanted])])
    return client.ask(request, ListOffsetsResponse).topics[0].partitions[0]


def test_a_corrupt_checksum_is_a_corrupt_message(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    assert refused(client, topic, altered(GOOD, crc=0)) is Error.CORRUPT_MESSAGE


def test_any_flipped_bit_is_refused(client: RawClient, topic: str) -> None:
    """Everything but the base offset and the leader epoch, which the broker writes, is under the checksum."""
    create_topic(client, topic)
    for position in range(16, len(GOOD)):
        damaged = bytearray(GOOD)
        damaged[position] ^= 1 << position % 8
        assert produced(client, topic, bytes(damaged)).error_code != Error.NONE
    assert fetched(client, topic, 0) == b""


@pytest.mark.parametrize(
    ("magic", "error"),
    [
        (0, Error.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (1, Error.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (3, Error.CORRUPT_MESSAGE),
        (127, Error.CORRUPT_MESSAGE),
        (-1, Error.CORRUPT_MESSAGE),
    ],
)
def test_another_record_format_is_refused(client: RawClient, topic: str, magic: int, error: Error) -> None:
    create_topic(client, topic)
    assert refused(client, topic, altered(GOOD, magic=magic)) is error


@pytest.mark.parametrize("length", [0, 1, 48, 49, len(GOOD) - 13, len(GOOD) - 11, INT_MAX, -1, -(2**31)])
def test_a_batch_length_that_is_not_its_own_is_refused(client: RawClient, topic: str, length: int) -> None:
    create_topic(client, topic)
    assert refused(client, topic, altered(GOOD, length=length)) in (Error.CORRUPT_MESSAGE, Error.INVALID_RECORD)


@pytest.mark.parametrize("size", [0, 1, 11, 12, 16, 17, 60, 61])
def test_a_batch_that_is_cut_off_is_refused(client: RawClient, topic: str, size: int) -> None:
    create_topic(client, topic)
    assert refused(client, topic, GOOD[:size]) in (Error.CORRUPT_MESSAGE, Error.INVALID_RECORD)


def test_no_batch_at_all_is_refused(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    assert refused(client, topic, None) is Error.INVALID_RECORD


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 2},
        {"record_count": 4},
        {"record_count": 0},
        {"record_count": -1},
        {"record_count": INT_MAX, "last_offset_delta": INT_MAX - 1},
        {"record_count": INT_MAX},
        {"record_count": -(2**31)},
        {"last_offset_delta": 1},
        {"last_offset_delta": -1},
        {"last_offset_delta": INT_MAX},
        {"last_offset_delta": -(2**31)},
        {"base_offset": 1},
        {"base_offset": -1},
        {"base_offset": LONG_MAX},
    ],
    ids=str,
)
def test_counts_that_contradict_each_other_are_refused(client: RawClient, topic: str, fields: dict[str, int]) -> None:
    create_topic(client, topic)
    assert refused(client, topic, altered(GOOD, **fields)) is Error.INVALID_RECORD


def test_two_batches_for_one_partition_are_refused(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    assert refused(client, topic, GOOD + GOOD) is Error.INVALID_RECORD


def test_a_batch_inside_a_batch_is_taken_for_bytes(client: RawClient, topic: str) -> None:
    create_topic(client, topic, {"compression.type": "gzip"})
    nested = altered(GOOD, bytes(cramjam.gzip.compress(GOOD)), attributes=Codec.GZIP, record_count=1)
    assert refused(client, topic, altered(nested, last_offset_delta=0)) is Error.NONE
    create_topic(client, topic + "-2", {"cleanup.policy": "compact"})
    assert refused(client, topic + "-2", altered(nested, last_offset_delta=0)) is Error.INVALID_RECORD


@pytest.mark.parametrize(("attributes", "error"), [
    (0x20, Error.INVALID_RECORD),  # control
    (0x30, Error.INVALID_RECORD),  # control, transactional
    (0x40, Error.INVALID_RECORD),  # delete horizon
    (0x80, Error.INVALID_RECORD),
    (0x4000, Error.INVALID_RECORD),
    (-0x8000, Error.INVALID_RECORD),
    (-1, Error.UNSUPPORTED_COMPRESSION_TYPE),
    (5, Error.UNSUPPORTED_COMPRESSION_TYPE),
    (7, Error.UNSUPPORTED_COMPRESSION_TYPE),
])  # fmt: skip
def test_attributes_that_no_client_may_set_are_refused(
    client: RawClient, topic: str, attributes: int, error: Error
) -> None:
    create_topic(client, topic)
    batch = altered(GOOD, attributes=attributes, producer_id=5, producer_epoch=0, base_sequence=0)
    assert refused(client, topic, batch) is error


def test_a_transactional_batch_without_a_transaction_is_refused(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    batch = altered(GOOD, attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0)
    assert refused(client, topic, batch) is Error.INVALID_TXN_STATE
    without_producer = altered(GOOD, attributes=0x10)
    assert refused(client, topic, without_producer) is Error.INVALID_RECORD


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_id": 0, "producer_epoch": -1, "base_sequence": 0},
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": -1},
        {"producer_id": LONG_MAX, "producer_epoch": -32768, "base_sequence": -(2**31)},
    ],
    ids=str,
)
def test_a_producer_without_epoch_or_sequence_is_refused(client: RawClient, topic: str, fields: dict[str, int]) -> None:
    create_topic(client, topic)
    assert refused(client, topic, altered(GOOD, **fields)) is Error.INVALID_RECORD


def test_extreme_producers_and_sequences_do_no_harm(client: RawClient, topic: str) -> None:
    create_topic(client, topic, {"segment.index.bytes": 4})  # each batch begins a segment, with a snapshot of producers
    for producer_id, epoch, sequence in [
        (LONG_MAX, 32767, INT_MAX),
        (LONG_MAX, 32767, 2),
        (LONG_MAX, 32767, 2),
        (LONG_MAX, 0, 0),
        (0, 0, INT_MAX - 1),
        (0, 1, 0),
        (-(2**63), -32768, -(2**31)),
        (-2, 5, 5),
    ]:
        batch = altered(GOOD, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        produced(client, topic, batch)
    assert client.ask(InitProducerIdRequest(transaction_timeout_ms=1), InitProducerIdResponse).error_code == 0


@pytest.mark.parametrize("timestamp", [-(2**63), -2, -1, 0, LONG_MAX])
@pytest.mark.parametrize("config", [
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.after.max.ms": LONG_MAX},
    {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
    {"message.timestamp.after.max.ms": LONG_MAX, "compression.type": "gzip"},
    {"cleanup.policy": "compact"},
], ids=str)  # fmt: skip
def test_timestamps_beyond_all_bounds_do_no_harm(
    client: RawClient, topic: str, timestamp: int, config: dict[str, object]
) -> None:
    """In the header, in the records, and in their sum, which may not even fit into 64 bits."""
    assert create_topic(client, topic, config).error_code == Error.NONE
    for delta in (0, 2**62, LONG_MAX, -(2**62), -(2**63)):
        batch = one_record(timestamp_delta=delta)
        for base, largest in ((timestamp, timestamp), (timestamp, 0), (0, timestamp)):
            produced(client, topic, altered(batch, base_timestamp=base, max_timestamp=largest))
    for asked in (timestamp, 0, -3, LONG_MAX):
        assert list_offset(client, topic, asked).error_code in (Error.NONE, Error.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("offset_delta", [-1, 1, 2**62, LONG_MAX, -(2**63)])
def test_offsets_of_records_beyond_all_bounds_do_no_harm(client: RawClient, topic: str, offset_delta: int) -> None:
    create_topic(client, topic)
    assert produced(client, topic, GOOD).error_code == Error.NONE
    assert produced(client, topic, one_record(offset_delta=offset_delta)).error_code == Error.NONE
    for asked in (0, -3, 1_000_000, 1_000_001):
        assert list_offset(client, topic, asked).error_code == Error.NONE


def test_offsets_burnt_by_huge_counts_do_no_harm(client: RawClient, topic: str) -> None:
    """A compressed batch may claim two thousand million records: nobody looks inside."""
    create_topic(client, topic)
    payload = bytes(cramjam.gzip.compress(b"nothing"))
    batch = altered(GOOD, payload, attributes=1, record_count=INT_MAX, last_offset_delta=INT_MAX - 1)
    offsets = [produced(client, topic, batch).base_offset for _ in range(5)]
    assert offsets == [INT_MAX * number for number in range(5)]
    assert produced(client, topic, GOOD).base_offset == INT_MAX * 5
    assert len(fetched(client, topic, INT_MAX * 5 + 1)) == len(GOOD)
    assert list_offset(client, topic, 1_000_000).error_code == Error.NONE
    assert list_offset(client, topic, -3).error_code == Error.NONE


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@pytest.mark.parametrize("policy", ["compact", "recompress"])
def test_garbage_for_compressed_records_is_refused(client: RawClient, topic: str, codec: Codec, policy: str) -> None:
    other = "gzip" if codec is not Codec.GZIP else "zstd"
    create_topic(client, topic, {"cleanup.policy": "compact"} if policy == "compact" else {"compression.type": other})
    sound = bytes(build([Record(0, 0, b"k", b"v" * 1000)], codec=codec))[61:]
    for payload in (b"", b"\0", b"garbage", sound[:-1], sound[1:], sound + sound, bytes(100), b"\xff" * 100):
        batch = altered(GOOD, payload, attributes=codec)
        assert produced(client, topic, batch).error_code == Error.INVALID_RECORD, payload


def bomb(codec: Codec, size: int) -> bytes:
    """A batch that is small, and *size* bytes of zeros when decompressed."""
    zeros = bytes(size)
    match codec:
        case Codec.GZIP:
            payload = bytes(cramjam.gzip.compress(zeros, 9))
        case Codec.SNAPPY:
            payload = bytes(cramjam.snappy.compress_raw(zeros))
        case Codec.LZ4:
            payload = bytes(cramjam.lz4.compress(zeros))
        case _:
            payload = bytes(cramjam.zstd.compress(zeros, 19))
    return altered(GOOD, payload, attributes=codec, record_count=1, last_offset_delta=0)


BOMB_BYTES = 200 * MIB


@pytest.fixture(scope="module", params=[Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.name)
def a_bomb(request: pytest.FixtureRequest) -> bytes:
    return bomb(request.param, BOMB_BYTES)


def test_a_bomb_on_a_topic_that_compresses_anew_is_refused(client: RawClient, topic: str, a_bomb: bytes) -> None:
    create_topic(client, topic, {"compression.type": "snappy"})
    assert refused(client, topic, a_bomb) is Error.INVALID_RECORD


def test_a_bomb_on_a_compacted_topic_is_refused(client: RawClient, topic: str, a_bomb: bytes) -> None:
    create_topic(client, topic, {"cleanup.policy": "compact"})
    assert refused(client, topic, a_bomb) is Error.INVALID_RECORD


def test_a_bomb_does_not_go_off_when_a_time_is_looked_up(client: RawClient, topic: str, a_bomb: bytes) -> None:
    create_topic(client, topic)
    for _ in range(3):
        assert produced(client, topic, a_bomb).error_code == Error.NONE
    assert list_offset(client, topic, 1).error_code == Error.NONE
    assert list_offset(client, topic, -3).error_code == Error.NONE


def test_a_snappy_bomb_says_its_size_first(client: RawClient, topic: str) -> None:
    create_topic(client, topic, {"cleanup.policy": "compact"})
    for claimed in (b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x01", b"\xff" * 10):
        batch = altered(GOOD, claimed + b"\0" * 20, attributes=Codec.SNAPPY)
        assert refused(client, topic, batch) is Error.INVALID_RECORD


@cache
def tiny_records(count: int, *, last_timestamp: int = 0) -> bytes:
    """Many records of a few bytes each, very well compressed: each of them costs whoever looks at it."""
    if count > RECORDS_MAX:  # nobody will look inside
        return altered(tiny_records(1), record_count=count, last_offset_delta=count - 1)
    batch = bytes(build([Record(number, 0, None, None) for number in range(count)], codec=Codec.ZSTD, level=3))
    return altered(batch, max_timestamp=last_timestamp)


@pytest.mark.parametrize("count", [200_000, RECORDS_MAX + 1])
def test_very_many_tiny_records_in_one_batch_stop_nobody(
    client: RawClient, broker: BrokerProcess, topic: str, count: int
) -> None:
    """Decompressed they stay below the limit, but as objects they would take a hundred times that."""
    before = broker.forget_peak()
    create_topic(client, topic, {"compression.type": "gzip"})
    create_topic(client, topic + "-2", {"cleanup.policy": "compact"})
    batch = tiny_records(count)
    outcome = Error.NONE if count <= RECORDS_MAX else Error.INVALID_RECORD
    assert produced(client, topic, batch).error_code == outcome
    assert produced(client, topic + "-2", batch).error_code == Error.INVALID_RECORD
    assert broker.peak_rss_bytes - before < 80 * MIB


def test_a_time_that_no_record_has_is_not_searched_in_every_lying_batch(client: RawClient, topic: str) -> None:
    """The headers say that a record is that young; none is. One look must do."""
    create_topic(client, topic)
    batch = tiny_records(200_000, last_timestamp=5_000)
    for _ in range(20):
        assert produced(client, topic, batch).error_code == Error.NONE
    assert list_offset(client, topic, 5_000).error_code == Error.NONE


def test_record_fields_that_lie_are_refused_where_records_are_read(client: RawClient, topic: str) -> None:
    create_topic(client, topic, {"cleanup.policy": "compact"})
    length = bytes([40])  # 20 bytes follow
    for record in (
        b"\xff" * 10,  # a length without end
        b"\xfe\xff\xff\xff\x0f" + bytes(20),  # a length of 2³¹-1
        b"\x01" + bytes(20),  # a length of -1
        length + b"\0\0\0" + b"\xfe\xff\xff\xff\x0f" + bytes(12),  # a key of 2³¹-1 bytes
        length + b"\0\0\0\x02k\x02v" + b"\xfe\xff\xff\xff\x0f" + bytes(8),  # 2³¹-1 headers
        length + b"\0\0\0\x02k\x02v" + b"\x01" + bytes(12),  # -1 headers
        length + b"\0\0\0\x02k\x02v" + b"\x02\x01" + bytes(11),  # a header without a name
        length + b"\0\0\x02\x02k\x02v\0" + bytes(12),  # offset 1 instead of 0
        length + b"\0\0\0\x02k\x02v\0" + bytes(12),  # longer than its parts
    ):
        batch = altered(GOOD, record, record_count=1, last_offset_delta=0)
        assert produced(client, topic, batch).error_code == Error.INVALID_RECORD, record


def test_a_failed_batch_without_acknowledgement_closes_the_connection(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, topic)
        client.send(produce(topic, altered(GOOD, crc=0), acks=0), version=PRODUCE_VERSION)
        assert client.closed()
    assert broker.says("acks=0 failed: CORRUPT_MESSAGE")


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_acks_that_nobody_knows_are_refused(client: RawClient, topic: str, acks: int) -> None:
    create_topic(client, topic)
    assert produced(client, topic, GOOD, acks=acks).error_code == Error.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_clients_do_not_write_to_internal_topics(client: RawClient, name: str) -> None:
    client.ask(MetadataRequest(topics=[]), MetadataResponse)
    create_topic(client, name)
    assert produced(client, name, GOOD).error_code in (Error.INVALID_TOPIC, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_batch_larger_than_the_topic_takes_is_refused(client: RawClient, topic: str) -> None:
    create_topic(client, topic, {"max.message.bytes": 1000})
    assert refused(client, topic, values_batch(b"x" * 1000)) is Error.MESSAGE_TOO_LARGE
    assert len(read_all(client, topic)) == 3


def test_many_bombs_in_one_request_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """A bomb of two kilobytes takes 50 ms to find out about. What is left of the request is for another time."""
    create_topic(client, topic, {"cleanup.policy": "compact"})
    batch = bomb(Codec.ZSTD, 15 * MIB)
    answer = client.ask(produce(topic, *[batch] * 1000), ProduceResponse, version=PRODUCE_VERSION)
    errors = [partition.error_code for partition in answer.responses[0].partition_responses]
    assert set(errors) == {Error.INVALID_RECORD, Error.REQUEST_TIMED_OUT}
    assert produced(client, topic, GOOD).error_code == Error.NONE


def test_many_large_batches_at_once_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """One request after the other without waiting: between them others have their turn."""
    create_topic(client, topic, {"cleanup.policy": "compact"})
    frame = encoded(produce(topic, tiny_records(200_000)), version=PRODUCE_VERSION)
    client.send_bytes(frame * 10)
    for _ in range(10):
        assert client.receive_frame()


def test_many_times_looked_up_at_once_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    count = 10
    create_topic(client, topic, partitions=count)
    batch = tiny_records(200_000, last_timestamp=5_000)
    for partition in range(count):
        client.ask(produce(topic, batch, partition=partition), ProduceResponse, version=PRODUCE_VERSION)
    wanted = [ListOffsetsRequestPartition(partition_index=number, timestamp=4_000) for number in range(count)]
    request = ListOffsetsRequest(topics=[ListOffsetsRequestTopic(name=topic, partitions=wanted)])
    answer = client.ask(request, ListOffsetsResponse)
    assert [(p.partition_index, p.error_code) for p in answer.topics[0].partitions] == [(n, 0) for n in range(count)]
