"""The compiled loops against what they stand for, and against bytes that make no sense."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as java_murmur2

from cordwood.record.batch import HEADER_SIZE
from cordwood.record.build import Record, build
from cordwood.spark import kernel_build, kernel_cache, kernel_library, kernels, kernels_write
from cordwood.spark.decode import read_only
from cordwood.spark.warm import warm
from spark import tiny_kernels
from spark.damaged_batches import outcomes


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_in_kafkas_own_test(key: bytes, expected: int) -> None:
    assert kernels_write.murmur2(read_only(key), 0, len(key)) == expected & 0x7FFFFFFF


@settings(deadline=None)  # the first one may compile
@given(st.binary(max_size=40), st.integers(0, 3))
def test_keys_hash_as_in_another_client(key: bytes, before: int) -> None:
    found = kernels_write.murmur2(read_only(b"x" * before + key + b"y"), before, len(key))
    assert found == java_murmur2(key) & 0x7FFFFFFF


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
def test_checksums_are_those_of_the_library(values: list[bytes]) -> None:
    batch = build([Record(number, 0, None, value) for number, value in enumerate(values)])
    source, table = read_only(batch), np.empty((1, kernels.COLUMNS), np.int64)
    assert kernels.scan(source, table) == 1
    assert table[0, kernels.CRC] == crc32c(batch[21:])
    assert kernels.bad_checksum(source, table, 1 << 20, kernels.CRC_TABLES) == -1
    batch[-1] ^= 1
    assert kernels.bad_checksum(read_only(batch), table, 1 << 20, kernels.CRC_TABLES) == 0
    assert kernels.bad_checksum(read_only(batch), table, 1, kernels.CRC_TABLES) == -1, "too large to be looked at"


def test_counted_batches_are_those_that_are_there() -> None:
    one = bytes(build([Record(0, 0, None, b"v")]))
    assert [kernels.count_batches(read_only(one * count)) for count in range(4)] == [0, 1, 2, 3]
    assert kernels.count_batches(read_only(one[: HEADER_SIZE - 1])) == 0


@pytest.mark.parametrize(
    ("position", "value", "error"),
    [
        (16, b"\x01", kernels.NOT_A_BATCH),
        (8, b"\x00\x00\x00\x10", kernels.NOT_A_BATCH),
        (8, b"\xff\xff\xff\xff", kernels.NOT_A_BATCH),
        (8, b"\x7f\xff\xff\xff", kernels.CUT_OFF),
        (0, b"\xff", kernels.NOT_A_BATCH),
        (23, b"\xff\xff\xff\xff", kernels.NOT_A_BATCH),
        (22, b"\x07", kernels.NOT_A_BATCH),
        (57, b"\x00\x00\x00\x09", kernels.BAD_COUNT),
        (57, b"\xff\xff\xff\xff", kernels.BAD_COUNT),
    ],
)
def test_headers_that_make_no_sense_are_an_error(position: int, value: bytes, error: int) -> None:
    batch = build([Record(0, 0, None, b"v")])
    batch[position : position + len(value)] = value
    source = read_only(batch)
    table = np.empty((max(kernels.count_batches(source), 1), kernels.COLUMNS), np.int64)
    assert kernels.scan(source, table) == error


def test_kernels_never_read_out_of_bounds() -> None:
    """Uncompiled, each index is checked. A few thousand damaged batches find no index that is out of bounds."""
    found = outcomes()
    assert found["fine"] > 100
    assert len(found) > 5, "damage of many kinds was found"


def test_compiled_kernels_go_to_a_private_directory_if_need_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    own = kernel_cache._own_directory()
    assert own is not None
    assert own.parent == tmp_path
    own.chmod(0o777)
    assert kernel_cache._own_directory() is None, "others could put code there"


# Machine code without the compiler


def test_kernels_are_loaded_without_numba() -> None:
    kernel_library.library()
    script = (
        "import sys; from cordwood.spark.kernel_library import library; library();"
        "print({'numba', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """There is but one kernel, kept in a directory of the test's own, and it was never compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_library, "MODULES", (tiny_kernels,))
    kernel_library.library.cache_clear()
    yield tmp_path / kernel_library.file_name()
    kernel_library.library.cache_clear()


def doubled(numbers: list[int]) -> int:
    kernel_library.library.cache_clear()
    function = kernel_library.library()["doubled"]
    return function(np.array(numbers, np.int64), np.array([numbers, numbers], np.int64), 5)


def test_kernels_are_compiled_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not tiny.exists()
    assert doubled([1, -2, 4]) == 2 * (3 * 3 + 5)
    made = tiny.read_bytes()
    monkeypatch.setattr(kernel_build, "object_code", None)
    assert doubled([1, -2, 4]) == 2 * (3 * 3 + 5), "this time it is loaded"
    monkeypatch.undo()
    assert tiny.read_bytes() == made


def test_the_driver_compiles_if_nobody_has(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache.prefix, "__defaults__", ((tiny_kernels.__file__,),))
    assert not kernel_cache.is_filled()
    warm()
    assert tiny.exists()
    assert kernel_cache.is_filled()


def test_a_damaged_file_is_made_anew(tiny: Path) -> None:
    assert doubled([]) == 10
    tiny.write_bytes(tiny.read_bytes()[:-100])
    assert doubled([7]) == 52


def test_a_numba_that_compiles_otherwise_is_used_as_it_is(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_build, "_parameters", lambda kind: ["i64"])  # as if arrays came in another form
    with pytest.raises(kernel_build.UnlikeExpected, match="doubled takes ptr"):
        kernel_build.object_code([tiny_kernels])
    assert doubled([1, 2]) == 28
    assert not tiny.exists()


def test_where_nothing_can_be_kept_kernels_still_work(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tiny.parent / "a file"
    blocked.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked))
    assert doubled([1]) == 16


@pytest.mark.parametrize(
    "argument",
    [
        np.zeros(8, np.int8),
        np.zeros((2, 4), np.uint8),
        np.zeros(16, np.uint8)[::2],
        b"a string",
    ],
)
def test_only_arrays_of_the_right_kind_are_handed_to_machine_code(argument: object) -> None:
    with pytest.raises(AssertionError):
        kernels.count_batches(argument)
    with pytest.raises(AssertionError):
        kernels_write.murmur2(read_only(b"key"), 0, 1.5)
    with pytest.raises(AssertionError):
        kernels_write.murmur2(read_only(b"key"), 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_rows_are_ordered_by_partition_and_keep_their_order(partitions: list[int]) -> None:
    ordered = np.empty(len(partitions), np.int64)
    kernels_write.order(np.array(partitions, np.int32), 5, np.zeros(6, np.int64), ordered)
    assert ordered.tolist() == sorted(range(len(partitions)), key=lambda row: partitions[row])
