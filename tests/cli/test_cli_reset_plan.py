"""What reset-offsets would do with a partition, before any broker is asked."""

import pytest

from cordwood.cli.groups_reset import Bounds, Change, Shift, Target, plan
from cordwood.cli.position import Position, Where

PARTITION = ("orders", 0)


@pytest.mark.parametrize(
    ("target", "new", "note"),
    [
        (Position(Where.EARLIEST), 10, ""),
        (Position(Where.LATEST), 50, ""),
        (Position(Where.OFFSET, 10), 10, ""),
        (Position(Where.OFFSET, 50), 50, ""),
        (Position(Where.OFFSET, 9), 10, "9 is before the first record"),
        (Position(Where.OFFSET, 51), 50, "51 is behind the end"),
        (Position(Where.BEFORE_END, 40), 10, ""),
        (Position(Where.BEFORE_END, 41), 10, "9 is before the first record"),
        (Position(Where.TIME_MS, 1_700_000_000_000), 35, ""),
        (Shift(0), 20, ""),
        (Shift(30), 50, ""),
        (Shift(31), 50, "51 is behind the end"),
        (Shift(-10), 10, ""),
        (Shift(-1000), 10, "-980 is before the first record"),
    ],
)
def test_a_committed_offset_moves(target: Target, new: int, note: str) -> None:
    bounds = {PARTITION: Bounds(first=10, end=50, at_time=35)}
    assert plan(target, {PARTITION: 20}, bounds) == [Change(PARTITION, 20, new, note)]


def test_a_time_after_the_last_record_is_the_end() -> None:
    target = Position(Where.TIME_MS, 1_700_000_000_000)
    assert plan(target, {}, {PARTITION: Bounds(first=10, end=50, at_time=-1)}) == [Change(PARTITION, None, 50)]


def test_without_a_commit_there_is_nothing_to_shift() -> None:
    (change,) = plan(Shift(1), {}, {PARTITION: Bounds(first=10, end=50)})
    assert (change.new, change.note) == (None, "nothing is committed that could be shifted")


def test_a_commit_of_records_that_are_gone_can_be_moved_back_inside() -> None:
    bounds = {PARTITION: Bounds(first=10, end=50)}
    assert plan(Shift(0), {PARTITION: 3}, bounds)[0].new == 10
    assert plan(Shift(0), {PARTITION: 70}, bounds)[0].new == 50
