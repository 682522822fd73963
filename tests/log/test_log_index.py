"""The sparse indexes: searching, growing, truncating, on both sides of what is in the file and what is in memory."""

import struct
from bisect import bisect_right
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData, StorageError
from cordwood.log.index import Index, offset_index, time_index
from cordwood.ports import File
from cordwood.sim.disk import SimDisk


def index_of(count: int, *, step: int = 3) -> Index:
    index = offset_index(SimDisk(Random(1)), "index")
    for number in range(count):
        index.add(number * step, number * 100)
    return index


@settings(max_examples=60)
@given(st.integers(0, 2000), st.integers(1, 5), st.lists(st.integers(-5, 11_000), min_size=1, max_size=20))
def test_the_last_entry_up_to_a_value_is_found(count: int, step: int, values: list[int]) -> None:
    index = index_of(count, step=step)
    assert len(index) == count
    keys = [number * step for number in range(count)]
    for value in values:
        place = bisect_right(keys, value) - 1
        assert index.last_at_most(value) == ((keys[place], place * 100) if place >= 0 else None)
        by_position = min(value // 100, count - 1)
        expected = (by_position * step, by_position * 100) if count and value >= 0 else None
        assert index.last_at_most(value, column=1) == expected


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 50, 10**6]), st.sampled_from([0, 1, 100, 10**6])), max_size=900),
    st.integers(0, 900),
)
def test_entries_that_grow_unevenly_are_found_too(steps: list[tuple[int, int]], flushed: int) -> None:
    index, entries = offset_index(SimDisk(Random(1)), "index"), list[tuple[int, int]]()
    first = second = 0
    for number, (more, further) in enumerate(steps):
        first, second = first + more, second + further
        index.add(first, second)
        entries.append((first, second))
        if number == flushed:
            index.flush()
    for column in (0, 1):
        numbers = [entry[column] for entry in entries]
        for value in {number + beside for number in numbers[:: 1 + len(numbers) // 50] for beside in (-1, 0, 1)}:
            place = bisect_right(numbers, value)
            assert index.last_at_most(value, column=column) == (entries[place - 1] if place else None)


@settings(max_examples=60)
@given(st.integers(0, 1500), st.integers(-10, 5000), st.integers(0, 300))
def test_truncation_drops_what_is_at_or_after_a_value(count: int, value: int, more: int) -> None:
    index = index_of(count)
    index.truncate_before(value)
    kept = len([number for number in range(count) if number * 3 < value])
    assert len(index) == kept
    for number in range(more):
        index.add((kept + number) * 3, (kept + number) * 100)
    index.check()
    assert index.last() == (((kept + more - 1) * 3, (kept + more - 1) * 100) if kept + more else None)


def test_the_file_has_kafkas_entries() -> None:
    disk = SimDisk(Random(1))
    offsets, times = offset_index(disk, "o"), time_index(disk, "t")
    offsets.add(1, 2)
    times.add(1_700_000_000_000, 5)
    offsets.flush()
    times.flush()
    assert disk.read("o") == b"\x00\x00\x00\x01\x00\x00\x00\x02"
    assert disk.read("t") == (1_700_000_000_000).to_bytes(8, "big") + b"\x00\x00\x00\x05"


def test_what_was_flushed_is_loaded_and_goes_on_growing() -> None:
    disk = SimDisk(Random(1))
    index = offset_index(disk, "index")
    for number in range(700):
        index.add(number, number)
    index.flush()
    again = offset_index(disk, "index")
    again.load()
    assert len(again) == 700
    again.add(700, 700)
    assert [again.entry(number) for number in (0, 511, 512, 699, 700)] == [(n, n) for n in (0, 511, 512, 699, 700)]
    again.check()


@pytest.mark.parametrize("left", [1, 8, 21])
def test_what_a_failed_flush_has_left_in_the_file_goes_with_the_next_one(left: int) -> None:
    disk = SimDisk(Random(1))
    index = offset_index(disk, "index")
    index.add(1, 100)
    index.flush()
    index.add(2, 200)
    disk.open("index").append(bytes(left))  # as far as the disk came, before it could not even cut the file
    index.flush()
    assert disk.read("index") == struct.pack(">4i", 1, 100, 2, 200)
    assert index.last_at_most(2) == (2, 200)
    index.check()


def test_what_a_failed_flush_has_left_goes_even_if_its_entries_are_not_wanted_any_more() -> None:
    disk = SimDisk(Random(1))
    index = offset_index(disk, "index")
    index.add(1, 100)
    disk.open("index", create=True).append(bytes(5))
    index.truncate_before(1)
    index.flush()
    assert disk.read("index") == b""


def test_little_is_written_and_little_is_held() -> None:
    disk = SimDisk(Random(1))
    index = offset_index(disk, "index")
    for number in range(511):
        index.add(number, number)
    assert not disk.exists("index")
    index.add(511, 511)
    assert len(disk.read("index")) == 512 * 8
    for number in range(512, 100_000):
        index.add(number, number)
    index.last_at_most(500)
    assert len(index._tail) < 512 * 8
    assert len(index._block) <= 512 * 8


@pytest.mark.parametrize("content", [b"x", bytes(16), b"\x00\x00\x00\x09" * 2 + bytes(8)])
def test_a_file_that_is_no_index_is_corrupt(content: bytes) -> None:
    disk = SimDisk(Random(1))
    disk.replace("index", content)
    with pytest.raises(CorruptData):
        offset_index(disk, "index").load()


def test_a_missing_file_is_told() -> None:
    with pytest.raises(StorageError):
        offset_index(SimDisk(Random(1)), "index").load()


def test_a_file_that_shrinks_under_the_index_is_corrupt() -> None:
    disk = SimDisk(Random(1))
    index = offset_index(disk, "index")
    for number in range(600):
        index.add(number, number)
    index.flush()
    disk.open("index").truncate(80)
    with pytest.raises(CorruptData):
        index.last_at_most(300)


def test_reset_and_store_begin_anew() -> None:
    index = index_of(300)
    index.reset()
    assert len(index) == 0
    index.add(5, 5)
    assert index.last() == (5, 5)
    index.store([(1, 1), (2, 2)])
    assert [index.entry(number) for number in range(len(index))] == [(1, 1), (2, 2)]
    index.add(3, 3)
    index.flush()
    index.check()
    assert len(index) == 3


def test_a_search_reads_one_block_however_long_the_index_is() -> None:
    disk = SimDisk(Random(1))
    offset_index(disk, "i").store((number * 3, number * 50) for number in range(40_000))
    index = offset_index(disk, "i")
    index.load()
    assert index.last_at_most(0) == (0, 0)
    opened = 0
    real_open = disk.open

    def counted(path: str, /, *, create: bool = False) -> File:
        nonlocal opened
        opened += 1
        return real_open(path, create=create)

    disk.open = counted  # type: ignore[method-assign, assignment]
    for number in (39_999, 20_000, 512, 511, 7, 0):
        opened = 0
        assert index.last_at_most(number * 3 + 2) == (number * 3, number * 50)
        assert index.last_at_most(number * 50, column=1) == (number * 3, number * 50)
        assert opened <= 1
    index.truncate_before(512 * 3)
    assert index.last() == (511 * 3, 511 * 50)
    assert index.last_at_most(10**9) == (511 * 3, 511 * 50)
    index.check()


def test_an_index_ends_before_what_is_more_than_its_last_entry() -> None:
    disk = SimDisk(Random(1))
    index = time_index(disk, "index")
    assert index.ends_before(0)
    index.add(5, 1)
    index.add(9, 2)
    index.flush()
    loaded = time_index(disk, "index")
    loaded.load()
    for one in (index, loaded):
        assert one.ends_before(10)
        assert not one.ends_before(9)
    index.truncate_before(9)
    assert index.ends_before(9)
    assert not index.ends_before(5)
