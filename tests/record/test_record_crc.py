"""The checksum in C, against the one of the package."""

import random

import crc32c as package
import pytest

from wire.native_build import native

NOISE = random.Random(32).randbytes(300_000)


@pytest.fixture(scope="module", autouse=True)
def _needs_a_processor_for_it() -> None:
    if not hasattr(native(), "crc32c"):
        pytest.skip("this processor does not multiply polynomials 512 bits at a time: the package's is used")


@pytest.mark.parametrize("start", [0, 1, 7, 21])
def test_every_short_length_has_the_checksum_of_the_package(start: int) -> None:
    for size in range(1_100):
        data = NOISE[start : start + size]
        assert native().crc32c(data) == package.crc32c(data), size


@pytest.mark.parametrize("size", [4_095, 65_536, 130_281, 131_071, 299_000])
def test_large_batches_have_the_checksum_of_the_package(size: int) -> None:
    for start in range(0, 900, 37):
        view = memoryview(NOISE)[start : start + size]
        assert native().crc32c(view) == package.crc32c(view)


def test_bytes_that_are_all_alike_are_told_apart_by_their_number() -> None:
    sums = [native().crc32c(bytes(size)) for size in range(2_000)]
    assert sums == [package.crc32c(bytes(size)) for size in range(2_000)]
    assert len(set(sums)) == len(sums)


def test_one_wrong_bit_is_seen_wherever_it_is() -> None:
    data = bytearray(NOISE[:700])
    right = native().crc32c(data)
    for bit in range(0, 8 * len(data), 3):
        data[bit // 8] ^= 1 << bit % 8
        assert native().crc32c(data) != right
        data[bit // 8] ^= 1 << bit % 8


def test_what_is_no_buffer_of_bytes_in_a_row_is_refused() -> None:
    for data in ("text", 5, memoryview(NOISE)[::2]):
        with pytest.raises((TypeError, BufferError)):
            native().crc32c(data)
