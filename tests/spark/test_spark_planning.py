"""Which offsets a micro-batch takes, which tasks read them, and what filters leave of them."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from cordwood.spark import planning
from cordwood.spark.filters import Narrowing
from cordwood.spark.offsets import Offsets, Partition
from cordwood.spark.ranges import Range

SIZES = st.lists(st.integers(0, 10**7), max_size=8)


def ranges_of(*sizes: int, start: int = 0) -> list[Range]:
    return [Range("t", number, start, start + size) for number, size in enumerate(sizes)]


def offsets(*numbers: int) -> Offsets:
    return {("t", number): offset for number, offset in enumerate(numbers)}


# Admission control


def test_a_limit_is_shared_out_in_proportion() -> None:
    assert planning.rate_limited(100, offsets(0, 10, 5), offsets(300, 110, 5)) == offsets(75, 35, 5)


def test_a_small_partition_gets_at_least_one_offset() -> None:
    assert planning.rate_limited(10, offsets(0, 0), offsets(1_000_000, 1)) == offsets(9, 1)


def test_what_is_left_over_goes_where_there_is_more() -> None:
    assert planning.rate_limited(4, offsets(0, 0, 0), offsets(1, 2, 2)) == offsets(1, 2, 1)


def test_nothing_is_taken_beyond_the_end() -> None:
    assert planning.rate_limited(10**6, offsets(0, 0), offsets(5, 7)) == offsets(5, 7)


def test_a_partition_that_fell_back_is_not_counted() -> None:
    assert planning.rate_limited(10, offsets(50, 0), offsets(20, 100)) == offsets(20, 10)


@given(SIZES, st.integers(1, 10**6))
def test_limits_make_progress_and_are_kept_within_one_offset_a_partition(sizes: list[int], limit: int) -> None:
    start, latest = offsets(*[7] * len(sizes)), offsets(*[7 + size for size in sizes])
    end = planning.rate_limited(limit, start, latest)
    taken = {p: end[p] - start[p] for p in end}
    assert all(0 <= taken[p] <= latest[p] - start[p] for p in end)
    assert sum(taken.values()) <= limit + len(sizes)
    assert all(taken[p] > 0 for p in end if latest[p] > start[p])
    assert sum(taken.values()) >= min(limit, sum(sizes)), "nothing of the limit is left over"


def test_a_stream_that_ends_by_itself_needs_no_batch_for_what_rounding_left() -> None:
    start, latest = offsets(0, 0, 0, 0), offsets(2_499_983, 2_500_009, 2_500_017, 2_499_991)
    for _ in range(5):
        start = planning.rate_limited(2_000_000, start, latest)
    assert start == latest


def test_too_few_counts_what_is_new() -> None:
    assert planning.too_few(10, offsets(0, 5), offsets(4, 10))
    assert not planning.too_few(9, offsets(0, 5), offsets(4, 10))


# Between two offsets


def test_new_partitions_are_read_from_their_beginning() -> None:
    found = planning.between({("t", 0): 5}, {("t", 0): 9, ("t", 1): 4}, {("t", 1): 0})
    assert found.ranges == [Range("t", 0, 5, 9), Range("t", 1, 0, 4)]
    assert not any(found[1:])


def test_what_is_wrong_between_two_offsets_is_told() -> None:
    start = {("t", 0): 5, ("t", 1): 5}
    end = {("t", 1): 3, ("t", 2): 9, ("t", 3): 9}
    found = planning.between(start, end, {("t", 2): 4})
    assert found.gone == {("t", 0)}
    assert found.fell_back == {("t", 1): (5, 3)}
    assert found.late == {("t", 2): 4}
    assert found.unknown == {("t", 3)}


# Tasks


def tasks(ranges: list[Range], cores: int = 2) -> list[list[Range]]:
    return planning.tasks(ranges, min_partitions=None, max_records=None, cores=cores)


@given(SIZES, st.one_of(st.none(), st.integers(1, 40)), st.one_of(st.none(), st.integers(1000, 10**6)))
def test_tasks_read_every_offset_once_and_in_order(sizes: list[int], least: int | None, most: int | None) -> None:
    wanted = ranges_of(*sizes, start=3)
    planned = planning.tasks(wanted, min_partitions=least, max_records=most, cores=2)
    assert all(task and all(part.start < part.end for part in task) for task in planned)
    parts = [part for task in planned for part in task]
    for whole in wanted:
        position = whole.start
        for part in (part for part in parts if part.partition == whole.partition):
            assert part.start == position
            position = part.end
        assert position == whole.end
    assert most is None or all(part.end - part.start <= most for part in parts)


def test_nothing_to_read_needs_no_task() -> None:
    assert tasks(ranges_of(0, 0)) == []


def test_a_large_partition_is_split_over_the_cores() -> None:
    assert [part.end - part.start for (part,) in tasks(ranges_of(10_000_000))] == [2_500_000] * 4


def test_a_very_large_partition_is_split_further() -> None:
    assert len(tasks(ranges_of(400_000_000))) == 100


def test_a_partition_that_is_read_in_no_time_is_not_split() -> None:
    assert tasks(ranges_of(300_000)) == [ranges_of(300_000)]


def test_small_partitions_share_a_task_but_all_cores_have_one() -> None:
    assert [len(task) for task in tasks(ranges_of(*[30] * 20), cores=4)] == [5, 5, 5, 5]


def test_a_handful_of_records_is_one_task() -> None:
    assert tasks(ranges_of(*[2] * 4), cores=2) == [ranges_of(*[2] * 4)]


def test_partitions_with_some_work_have_tasks_of_their_own() -> None:
    assert [len(task) for task in tasks(ranges_of(900, 900, 900, 900))] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("sizes", "least", "most", "wanted"),
    [
        ((100, 100), 1, None, [100, 100]),
        ((100, 100), 4, None, [50, 50, 50, 50]),
        ((1, 100), 5, None, [1, 25, 25, 25, 25]),
        ((10,), 3, None, [3, 3, 4]),
        ((10, 3), None, 4, [3, 3, 4, 3]),
        ((10, 10), 3, 10, [5, 5, 5, 5]),
        ((40, 2), 8, 20, [5, 5, 5, 5, 5, 5, 5, 5, 2]),
    ],
)
def test_partitions_are_split_as_spark_does(
    sizes: tuple[int, ...], least: int | None, most: int | None, wanted: list[int]
) -> None:
    parts = planning.split(ranges_of(*sizes), min_partitions=least, max_records=most)
    assert [part.end - part.start for part in parts] == wanted


# Filters


def narrowed(*filters: Filter, first: Mapping[Partition, int] | None = None) -> tuple[list[Range], list[Filter]]:
    def at_time(time_ms: int, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        assert time_ms == 1_700_000_000_123
        assert first is not None
        return {partition: first[partition] for partition in partitions}

    narrowing = Narrowing()
    left = narrowing.take(filters)
    return narrowing.narrowed(ranges_of(100, 100, 100), at_time), left


def test_partitions_that_are_not_wanted_are_not_read() -> None:
    column = ("partition",)
    assert narrowed(EqualTo(column, 1)) == ([Range("t", 1, 0, 100)], [])
    assert [r.partition for r in narrowed(In(column, (0, 2)))[0]] == [0, 2]
    assert [r.partition for r in narrowed(Not(EqualTo(column, 1)))[0]] == [0, 2]
    assert [r.partition for r in narrowed(GreaterThan(column, 1))[0]] == [2]
    assert [r.partition for r in narrowed(LessThanOrEqual(column, 1), IsNotNull(column))[0]] == [0, 1]
    assert narrowed(EqualTo(("topic",), "u")) == ([], [])


def test_offsets_narrow_the_ranges() -> None:
    column = ("offset",)
    assert narrowed(GreaterThanOrEqual(column, 10), LessThan(column, 20)) == (
        [Range("t", n, 10, 20) for n in range(3)],
        [],
    )
    assert narrowed(EqualTo(column, 7), EqualTo(("partition",), 0)) == ([Range("t", 0, 7, 8)], [])
    assert narrowed(GreaterThan(column, 99)) == ([], [])


def test_a_list_of_offsets_narrows_and_is_looked_at_again() -> None:
    filter_ = In(("offset",), (5, 9))
    ranges, left = narrowed(filter_)
    assert ranges == [Range("t", n, 5, 10) for n in range(3)]
    assert left[0] is filter_


def test_a_time_gives_first_offsets_and_is_looked_at_again() -> None:
    time = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_456)
    filter_ = GreaterThanOrEqual(("timestamp",), time)
    ranges, left = narrowed(filter_, first={("t", 0): 40, ("t", 1): -1, ("t", 2): 100})
    assert ranges == [Range("t", 0, 40, 100)]
    assert left == [filter_]


@pytest.mark.parametrize(
    "filter_",
    [
        EqualTo(("key",), b"x"),
        LessThan(("timestamp",), datetime(2023, 1, 1, tzinfo=UTC)),
        GreaterThan(("timestamp",), datetime(2023, 1, 1)),
        IsNull(("partition",)),
        IsNotNull(("key",)),
        Not(GreaterThan(("offset",), 5)),
        EqualTo(("headers", "key"), "x"),
    ],
)
def test_other_filters_are_spark_s(filter_: Filter) -> None:
    assert narrowed(filter_) == (ranges_of(100, 100, 100), [filter_])
