"""Offsets by time.

The time index leads near the record, the headers of the batches to the one that has it, and only that one is opened.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ids import NO_LEADER_EPOCH, NO_TIMESTAMP
from cordwood.record.batch import BatchHeader
from cordwood.record.glance import Effort, decompressed, first_since

from .scan import read_batch
from .segment import Segment


class FoundOffset(NamedTuple):
    """An offset that was looked up, with its record's timestamp where one was asked for, and its leader epoch."""

    offset: int
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = NO_LEADER_EPOCH


def find_timestamp(
    segments: Sequence[Segment], timestamp: int, *, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    """The first record at or after *start_offset* with *timestamp* or a later one."""
    for segment in segments:
        if segment.size and segment.largest_timestamp >= timestamp:
            found = _find_in(segment, timestamp, start_offset, limit, effort)
            if found is not None:
                return found
    return None


def find_max_timestamp(
    segments: Sequence[Segment], *, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    """The first record with the largest timestamp, in the batch that brought it."""
    newest = max(segments, key=lambda segment: segment.largest_record_timestamp[0])
    timestamp, offset = newest.largest_record_timestamp
    found = newest.locate(offset) if timestamp >= 0 else None
    if found is None:
        return None
    return _record_at(newest, found.position, newest.header_at(found.position), timestamp, start_offset, limit, effort)


def _find_in(segment: Segment, timestamp: int, start_offset: int, limit: int, effort: Effort) -> FoundOffset | None:
    from_offset = max(start_offset, segment.base_offset)
    while (found := segment.find_timestamp(timestamp, from_offset)) is not None:
        position, header = found
        record = _record_at(segment, position, header, timestamp, start_offset, limit, effort)
        if record is not None:
            return record
        from_offset = header.next_offset
    return None


def _record_at(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    """The first record of a batch that is young enough and not before the start."""
    if not header.record_count:
        return None  # compaction took them all
    try:
        batch = read_batch(segment.reader, position, header)
        body = decompressed(batch, header, limit=limit, effort=effort)
        found = first_since(body, header, timestamp, start_offset)
    except CorruptData:
        # A producer may have sent records that make no sense: nobody looked. The batch is as near as we can get.
        found = max(header.base_offset, start_offset), header.max_timestamp
    return FoundOffset(*found, header.leader_epoch) if found is not None else None
