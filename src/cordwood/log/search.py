"""How many numbers of a sorted sequence are at most some value: in C (``native/search.c``) where the build has that.

``count_at_most(entries, size, at, width, value)`` searches packed entries of *size* bytes, each with a signed
big-endian number of *width* bytes at position *at*. ``count_numbers_at_most(numbers, value)`` searches an array("q").
``entry_at_most(entries, size, column, value)`` returns both numbers of the last entry whose number in *column* is at
most *value*, None if there is none; an entry of *size* bytes has its second number in the last four.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from cordwood.wire.native import native

Entries = bytes | bytearray
SECOND_BYTES: Final = 4


def _count_at_most(entries: Entries, size: int, at: int, width: int, value: int, /) -> int:
    low, high = 0, len(entries) // size
    while low < high:
        middle = (low + high) // 2
        start = middle * size + at
        if int.from_bytes(entries[start : start + width], "big", signed=True) <= value:
            low = middle + 1
        else:
            high = middle
    return low


def _entry_at_most(entries: Entries, size: int, column: int, value: int, /) -> tuple[int, int] | None:
    first_bytes = size - SECOND_BYTES
    at, width = (first_bytes, SECOND_BYTES) if column else (0, first_bytes)
    start = (_count_at_most(entries, size, at, width, value) - 1) * size
    if start < 0:
        return None
    first, second = entries[start : start + first_bytes], entries[start + first_bytes : start + size]
    return int.from_bytes(first, "big", signed=True), int.from_bytes(second, "big", signed=True)


entry_at_most: Final[Callable[[Entries, int, int, int], tuple[int, int] | None]] = getattr(
    native, "entry_at_most", _entry_at_most
)
count_at_most: Final[Callable[[Entries, int, int, int, int], int]] = getattr(native, "count_at_most", _count_at_most)
count_numbers_at_most: Final[Callable[["array[int]", int], int]] = getattr(
    native, "count_numbers_at_most", bisect_right
)
