"""Compression: what others write is read, garbage and bombs end in CorruptData within the limit."""

import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData
from cordwood.record.batch import Codec
from cordwood.record.codecs import compress, decompress

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
each_codec = pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name)
MIB = 1 << 20


@settings(max_examples=50)
@given(st.binary(max_size=5000), st.sampled_from(Codec))
def test_round_trip(data: bytes, codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, data), 5000)) == data


@each_codec
def test_large_data_needs_several_steps(codec: Codec) -> None:
    data = bytes(10 * MIB)
    assert bytes(decompress(codec, compress(codec, data), 10 * MIB)) == data


@each_codec
def test_one_byte_over_the_limit_is_refused(codec: Codec) -> None:
    packed = compress(codec, b"ab" * 100_000)
    assert len(decompress(codec, packed, 200_000)) == 200_000
    with pytest.raises(CorruptData, match="larger than 199999 bytes"):
        decompress(codec, packed, 199_999)


@each_codec
def test_a_bomb_takes_no_more_memory_than_the_limit(codec: Codec) -> None:
    """What other threads of the process take meanwhile is counted too, but they do not take it each time."""
    bomb = bytes(compress(codec, bytes(64 * MIB)))
    assert min(_peak_of_refusing(codec, bomb) for _ in range(3)) < 3 * MIB


def _peak_of_refusing(codec: Codec, bomb: bytes) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptData):
            decompress(codec, bomb, 2 * MIB)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_nested_bomb_in_many_snappy_blocks_is_bounded() -> None:
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    framed = b"\x82SNAPPY\x00" + bytes([0, 0, 0, 1, 0, 0, 0, 1]) + (len(block).to_bytes(4, "big") + block) * 50
    with pytest.raises(CorruptData, match="larger than"):
        decompress(Codec.SNAPPY, framed, 8 * MIB)


def test_a_raw_snappy_block_is_read() -> None:
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"abc" * 99)), 1000)) == b"abc" * 99


def test_snappy_is_written_as_java_reads_it() -> None:
    packed = bytes(compress(Codec.SNAPPY, bytes(100_000)))
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")


def test_lz4_is_written_as_java_reads_it() -> None:
    packed = bytes(compress(Codec.LZ4, bytes(1_000_000)))
    flags = packed[4]
    assert packed.startswith(b"\x04\x22\x4d\x18")
    assert flags >> 6 == 1
    assert flags & 0x20, "blocks do not depend on each other"
    assert not flags & 0x0D, "no content size, no content checksum, no dictionary"


def test_gzip_with_a_level_is_gzip() -> None:
    assert zlib.decompress(bytes(compress(Codec.GZIP, b"x" * 500, 9)), wbits=31) == b"x" * 500


@each_codec
@pytest.mark.parametrize("garbage", [b"", b"\x01", b"garbage garbage garbage", bytes(100), b"\xff" * 100])
def test_garbage_is_corrupt(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(CorruptData):
        decompress(codec, garbage, 1000)


@each_codec
def test_a_cut_end_is_corrupt(codec: Codec) -> None:
    packed = bytes(compress(codec, bytes(range(256)) * 20))
    for size in (1, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptData):
            decompress(codec, packed[:size], 10_000)


@settings(max_examples=150)
@given(st.sampled_from(COMPRESSED), st.data())
def test_damaged_input_never_ends_in_anything_but_corrupt_data(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"some text, some more text, " * 20))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptData):
        assert len(decompress(codec, packed, 2000)) <= 2000


def test_a_panic_of_the_decoder_is_corrupt_data(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: object) -> int:
        raise PanicException

    monkeypatch.setitem(decompress.__globals__["_DECODERS"], Codec.LZ4, panic)
    with pytest.raises(CorruptData):
        decompress(Codec.LZ4, b"x", 10)
