"""Part of a batch's records: find where each one lies, and make a batch of some of them without encoding them again.

A record's bytes hold its offset and its timestamp as deltas from the batch's base, so they stay valid as long as the
base does. A batch that has lost records keeps its base offset, its last offset and its sequence numbers: for producers
and readers nothing has changed, except that there are fewer records in it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ids import NO_TIMESTAMP
from cordwood.ports import Buffer

from .batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
)
from .build import encode_varint, read_varint, seal
from .codecs import compress, decompress


class RecordSpan(NamedTuple):
    """Where one record lies in the body of its batch, and what compaction needs to know of it."""

    start: int
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


def spans(body: bytes, header: BatchHeader) -> list[RecordSpan]:
    """Every record of *body*, a batch's body, decompressed. ``CorruptData`` if it is malformed.

    Numbers of one byte are decoded inline: nearly all are that short, and compaction looks at every record.
    """
    found: list[RecordSpan] = []
    add, size, position = found.append, len(body), 0
    next_delta, last_delta = 0, header.last_offset_delta
    try:
        for _ in range(header.record_count):
            start = position
            length, position = read_varint(body, position, size)
            end = position + length
            if length < 0 or end > size:
                raise CorruptData(f"a record cannot be {length} bytes long")
            position += 1  # attributes, unused
            number = body[position]
            if number < 0x80:
                timestamp_delta, position = (number >> 1) ^ -(number & 1), position + 1
            else:
                timestamp_delta, position = read_varint(body, position, end)
            number = body[position]
            if number < 0x80:
                offset_delta, position = (number >> 1) ^ -(number & 1), position + 1
            else:
                offset_delta, position = read_varint(body, position, end)
            if not next_delta <= offset_delta <= last_delta:
                raise CorruptData(f"a record at {offset_delta} is not where it belongs in its batch")
            next_delta = offset_delta + 1
            number = body[position]
            if number < 0x80:
                length, position = (number >> 1) ^ -(number & 1), position + 1
            else:
                length, position = read_varint(body, position, end)
            key = None
            if length >= 0:
                key = body[position : position + length]
                position += length
            length, position = read_varint(body, position, end)
            if position + max(length, 0) >= end:  # the header count follows, which takes at least a byte
                raise CorruptData("a record is shorter than its parts")
            add(RecordSpan(start, end, offset_delta, timestamp_delta, key, length >= 0))
            position = end
    except IndexError as error:
        raise CorruptData("a record is cut off") from error
    if position != size:
        raise CorruptData(f"{size - position} bytes are left after the last record of a batch")
    return found


def body_of(batch: Buffer, header: BatchHeader, *, limit: int) -> bytes:
    """The body of a whole batch (what follows the header), decompressed."""
    if not header.attributes & CODEC_MASK:
        return bytes(batch[HEADER_SIZE : header.size])
    return bytes(decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size], limit))


def with_records(
    header: BatchHeader, body: bytes, kept: Sequence[RecordSpan], *, delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch with only the *kept* records, compressed as before.

    With *delete_horizon_ms*, the batch gets that time as its base timestamp, which is how a batch says when its
    tombstones may be removed (KIP-534). Without, a batch that already has such a time keeps it.
    """
    assert kept, "a batch without records is another matter"
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if delete_horizon_ms is None:
        records = b"".join([body[span.start : span.end] for span in kept])
    else:
        shift = base_timestamp - delete_horizon_ms
        records = b"".join([_moved_in_time(body, span, shift) for span in kept])
        base_timestamp, attributes = delete_horizon_ms, attributes | DELETE_HORIZON
    batch = bytearray(HEADER_SIZE) + compress(header.codec, records)
    max_timestamp = header.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        max_timestamp = header.base_timestamp + max(span.timestamp_delta for span in kept)
    changed = header.replaced(
        length=len(batch) - LENGTH_END,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(kept),
    )
    return seal(batch, changed)


def without_records(header: BatchHeader) -> bytearray:
    """The batch without records: only its offsets, its producer and its largest timestamp are left."""
    changed = header.replaced(
        length=HEADER_SIZE - LENGTH_END,
        attributes=header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return seal(bytearray(HEADER_SIZE), changed)


def _moved_in_time(body: bytes, span: RecordSpan, shift_ms: int) -> bytes:
    """A record whose timestamp delta counts from another base, *shift_ms* before the old one."""
    _, position = read_varint(body, span.start, span.end)
    _, rest = read_varint(body, position + 1, span.end)
    moved = body[position : position + 1] + encode_varint(span.timestamp_delta + shift_ms) + body[rest : span.end]
    return bytes(encode_varint(len(moved)) + moved)
