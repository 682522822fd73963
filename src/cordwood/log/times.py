"""Offsets by time.

The time index leads close to the record, the batches' headers to the batch that has it; only that batch is opened.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ids import NO_LEADER_EPOCH, NO_TIMESTAMP
from cordwood.ports import Buffer
from cordwood.record.batch import BatchHeader
from cordwood.record.glance import Effort, decompressed, first_since, newest_since

from .scan import read_batch
from .segment import Segment, count_before

_Look = Callable[[Buffer], tuple[int, int] | None]
"""Finds a record's offset and timestamp in a batch's body."""


class FoundOffset(NamedTuple):
    """An offset that was looked up, with its record's timestamp if that was asked for, and its leader epoch."""

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
    """The first record at or after *start_offset* with the largest timestamp.

    Kafka also finds batches before the start, because their segment may still be there.
    """
    live = [segment for segment in segments[count_before(segments, start_offset) :] if segment.size]
    if not live:
        return None
    largest = [segment.largest_record_timestamp_since(start_offset, effort) for segment in live]
    newest, (timestamp, offset) = max(zip(live, largest, strict=True), key=lambda found: found[1][0])
    found = newest.locate(offset)
    if found is None:
        return None
    position, header = found.position, newest.header_at(found.position)
    record = _record_at(newest, position, header, timestamp, start_offset, limit, effort)
    if record is not None or header.base_offset >= start_offset:
        return record
    # The log starts in the middle of this batch, after its newest record.
    rest = _newest_at(newest, position, header, start_offset, limit, effort)
    after = find_max_timestamp(segments, start_offset=header.next_offset, limit=limit, effort=effort)
    return after if rest is None or (after is not None and after.timestamp > rest.timestamp) else rest


def _find_in(segment: Segment, timestamp: int, start_offset: int, limit: int, effort: Effort) -> FoundOffset | None:
    from_offset = max(start_offset, segment.base_offset)
    while (found := segment.find_timestamp(timestamp, from_offset, effort)) is not None:
        position, header = found
        record = _record_at(segment, position, header, timestamp, start_offset, limit, effort)
        if record is not None:
            return record
        from_offset = header.next_offset
    return None


def _record_at(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    """The first record of a batch that has *timestamp* or a later one and is not before the start."""
    look = partial(first_since, header=header, timestamp=timestamp, from_offset=start_offset)
    return _look_inside(segment, position, header, look, start_offset, limit, effort)


def _newest_at(
    segment: Segment, position: int, header: BatchHeader, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    """Of a batch's records that are not before the start, the one with the largest timestamp."""
    look = partial(newest_since, header=header, from_offset=start_offset)
    return _look_inside(segment, position, header, look, start_offset, limit, effort)


def _look_inside(
    segment: Segment, position: int, header: BatchHeader, look: _Look, start_offset: int, limit: int, effort: Effort
) -> FoundOffset | None:
    if not header.record_count:
        return None  # compaction has removed them all
    try:
        batch = read_batch(segment.reader, position, header)
        body = decompressed(batch, header, limit=limit, effort=effort)
        found = look(body)
    except CorruptData:
        # A producer may have sent malformed records, which nobody has looked at before. The batch is as near as we get.
        found = max(header.base_offset, start_offset), header.max_timestamp
    return FoundOffset(*found, header.leader_epoch) if found is not None else None
