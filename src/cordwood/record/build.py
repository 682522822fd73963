"""The records inside a batch: read them one by one, checking every length first, or build a batch of them.

The broker's usual paths never come here. It looks only into batches in which it searches for a timestamp, those of
topics whose settings concern single records (keys, timestamp limits, another codec), and control batches.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from cordwood.errors import CorruptData
from cordwood.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from cordwood.ports import Buffer
from cordwood.record.crc import crc32c

from .batch import (
    ATTRIBUTES_AT,
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
)
from .codecs import compress, decompress

Headers = Sequence[tuple[str, bytes | None]]


class Record(NamedTuple):
    """One record as stored in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def build(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """A batch of at least one record. Its base offset is the first record's offset, its last offset the last one's."""
    assert records, "a batch has at least one record"
    base_offset = records[0].offset
    base_timestamp = records[0].timestamp
    body = bytearray()
    for record in records:
        body += _encoded(record, base_offset, base_timestamp)
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    max_timestamp = max(record.timestamp for record in records)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    payload = compress(codec, body, level)
    batch = bytearray(HEADER_SIZE) + payload
    header = BatchHeader(
        base_offset=base_offset,
        length=len(batch) - LENGTH_END,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return seal(batch, header)


def build_pairs(pairs: Iterable[tuple[bytes, bytes | None]], *, timestamp: int, codec: Codec = Codec.NONE) -> bytearray:
    """A batch of keys and values with the same timestamp, from offset 0: what ``build`` would make of them, in a third
    of the time. This broker's coordinators write thousands of such records a second.
    """
    parts: list[bytes] = []
    count, lengths = 0, _LENGTHS
    for key, value in pairs:
        if value is None:
            length, value = _MINUS_ONE, b""
        else:
            length = lengths[len(value)] if len(value) < _LENGTHS_MAX else encode_varint(len(value))
        key_length = lengths[len(key)] if len(key) < _LENGTHS_MAX else encode_varint(len(key))
        # Attributes and timestamp delta are 0, and there are no headers.
        record = b"".join((b"\0\0", encode_varint(count), key_length, key, length, value, b"\0"))
        parts += lengths[len(record)] if len(record) < _LENGTHS_MAX else encode_varint(len(record)), record
        count += 1
    assert count, "a batch has at least one record"
    batch = bytearray(HEADER_SIZE) + compress(codec, b"".join(parts), None)
    header = BatchHeader(
        base_offset=0,
        length=len(batch) - LENGTH_END,
        leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=count,
    )
    return seal(batch, header)


def seal(batch: bytearray, header: BatchHeader) -> bytearray:
    """Write *header* over the beginning of *batch*, with the CRC of the resulting bytes."""
    HEADER.pack_into(batch, 0, *header.numbers())
    _CRC.pack_into(batch, ATTRIBUTES_AT - _CRC.size, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def build_values(values: Sequence[bytes | None], *, timestamp: int = NO_TIMESTAMP) -> bytearray:
    """The simplest batch: values without keys, all with the same timestamp, from offset 0."""
    return build([Record(offset, timestamp, None, value) for offset, value in enumerate(values)])


def records(batch: Buffer, header: BatchHeader, *, limit: int) -> Iterator[Record]:
    """The records of a whole batch, at most *limit* bytes when decompressed. ``CorruptData`` if they are malformed."""
    body = memoryview(decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size], limit))
    position = 0
    for _ in range(header.record_count):
        record, position = _decoded(body, position, header)
        yield record
    if position != len(body):
        raise CorruptData(f"{len(body) - position} bytes are left after the last record of a batch")


def _decoded(body: memoryview, position: int, header: BatchHeader) -> tuple[Record, int]:
    length, position = read_varint(body, position, len(body))
    end = position + length
    if length < 0 or end > len(body):
        raise CorruptData(f"a record cannot be {length} bytes long")
    timestamp_delta, position = read_varint(body, position + 1, end)  # the byte before it: attributes, unused
    offset_delta, position = read_varint(body, position, end)
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    header_count, position = read_varint(body, position, end)
    headers: list[tuple[str, bytes | None]] = []
    if header_count:
        headers, position = _read_headers(body, position, end, header_count)
    if position != end:
        raise CorruptData("a record is longer than its parts")
    timestamp = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_headers(body: memoryview, position: int, end: int, count: int) -> tuple[list[tuple[str, bytes | None]], int]:
    if not 0 <= count <= (end - position) // 2:  # a header is two lengths at least
        raise CorruptData(f"a record cannot have {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(body, position, end)
        if name is None:
            raise CorruptData("a record header has no name")
        value, position = _read_bytes(body, position, end)
        headers.append((name.decode(errors="replace"), value))
    return headers, position


def _read_bytes(body: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(body, position, end)
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptData(f"{length} bytes do not fit into the rest of a record")
    return bytes(body[position : position + length]), position + length


def read_varint(body: Buffer, position: int, end: int) -> tuple[int, int]:
    """A zigzag number of up to 64 bits, in groups of 7 bits, the lowest first."""
    if position >= end:
        raise CorruptData("a record is cut off")
    value = body[position]
    position += 1
    if value < 0x80:
        return (value >> 1) ^ -(value & 1), position
    value &= 0x7F
    for shift in (7, 14, 21, 28, 35, 42, 49, 56, 63):
        if position >= end:
            raise CorruptData("a record is cut off")
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise CorruptData("a number in a record has too many bytes")


def _encoded(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    _, _, key, value, headers = record
    parts = [
        b"\0",  # attributes, unused
        encode_varint(record.timestamp - base_timestamp),
        encode_varint(record.offset - base_offset),
        *_encoded_bytes(key),
        *_encoded_bytes(value),
        encode_varint(len(headers)),
    ]
    for name, header_value in headers:
        parts += _encoded_bytes(name.encode())
        parts += _encoded_bytes(header_value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encoded_bytes(data: bytes | None) -> tuple[bytes, bytes]:
    return (_MINUS_ONE, b"") if data is None else (encode_varint(len(data)), data)


def encode_varint(number: int) -> bytes:
    """The counterpart of ``read_varint``."""
    value = (number << 1) ^ (number >> 63)
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_CRC: Final = Struct(">I")
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
_MINUS_ONE: Final = b"\x01"
_LENGTHS_MAX: Final = 256
_LENGTHS: Final = tuple(encode_varint(length) for length in range(_LENGTHS_MAX))
"""Encoded lengths, enough for the keys and values of most records that brokers write themselves."""
