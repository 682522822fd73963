"""Record batches, sound and unsound, and the requests that carry them."""

from collections.abc import Sequence

from cordwood.record.batch import HEADER_SIZE, BatchHeader, header_at
from cordwood.record.build import Record, build, seal
from cordwood.wire.messages import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic

PRODUCE_VERSION = 11  # topics by name
FETCH_VERSION = 12  # topics by name


def values_batch(*values: bytes, timestamp: int = 0) -> bytes:
    return bytes(build([Record(offset, timestamp, b"k", value) for offset, value in enumerate(values)]))


def altered(batch: bytes, payload: bytes | None = None, /, **fields: int) -> bytes:
    """The batch with other header fields, or another payload, and with a CRC and a length that fit unless given."""
    body = batch[HEADER_SIZE:] if payload is None else payload
    header: BatchHeader = header_at(batch).replaced(length=HEADER_SIZE - 12 + len(body))
    changed = bytearray(HEADER_SIZE) + body
    sealed = bytearray(seal(changed, header.replaced(**{k: v for k, v in fields.items() if k != "crc"})))
    if "crc" in fields:
        sealed[17:21] = fields["crc"].to_bytes(4, "big")
    return bytes(sealed)


def one_record(*, timestamp_delta: int = 0, offset_delta: int = 0) -> bytes:
    """A batch of one record with any distances from its header."""
    body = b"\0" + _varint(timestamp_delta) + _varint(offset_delta) + b"\x02k\x02v\0"
    return altered(values_batch(b"v"), _varint(len(body)) + body)


def _varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    groups = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def produce(topic: str, *batches: bytes | None, acks: int = 1, partition: int = 0) -> ProduceRequest:
    """A request with one or more entries, all for one partition."""
    entries = [ProduceRequestPartition(index=partition, records=batch) for batch in batches]
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[ProduceRequestTopic(name=topic, partition_data=entries)]
    )


def values_of(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]
