"""A quick look at every record of a batch, where the broker must look: nothing is copied and no objects are made.

Every length is checked nevertheless. A client may pack millions of records into a batch that is small while compressed,
and looking at all of them would keep everybody waiting: hence the limit.
"""

from collections.abc import Iterator

from cordwood.errors import CorruptData
from cordwood.ports import Buffer

from .batch import HEADER_SIZE, BatchHeader
from .build import read_varint
from .codecs import decompress

RECORD_EFFORT = 128
"""Looking at a record takes as long as decompressing this many bytes."""

BATCH_EFFORT = 512
"""Likewise for the header of a batch that a search in a file passes over."""

RECORDS_MAX = 500_000
"""Kafka has no such limit, and no client comes near it: a megabyte of the smallest records is 150,000 of them."""


class Effort:
    """How much work looking inside batches has taken so far, in bytes or their equivalent in time."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0


def decompressed(batch: Buffer, header: BatchHeader, *, limit: int, effort: Effort) -> Buffer:
    """A batch's body, decompressed, for a caller who will look at its records. ``CorruptData`` if it is too large."""
    try:
        body = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], limit)
    except CorruptData:
        effort.spent += limit
        raise
    effort.spent += len(body) + header.record_count * RECORD_EFFORT
    return body


def glance(body: Buffer, header: BatchHeader) -> Iterator[tuple[int, int, bool]]:
    """Each record's offset delta and timestamp delta, and whether it has a key.

    *body* is the batch's body, as ``decompressed`` returns it. ``CorruptData`` if it is malformed.
    """
    if header.record_count > RECORDS_MAX:
        raise CorruptData(f"{header.record_count} records are more than {RECORDS_MAX}, which is the most looked at")
    position, size = 0, len(body)
    for _ in range(header.record_count):
        length, position = read_varint(body, position, size)
        end = position + length
        if length < 0 or end > size:
            raise CorruptData(f"a record cannot be {length} bytes long")
        timestamp_delta, position = read_varint(body, position + 1, end)  # the byte before it: attributes, unused
        offset_delta, position = read_varint(body, position, end)
        key_length, position = read_varint(body, position, end)
        if key_length > 0:
            position += key_length
        value_length, position = read_varint(body, position, end)
        if value_length > 0:
            position += value_length
        if _after_headers(body, position, end) != end:
            raise CorruptData("a record is not as long as its parts")
        position = end
        yield offset_delta, timestamp_delta, key_length >= 0
    if position != size:
        raise CorruptData(f"{size - position} bytes are left after the last record of a batch")


def first_since(body: Buffer, header: BatchHeader, timestamp: int, from_offset: int) -> tuple[int, int] | None:
    """Offset and timestamp of the first record that has *timestamp* or a later one and is not before *from_offset*;
    None if all with such a timestamp are before it.

    *body* is as for ``glance``. ``CorruptData`` if it is malformed, or if no record has a timestamp as late as the
    header says.
    """
    any_young = False
    for offset_delta, timestamp_delta, _ in glance(body, header):
        found = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
        if found >= timestamp:
            offset = header.base_offset + offset_delta
            if offset >= from_offset:
                return min(offset, header.last_offset), min(found, header.max_timestamp)
            any_young = True
    if not any_young:
        raise CorruptData(f"no record of a batch has timestamp {timestamp}, although its header says so")
    return None


def newest_since(body: Buffer, header: BatchHeader, from_offset: int) -> tuple[int, int] | None:
    """Offset and timestamp of the first record with the largest timestamp at or after *from_offset*; None if all
    records are before it.

    *body* is as for ``glance``. ``CorruptData`` if it is malformed.
    """
    newest = None
    for offset_delta, timestamp_delta, _ in glance(body, header):
        found = header.max_timestamp if header.has_log_append_time else header.base_timestamp + timestamp_delta
        offset = header.base_offset + offset_delta
        if offset >= from_offset and (newest is None or found > newest[1]):
            newest = offset, found
    return (min(newest[0], header.last_offset), min(newest[1], header.max_timestamp)) if newest is not None else None


def _after_headers(body: Buffer, position: int, end: int) -> int:
    count, position = read_varint(body, position, end)
    if not 0 <= count <= (end - position) // 2:  # a header is two lengths at least
        raise CorruptData(f"a record cannot have {count} headers")
    for _ in range(count):
        name_length, position = read_varint(body, position, end)
        if name_length < 0:
            raise CorruptData("a record header has no name")
        value_length, position = read_varint(body, position + name_length, end)
        position += max(value_length, 0)
    return position
