"""Searches in growing rows: the one in C and the one in Python find what counting one by one finds."""

from array import array
from bisect import bisect_right
from struct import Struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.log.search import _count_at_most, _entry_at_most
from wire.native_build import native

NUMBERS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=40).map(sorted)
VALUES = st.integers(-(1 << 63), (1 << 63) - 1)
ENTRY = Struct(">qi")


@given(NUMBERS, VALUES)
def test_numbers_of_an_array_are_counted(numbers: list[int], value: int) -> None:
    counted = native().count_numbers_at_most(array("q", numbers), value)
    assert counted == bisect_right(array("q", numbers), value) == sum(number <= value for number in numbers)


@given(NUMBERS, VALUES, st.booleans())
def test_packed_entries_are_counted_by_either_number(numbers: list[int], value: int, torn: bool) -> None:
    rows = [(number, number >> 32) for number in numbers]
    entries = b"".join(ENTRY.pack(*row) for row in rows) + b"torn" * torn
    for column, at, width in ((0, 0, 8), (1, 8, 4)):
        wanted = value if column == 0 else value >> 32
        expected = sum(row[column] <= wanted for row in rows)
        assert native().count_at_most(entries, ENTRY.size, at, width, wanted) == expected
        assert native().count_at_most(bytearray(entries), ENTRY.size, at, width, wanted) == expected
        assert _count_at_most(entries, ENTRY.size, at, width, wanted) == expected


@pytest.mark.parametrize("entry", [ENTRY, Struct(">ii")])
@given(NUMBERS, VALUES, st.booleans())
def test_the_last_entry_up_to_a_value_is_found(entry: Struct, numbers: list[int], value: int, torn: bool) -> None:
    shift = 0 if entry is ENTRY else 32
    rows = [(number >> shift, number >> 32) for number in numbers]
    entries = b"".join(entry.pack(*row) for row in rows) + b"torn" * torn
    for column, wanted in ((0, value >> shift), (1, value >> 32)):
        expected = next((row for row in reversed(rows) if row[column] <= wanted), None)
        assert native().entry_at_most(entries, entry.size, column, wanted) == expected
        assert native().entry_at_most(bytearray(entries), entry.size, column, wanted) == expected
        assert _entry_at_most(entries, entry.size, column, wanted) == expected


def test_a_value_may_be_beyond_all_numbers() -> None:
    entries, numbers = bytes(24), array("q", [-(1 << 63), 0, (1 << 63) - 1])
    for value, count in ((1 << 63, 3), (-(1 << 63) - 1, 0)):
        assert native().count_at_most(entries, 8, 0, 8, value) == _count_at_most(entries, 8, 0, 8, value) == count
        assert bisect_right(numbers, value) == count
    assert native().count_numbers_at_most(numbers, 1 << 63) == 3
    assert (
        native().count_numbers_at_most(numbers, -(1 << 70)) == 1
    )  # the least number is not told apart from those below


def test_numbers_may_lie_at_any_address() -> None:
    assert native().count_numbers_at_most(memoryview(bytes(17))[1:].cast("q"), 0) == 2


def test_a_row_that_does_not_grow_is_searched_to_some_end() -> None:
    for value in range(-5, 5):
        assert 0 <= native().count_at_most(bytes(range(251)), 5, 1, 4, value) <= 50
        assert 0 <= native().count_numbers_at_most(array("q", [3, -1, 2]), value) <= 3


@pytest.mark.parametrize(
    "arguments",
    [
        (b"12345678", 8, 4, 4),
        (b"12345678", 8, 5, 4, 0),
        (b"12345678", 8, -1, 4, 0),
        (b"12345678", 8, 0, 0, 0),
        (b"12345678", 16, 0, 9, 0),
        (b"12345678", 0, 0, 0, 0),
        (b"12345678", -8, 0, 4, 0),
        ("12345678", 8, 0, 4, 0),
        (b"12345678", 8, 0, 4, None),
    ],
)
def test_what_can_not_be_entries_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        native().count_at_most(*arguments)


def test_what_was_searched_can_change_afterwards() -> None:
    entries, numbers = bytearray(24), array("q", [1, 2])
    for value in (-1, 5):
        native().entry_at_most(entries, 8, 0, value)
        native().count_at_most(entries, 8, 0, 8, value)
        native().count_numbers_at_most(numbers, value)
    with pytest.raises((TypeError, ValueError)):
        native().entry_at_most(entries, 8, 2, 0)
    entries.clear()
    numbers.append(3)


@pytest.mark.parametrize(
    "arguments",
    [
        (b"12345678", 8, 0),
        (b"12345678", 8, 2, 0),
        (b"12345678", 8, -1, 0),
        (b"12345678", 9, 0, 0),
        (b"12345678", 4, 0, 0),
        (b"12345678", 0, 0, 0),
        (b"12345678", -8, 0, 0),
        (b"12345678", 1 << 70, 0, 0),
        ("12345678", 8, 0, 0),
        (b"12345678", 8, 0, None),
    ],
)
def test_what_can_not_be_entries_has_none(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        native().entry_at_most(*arguments)


@pytest.mark.parametrize(
    "arguments", [(array("q"),), (array("d", [1.0]), 1), (array("i", [1]), 1), (b"12345678", 1), (array("q"), "1")]
)
def test_what_is_no_array_of_numbers_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        native().count_numbers_at_most(*arguments)
