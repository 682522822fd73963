"""Filters that Spark hands down: fewer partitions and smaller offset ranges to read. Pure.

Ranges express a filter on ``topic``, ``partition`` or ``offset`` exactly, so Spark need not apply it again. A lower
bound of ``timestamp`` gives a first offset, since no record before it is as recent; records after it may be older, so
Spark applies the filter as well. An upper bound gives nothing: timestamps need not rise with offsets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from .offsets import Partition
from .ranges import Range

OFFSET_MAX = 2**63 - 1
_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Narrowing:
    """What is left to read."""

    by_partition: list[Filter] = field(default_factory=list)
    """Filters on topic and partition."""
    start: int = 0
    end: int = OFFSET_MAX
    time_ms: int | None = None

    def __bool__(self) -> bool:
        return bool(self.by_partition or self.start or self.end < OFFSET_MAX or self.time_ms is not None)

    def take(self, filters: Iterable[Filter]) -> list[Filter]:
        """Take the filters that can be used; returns those that Spark must apply itself."""
        return [filter_ for filter_ in filters if not self._takes(filter_)]

    def _takes(self, filter_: Filter) -> bool:
        """Was this filter taken in full?"""
        match filter_:
            case IsNotNull((name,)) if name in _NEVER_NULL:
                return True
            case Not(EqualTo((name,), _) | In((name,), _)) | EqualTo((name,), _) | In((name,), _) if name in _SIMPLE:
                self.by_partition.append(filter_)
                return True
            case (
                GreaterThan((name,), _)
                | GreaterThanOrEqual((name,), _)
                | LessThan((name,), _)
                | LessThanOrEqual((name,), _)
            ) if name == "partition":
                self.by_partition.append(filter_)
                return True
            case EqualTo(("offset",), int(value)):
                return self._offsets(value, value + 1)
            case GreaterThan(("offset",), int(value)):
                return self._offsets(value + 1, OFFSET_MAX)
            case GreaterThanOrEqual(("offset",), int(value)):
                return self._offsets(value, OFFSET_MAX)
            case LessThan(("offset",), int(value)):
                return self._offsets(0, value)
            case LessThanOrEqual(("offset",), int(value)):
                return self._offsets(0, value + 1)
            case In(("offset",), values) if values and all(isinstance(value, int) for value in values):
                self._offsets(min(values), max(values) + 1)
                return False
            case (
                EqualTo(("timestamp",), datetime() as time)
                | GreaterThan(("timestamp",), datetime() as time)
                | GreaterThanOrEqual(("timestamp",), datetime() as time)
            ) if time.tzinfo is not None:
                self.time_ms = max(self.time_ms or 0, (time - _EPOCH) // timedelta(milliseconds=1), 0)
                return False
            case _:
                return False

    def _offsets(self, start: int, end: int) -> bool:
        self.start, self.end = max(self.start, start), min(self.end, end)
        return True

    def narrowed(
        self, ranges: Sequence[Range], at_time: Callable[[int, Collection[Partition]], Mapping[Partition, int]]
    ) -> list[Range]:
        """The parts of the ranges that can have wanted records."""
        kept = [
            range_._replace(start=max(range_.start, self.start), end=min(range_.end, self.end))
            for range_ in ranges
            if all(_holds(filter_, range_) for filter_ in self.by_partition)
        ]
        kept = [range_ for range_ in kept if range_.start < range_.end]
        if self.time_ms is None or not kept:
            return kept
        first = at_time(self.time_ms, [range_[:2] for range_ in kept])
        young = [
            range_._replace(start=max(range_.start, first[range_[:2]])) for range_ in kept if first[range_[:2]] >= 0
        ]
        return [range_ for range_ in young if range_.start < range_.end]


_SIMPLE = ("topic", "partition")


def _holds(filter_: Filter, range_: Range) -> bool:
    """Does a filter on topic or partition hold for the records of this range?"""
    match filter_:
        case Not(child):
            return not _holds(child, range_)
        case EqualTo((name,), value):
            return bool(getattr(range_, name) == value)
        case In((name,), values):
            return getattr(range_, name) in values
        case GreaterThan((name,), value):
            return bool(getattr(range_, name) > value)
        case GreaterThanOrEqual((name,), value):
            return bool(getattr(range_, name) >= value)
        case LessThan((name,), value):
            return bool(getattr(range_, name) < value)
        case LessThanOrEqual((name,), value):
            return bool(getattr(range_, name) <= value)
        case _:
            raise AssertionError(f"{filter_} was not taken")
