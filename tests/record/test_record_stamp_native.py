"""A batch's place in the log, written by C: as the struct module writes it."""

from struct import error, pack_into

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.native_build import native

I32 = st.integers(-(2**31), 2**31 - 1)


@given(st.integers(0, 24), st.integers(-(2**63), 2**63 - 1), I32, I32)
def test_a_place_is_written_as_a_struct_is(position: int, base_offset: int, length: int, leader_epoch: int) -> None:
    in_c, in_python = bytearray(range(40)), bytearray(range(40))
    native().stamp(memoryview(in_c), position, base_offset, length, leader_epoch)
    pack_into(">qii", in_python, position, base_offset, length, leader_epoch)
    assert in_c == in_python


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (bytearray(40), 0, 1, 2),
        (bytes(40), 0, 1, 2, 3),
        (bytearray(15), 0, 1, 2, 3),
        (bytearray(40), 25, 1, 2, 3),
        (bytearray(40), 0, 2**63, 2, 3),
        (bytearray(40), 0, 1, 2**31, 3),
        (bytearray(40), 0, 1, 2, -(2**31) - 1),
        (bytearray(40), 0, 1, 2, "3"),
    ],
)
def test_what_is_no_place_is_refused_by_both(arguments: tuple[object, ...]) -> None:
    before = bytes(arguments[0]) if arguments else b""  # type: ignore[call-overload]
    with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
        native().stamp(*arguments)
    assert not arguments or arguments[0] == before
    with pytest.raises((TypeError, error)):
        pack_into(">qii", *arguments)  # type: ignore[arg-type]
