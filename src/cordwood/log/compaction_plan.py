"""Which part of a log may be compacted now, and whether that is worthwhile. The rules are Kafka's.

A compacted log has a clean part, where each key occurs once, followed by a dirty one. The cleanable part ends at the
first segment that must stay as it is: the active one, one with records that are not committed or whose transaction is
still open (``last_stable_offset``), one that is not synced yet, or one with records younger than
``min.compaction.lag.ms``.
"""

from bisect import bisect_right
from typing import NamedTuple

from .log import Log
from .segment import Segment


class Cleanable(NamedTuple):
    """The part of a log that compaction may touch."""

    first_dirty: int
    end: int
    """The base offset of the first segment that must stay as it is."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Does the dirty part have records that have waited longer than ``max.compaction.lag.ms``?"""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(log: Log, *, high_watermark: int, now_ms: int) -> Cleanable | None:
    """What may be compacted; None if there is nothing.

    Raises:
        StorageError, CorruptData: a segment cannot be read.
    """
    segments = log.segments
    if len(segments) < 2 or not all(segment.is_in_place for segment in segments):
        return None
    first_dirty = first_dirty_offset(log)
    bases = [segment.base_offset for segment in segments]
    first = max(0, bisect_right(bases, first_dirty) - 1)
    limit = min(log.last_stable_offset(high_watermark), log.unsynced_from, bases[-1])
    last = bisect_right(bases, limit) - 1
    if log.config.min_compaction_lag_ms:
        last = first + _count_old_enough(segments[first:last], now_ms - log.config.min_compaction_lag_ms)
    if last <= first or bases[last] <= first_dirty:
        return None
    dirty = segments[first:last]
    return Cleanable(
        first_dirty=first_dirty,
        end=bases[last],
        clean_bytes=sum(segment.size for segment in segments[:last] if segment.base_offset < first_dirty),
        dirty_bytes=sum(segment.size for segment in dirty),
        overdue=_is_overdue(dirty, now_ms - log.config.max_compaction_lag_ms),
    )


def is_due(log: Log, part: Cleanable) -> bool:
    return part.dirty_bytes > 0 and (part.overdue or part.dirty_ratio > log.config.min_cleanable_dirty_ratio)


def first_dirty_offset(log: Log) -> int:
    """Where the clean part ends: at ``cleaned_to``, unless records have since been deleted beyond it, or the log has
    lost records before it; then the whole log is dirty."""
    return log.cleaned_to if log.log_start_offset <= log.cleaned_to <= log.end_offset else log.log_start_offset


def _count_old_enough(segments: tuple[Segment, ...], newest_ms: int) -> int:
    """How many segments come before the first one with a record younger than *newest_ms*."""
    for count, segment in enumerate(segments):
        if segment.largest_timestamp > newest_ms:
            return count
    return len(segments)


def _is_overdue(segments: tuple[Segment, ...], since_ms: int) -> bool:
    return since_ms > 0 and any(0 < segment.first_timestamp < since_ms for segment in segments)
