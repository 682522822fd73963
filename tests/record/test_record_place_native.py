"""The place of a stored batch, read in C: the same as in Python, or left to Python."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.errors import CorruptData
from cordwood.record.batch import HEADER_SIZE, header_at
from cordwood.record.build import Record, build
from wire.native_build import native


def test_a_batch_has_its_place() -> None:
    batch = build([Record(offset, 0, None, b"value") for offset in range(5)])
    assert native().place_at(batch) == (0, 4, len(batch))
    assert native().place_at(memoryview(batch)[:HEADER_SIZE]) == (0, 4, len(batch))


@given(st.integers(0, 2**32), st.integers(0, HEADER_SIZE))
def test_any_bytes_have_the_place_that_their_header_says_or_none(seed: int, cut: int) -> None:
    random = Random(seed)
    data = build([Record(0, 0, None, b"value")])
    for _ in range(random.randrange(6)):
        data[random.randrange(HEADER_SIZE)] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
    del data[HEADER_SIZE + random.choice([0, 5]) - cut :]
    place = native().place_at(bytes(data))
    try:
        header = header_at(data)
    except CorruptData:
        assert place is None
    else:
        beyond_all_numbers = header.last_offset >= 1 << 63 or header.last_offset < -(1 << 63)
        assert place == (None if beyond_all_numbers else (header.base_offset, header.last_offset, header.size))


def test_what_was_looked_at_can_change_afterwards() -> None:
    for data in (build([Record(0, 0, None, b"value")]), bytearray(100), bytearray(3)):
        native().place_at(data)
        data.clear()


def test_what_is_not_bytes_is_refused() -> None:
    for arguments in ((), ("text",), (5,), (b"x", b"y")):
        with pytest.raises(TypeError):
            native().place_at(*arguments)
