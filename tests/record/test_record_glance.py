"""A glance sees what a full look sees, and refuses what it refuses."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData
from cordwood.record.batch import HEADER_SIZE, BatchHeader, header_at
from cordwood.record.build import Record, build, records, seal
from cordwood.record.glance import RECORDS_MAX, first_since, glance, newest_since

_texts = st.none() | st.binary(max_size=200)
_headers = st.lists(st.tuples(st.text(max_size=5), _texts), max_size=3)


@st.composite
def batches_of_records(draw: st.DrawFn) -> bytes:
    count = draw(st.integers(1, 5))
    timestamps = draw(st.lists(st.integers(-1, 2**40), min_size=count, max_size=count))
    made = [Record(n, t, draw(_texts), draw(_texts), draw(_headers)) for n, t in enumerate(timestamps)]
    return bytes(build(made))


def _seen(batch: bytes, header: BatchHeader) -> list[tuple[int, int, bool]] | None:
    try:
        found = [(r.offset, r.timestamp, r.key is not None) for r in records(batch, header, limit=1 << 20)]
    except CorruptData:
        return None
    return found


def _glanced(batch: bytes, header: BatchHeader) -> list[tuple[int, int, bool]] | None:
    try:
        found = list(glance(memoryview(batch)[HEADER_SIZE:], header))
    except CorruptData:
        return None
    return [(header.base_offset + o, header.base_timestamp + t, keyed) for o, t, keyed in found]


@given(batches_of_records())
def test_a_glance_sees_what_a_look_sees(batch: bytes) -> None:
    header = header_at(batch)
    assert _glanced(batch, header) == _seen(batch, header) is not None


@settings(max_examples=300)
@given(batches_of_records(), st.data())
def test_a_glance_refuses_what_a_look_refuses(batch: bytes, data: st.DataObject) -> None:
    damaged = bytearray(batch)
    position = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    damaged[position] = data.draw(st.integers(0, 255))
    header = header_at(damaged)
    assert _glanced(bytes(damaged), header) == _seen(bytes(damaged), header)


def test_no_more_records_than_the_limit_are_looked_at() -> None:
    header = header_at(build([Record(0, 0, None, None)])).replaced(record_count=RECORDS_MAX + 1)
    with pytest.raises(CorruptData, match="more than"):
        next(glance(b"", header))


def _three_records() -> tuple[bytes, BatchHeader]:
    batch = bytes(build([Record(10, 5, None, b"a"), Record(11, 9, None, b"b"), Record(12, 7, None, b"c")]))
    return batch, header_at(batch)


@pytest.mark.parametrize(
    ("timestamp", "from_offset", "found"),
    [(0, 0, (10, 5)), (6, 0, (11, 9)), (9, 0, (11, 9)), (6, 12, (12, 7)), (9, 12, None)],
)
def test_the_first_record_since_a_time_is_found(
    timestamp: int, from_offset: int, found: tuple[int, int] | None
) -> None:
    batch, header = _three_records()
    assert first_since(batch[HEADER_SIZE:], header, timestamp, from_offset) == found


@pytest.mark.parametrize(("from_offset", "found"), [(0, (11, 9)), (11, (11, 9)), (12, (12, 7)), (13, None)])
def test_the_newest_record_since_an_offset_is_found(from_offset: int, found: tuple[int, int] | None) -> None:
    batch, header = _three_records()
    assert newest_since(batch[HEADER_SIZE:], header, from_offset) == found


def test_a_header_that_promises_younger_records_than_there_are_is_corrupt() -> None:
    batch, header = _three_records()
    lying = seal(bytearray(batch), header.replaced(max_timestamp=1000))
    with pytest.raises(CorruptData, match="although its header says so"):
        first_since(lying[HEADER_SIZE:], header_at(lying), 500, 0)
