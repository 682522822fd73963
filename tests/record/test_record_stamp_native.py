"""A batch's place in the log and the entry of an index, written by C: as the struct module writes them."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.log.index import OFFSET_ENTRY, TIME_ENTRY
from cordwood.record.batch import _stamp
from wire.native_build import native

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)


@given(st.integers(16, 40), I64, I32)
def test_a_place_is_stamped_as_python_does_it(size: int, base_offset: int, leader_epoch: int) -> None:
    in_c, in_python = bytearray(range(size)), bytearray(range(size))
    native().stamp(memoryview(in_c), base_offset, leader_epoch)
    _stamp(memoryview(in_python), base_offset, leader_epoch)
    assert in_c == in_python


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (bytearray(40), 1),
        (bytearray(40), 1, 2, 3),
        (bytes(40), 1, 2),
        ("text", 1, 2),
        (bytearray(15), 1, 2),
        (bytearray(40), 2**63, 2),
        (bytearray(40), 1, 2**31),
        (bytearray(40), 1, -(2**31) - 1),
        (bytearray(40), 1, 2**63),
        (bytearray(40), "1", 2),
    ],
)
def test_what_is_no_place_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
        native().stamp(*arguments)
    assert not arguments or arguments[0] in (bytes(40), bytes(15), "text"), "nothing was written"


@given(st.lists(st.tuples(I64, I32, I32), max_size=40))
def test_entries_are_added_as_structs_are(numbers: list[tuple[int, int, int]]) -> None:
    offsets, times = bytearray(), bytearray()
    for timestamp, offset, position in numbers:
        native().add_entry(offsets, OFFSET_ENTRY.size, offset, position)
        native().add_entry(times, TIME_ENTRY.size, timestamp, offset)
    assert offsets == b"".join([pack(">ii", offset, position) for _, offset, position in numbers])
    assert times == b"".join([pack(">qi", timestamp, offset) for timestamp, offset, _ in numbers])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (bytearray(), 8, 1),
        (b"", 8, 1, 2),
        (bytearray(), 0, 1, 2),
        (bytearray(), 9, 1, 2),
        (bytearray(), 2**63, 1, 2),
        (bytearray(), 8, 2**31, 2),
        (bytearray(), 8, 1, 2**31),
        (bytearray(), 12, 2**63, 2),
        (bytearray(), 12, 1, -(2**31) - 1),
        (bytearray(), 12, None, 2),
    ],
)
def test_what_is_no_entry_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        native().add_entry(*arguments)
    assert not arguments or not arguments[0], "nothing was added"
