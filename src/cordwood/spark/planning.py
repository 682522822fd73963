"""Which offsets a micro-batch takes, and which tasks read them. Pure.

A limit is shared out over partitions, and ``minPartitions`` and ``maxRecordsPerPartition`` split them, as in Spark's
Kafka source. If no option says anything about tasks, large partitions are split so that all cores have work, and very
small ones are read together by one task: a task costs more than a few records do.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .offsets import Offsets, Partition
from .ranges import Range

SPLIT_OFFSETS_MIN: Final = 250_000
"""Splitting less than this gains nothing: it is read in a tenth of a second."""
SPLIT_OFFSETS_MAX: Final = 4_000_000
"""More than this is split even if this machine's cores have enough to do: the cluster may have more of them."""
TASKS_PER_CORE: Final = 2
PACK_OFFSETS: Final = 1000
"""Partitions that together have no more new records than this are read by one task."""
ONE_TASK_OFFSETS: Final = 100
"""If there are no more records than this in all, one task reads them: a second one would only cost."""

_OFFSET_MAX: Final = 2**63 - 1


# Admission control


def rate_limited(limit: int, start: Mapping[Partition, int], latest: Mapping[Partition, int]) -> Offsets:
    """The end of a micro-batch of about *limit* offsets, each partition in proportion to what it has.

    *start* has an entry for each partition of *latest*. Small partitions get at least one offset. What rounding leaves
    over is shared out too: otherwise a stream that ends by itself needs one more micro-batch, for a handful of records.
    """
    sizes = {partition: end - start[partition] for partition, end in latest.items() if end > start[partition]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    taken = {partition: max(limit * size // total, 1) for partition, size in sizes.items()}
    rest = max(limit - sum(taken.values()), 0)
    # There is room: a partition whose share was not rounded up has more than that.
    with_more = (partition for partition in taken if taken[partition] < sizes[partition])
    for partition in sorted(with_more, key=lambda p: (-(limit * sizes[p] % total), p))[:rest]:
        taken[partition] += 1
    return {p: min(start[p] + taken[p], _OFFSET_MAX) if p in taken else end for p, end in latest.items()}


def too_few(least: int, start: Mapping[Partition, int], latest: Mapping[Partition, int]) -> bool:
    """Are there fewer new offsets than a micro-batch should have?"""
    return sum(end - start.get(partition, 0) for partition, end in latest.items()) < least


# What is between two offsets of a stream


class Between(NamedTuple):
    """The ranges from one offset of a stream to a later one, and what is not as it should be."""

    ranges: list[Range]
    gone: set[Partition]
    """Partitions that existed before and no longer do."""
    fell_back: dict[Partition, tuple[int, int]]
    """Partitions that have become shorter: they now end before their start: (start, end)."""
    late: dict[Partition, int]
    """New partitions whose first records were deleted before they were seen, with their first offset."""
    unknown: set[Partition]
    """New partitions whose beginning is not known, because they have been deleted again."""


def between(start: Offsets, end: Offsets, earliest_of_new: Offsets) -> Between:
    """*earliest_of_new* has the first offsets of the partitions that are in *end* only."""
    new = end.keys() - start.keys()
    begins = {**start, **{partition: earliest_of_new[partition] for partition in new if partition in earliest_of_new}}
    known = sorted(partition for partition in end if partition in begins)
    return Between(
        ranges=[Range(*partition, begins[partition], end[partition]) for partition in known],
        gone=set(start.keys() - end.keys()),
        fell_back={p: (begins[p], end[p]) for p in known if end[p] < begins[p]},
        late={p: begins[p] for p in sorted(new) if p in begins and begins[p] > 0},
        unknown=new - begins.keys(),
    )


# Tasks


def tasks(
    ranges: Sequence[Range], *, min_partitions: int | None, max_records: int | None, cores: int
) -> list[list[Range]]:
    """What each task reads. The ranges of a task, and those of one partition over the tasks, are in order."""
    wanted = [range_ for range_ in ranges if range_.end > range_.start]
    if min_partitions is not None or max_records is not None:
        return [[range_] for range_ in split(wanted, min_partitions=min_partitions, max_records=max_records)]
    total = sum(range_.end - range_.start for range_ in wanted)
    size = min(max(total // (cores * TASKS_PER_CORE), SPLIT_OFFSETS_MIN), SPLIT_OFFSETS_MAX)
    return _packed([part for range_ in wanted for part in _divided(range_, _parts(range_, size))], cores)


def split(ranges: Sequence[Range], *, min_partitions: int | None, max_records: int | None) -> list[Range]:
    """Split the ranges as Spark's Kafka source does."""
    parts = list(ranges)
    if max_records is not None:
        parts = [p for range_ in parts for p in _divided(range_, math.ceil(_size(range_) / max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts
    total = sum(map(_size, parts))
    whole = {p[:2] for p in parts if _part_count(_size(p), total, min_partitions) == 1}
    unsplit = [p for p in parts if _part_count(_size(p), total, min_partitions) == 1]
    rest = total - sum(map(_size, unsplit))
    wanted = max(min_partitions - len(unsplit), 1)
    return [
        piece
        for p in parts
        for piece in _divided(p, 1 if p[:2] in whole else _part_count(_size(p), rest, wanted))
        if piece.end > piece.start
    ]


def _size(range_: Range) -> int:
    return range_.end - range_.start


def _parts(range_: Range, size: int) -> int:
    """Into how many parts of about *size* to split a range; one that is only a little larger stays whole."""
    return max(round(_size(range_) / size), 1)


def _part_count(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _divided(range_: Range, parts: int) -> list[Range]:
    marks = [range_.start + _size(range_) * number // parts for number in range(parts + 1)]
    return [range_._replace(start=a, end=b) for a, b in pairwise(marks)]


def _packed(ranges: Sequence[Range], cores: int) -> list[list[Range]]:
    """Small ranges together, but as many tasks as there are cores, if there are ranges for them."""
    share = math.ceil(sum(map(_size, ranges)) / max(cores, 1))
    limit = min(PACK_OFFSETS, max(share, ONE_TASK_OFFSETS))
    made: list[list[Range]] = []
    room = 0
    for range_ in ranges:
        if not made or _size(range_) > room:
            made.append([])
            room = limit
        made[-1].append(range_)
        room -= _size(range_)
    return made
