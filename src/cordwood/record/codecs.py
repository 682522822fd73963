"""Compress and decompress the records of a batch, never beyond a limit.

The compressed bytes come from a peer, and a kilobyte of them can stand for a gigabyte. The output goes into a buffer of
a known size that grows in steps up to the limit, so that a decompression bomb costs no more than the limit allows;
Snappy states the size in advance. The native decoders report bad input as exceptions. Should one ever panic, pyo3
raises a ``BaseException``, which becomes ``CorruptData`` as well.

Snappy comes in two forms: Java clients write blocks in xerial's framing, others may send one raw block. Both are read;
only the framing is written.
"""

from struct import Struct

import cramjam

from cordwood.errors import CorruptData
from cordwood.ports import Buffer

from .batch import Codec

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 * 1024
_FIRST_GUESS_MIN = 64 * 1024
_GROWTH = 4
_TOO_SMALL = ("failed to write whole buffer", "Destination buffer is too small")
_block_length = Struct(">i")

_DECODERS = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}


def compress(codec: Codec, data: Buffer, level: int | None = None) -> Buffer:
    """*data*, compressed into the form that clients expect of *codec*. Level None is the codec's own default."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level))
        case Codec.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Codec.LZ4:
            return _compress_lz4(data, level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: Codec, data: Buffer, limit: int) -> Buffer:
    """The decompressed *data*. ``CorruptData`` if it would exceed *limit* bytes, or is invalid."""
    if codec is Codec.NONE:
        return data
    try:
        if codec is Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), limit)
        return _decompress_growing(codec, data, limit)
    except CorruptData:
        raise
    except cramjam.DecompressionError as error:
        raise CorruptData(f"{codec.name.lower()}: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise CorruptData(f"{codec.name.lower()}: the decoder failed") from error


def _decompress_growing(codec: Codec, data: Buffer, limit: int) -> Buffer:
    size = min(limit, max(_FIRST_GUESS_MIN, _GROWTH * len(data)))
    while (output := _decompress_into(codec, data, size)) is None:
        if size >= limit:
            raise _too_large(codec, limit)
        size = min(limit, size * _GROWTH)
    return output


def _decompress_into(codec: Codec, data: Buffer, size: int) -> Buffer | None:
    """The output, or None if it is larger than *size*. The buffers of two attempts never exist at the same time."""
    output = bytearray(size)
    try:
        used = _DECODERS[codec](data, output)
    except cramjam.DecompressionError as error:
        if str(error).endswith(_TOO_SMALL):
            return None
        raise
    return memoryview(output)[:used]


def _decompress_snappy(data: memoryview, limit: int) -> Buffer:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(data, limit, 0)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if len(data) - position < _block_length.size:
            raise CorruptData("snappy: a block's length is cut off")
        (length,) = _block_length.unpack_from(data, position)
        position += _block_length.size
        if not 0 < length <= len(data) - position:
            raise CorruptData(f"snappy: a block cannot be {length} bytes long")
        output += _decompress_block(data[position : position + length], limit, len(output))
        position += length
    return output


def _decompress_block(block: memoryview, limit: int, before: int) -> Buffer:
    size = cramjam.snappy.decompress_raw_len(block)
    if before + size > limit:
        raise _too_large(Codec.SNAPPY, limit)
    output = bytearray(size)
    if cramjam.snappy.decompress_raw_into(block, output) != size:
        raise CorruptData("snappy: a block is shorter than it says")
    return output


def _compress_xerial(data: memoryview) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (_block_length.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    """A frame of independent blocks: Java clients cannot read others."""
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    return bytes(compressor.finish())


def _too_large(codec: Codec, limit: int) -> CorruptData:
    return CorruptData(f"{codec.name.lower()}: the records are larger than {limit} bytes when decompressed")
