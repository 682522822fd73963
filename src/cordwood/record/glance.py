"""A quick look at every record of a batch, where the broker must look: nothing is copied and no object is made.

Every length is checked all the same. A client may pack millions of records into a batch that is small while it is
compressed, and one who looks at all of them keeps everybody waiting: hence the limit.
"""

from collections.abc import Iterator

from cordwood.errors import CorruptData
from cordwood.ports import Buffer

from .batch import HEADER_SIZE, BatchHeader
from .build import read_varint
from .codecs import decompress

RECORD_EFFORT = 128
"""A record takes as long to look at as so many bytes take to decompress."""

BATCH_EFFORT = 512
"""Likewise for the header of a batch that is passed over in a file."""

RECORDS_MAX = 500_000
"""Kafka has no such limit, and no client comes near it: a megabyte of the smallest records is 150,000 of them."""


class Effort:
    """How much was looked at inside of batches so far, in bytes and what takes as long."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0


def decompressed(batch: Buffer, header: BatchHeader, *, limit: int, effort: Effort) -> Buffer:
    """What a batch holds after its header, for one who will look at its records. ``CorruptData`` if it is too much."""
    try:
        body = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], limit)
    except CorruptData:
        effort.spent += limit
        raise
    effort.spent += len(body) + header.record_count * RECORD_EFFORT
    return body


def glance(body: Buffer, header: BatchHeader) -> Iterator[tuple[int, int, bool]]:
    """Each record's offset and timestamp, as distances from the batch's, and whether it has a key.

    *body* is what the batch holds, ``decompressed``. ``CorruptData`` if it makes no sense.
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
    """Offset and timestamp of the first record at or after both; None if all that are young enough come before.

    *body* is as for ``glance``. ``CorruptData`` if it makes no sense, or no record is as young as the header says.
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
    """Offset and timestamp of the first of the youngest records at or after *from_offset*; None if all come before.

    *body* is as for ``glance``. ``CorruptData`` if it makes no sense.
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
