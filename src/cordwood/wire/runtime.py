"""What the generated functions call: varints, tags, records, and the errors that they raise."""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID, SafeUUID

from cordwood.errors import ProtocolError
from cordwood.ports import Buffer, Chunk, FileSlice

UINT32_MAX: Final = 0xFFFFFFFF
STRING_LENGTH_MAX: Final = 0x7FFF

# In one request: enough for a Fetch of 50,000 partitions of as many topics. With its response, an entry may take a
# kilobyte.
ENTRIES_MAX: Final = 100_000

# Records at least this long become a chunk of their own; shorter ones are cheaper to copy than to pass on.
CHUNK_BYTES_MIN: Final = 16384

# Arrays of integers are mostly short (replicas, in-sync replicas): for those, no format has to be looked up.
SHORT_ARRAY_MAX: Final = 16


# Functions that read strings of 0 to 127 bytes.
SHORT_TEXT: Final = tuple(struct.Struct(f"{length}s").unpack_from for length in range(128))


def short_arrays(code: str, method: str) -> tuple[Callable[..., object], ...]:
    """The method *method* of the structs of 0, 1, ... values of one kind."""
    return tuple(getattr(struct.Struct(f">{count}{code}"), method) for count in range(SHORT_ARRAY_MAX + 1))


def read_uvarint(buf: Buffer, pos: int, first: int) -> tuple[int, int]:
    """An unsigned varint of up to 32 bits whose first byte, over 127, has been read already."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > UINT32_MAX:
                break
            return value, pos
    raise ProtocolError("a varint has more than 32 bits")


_BYTES_2: Final = struct.Struct("BB").pack
_BYTES_3: Final = struct.Struct("BBB").pack


def uvarint(value: int) -> bytes:
    """An unsigned varint.

    >>> uvarint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return SMALL_UVARINTS[value]
    if value < 0x4000:
        return _BYTES_2(value & 0x7F | 0x80, value >> 7)
    if value < 0x200000:
        return _BYTES_3(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    return _BYTES_2(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80) + uvarint(value >> 14)


SMALL_UVARINTS: Final = tuple(bytes([value]) for value in range(128))


def read_tag(buf: Buffer, pos: int, previous: int) -> tuple[int, int, int]:
    """(tag, where its value ends, where its value starts) of a tagged field: in the buffer, with rising tags."""
    tag = buf[pos]
    pos += 1
    if tag > 127:
        tag, pos = read_uvarint(buf, pos, tag)
    if tag <= previous:
        raise ProtocolError(f"tagged field {tag} comes after {previous}")
    size = buf[pos]
    pos += 1
    if size > 127:
        size, pos = read_uvarint(buf, pos, size)
    if size > len(buf) - pos:
        raise ProtocolError(f"tagged field {tag} claims {size} bytes of {len(buf) - pos}")
    return tag, pos + size, pos


def skip_tags(buf: Buffer, pos: int, count: int) -> int:
    """Skip the tagged fields of a header, which are all unknown; the count's first byte has been read already."""
    if count > 127:
        count, pos = read_uvarint(buf, pos, count)
    if count * 2 > len(buf) - pos:
        raise beyond("tagged fields", count, len(buf) - pos)
    if count > ENTRIES_MAX:
        raise too_many("tagged fields")
    return pass_tags(buf, pos, count)


def pass_tags(buf: Buffer, pos: int, count: int) -> int:
    """Skip *count* unknown tagged fields."""
    tag = -1
    for _ in range(count):
        tag, pos, _ = read_tag(buf, pos, tag)
    return pos


_set_int: Final = UUID.__dict__["int"].__set__
_set_is_safe: Final = UUID.__dict__["is_safe"].__set__
_new: Final = object.__new__
_int_from_bytes: Final = int.from_bytes
_UNKNOWN: Final = SafeUUID.unknown


@lru_cache(maxsize=4096)
def make_uuid(data: bytes) -> UUID:
    """A UUID from its 16 bytes, without the checks that make UUID's constructor take a microsecond.

    The same topic ids come again and again; two equal ones that are the same object compare without a call.
    """
    made = _new(UUID)
    _set_int(made, _int_from_bytes(data, "big"))
    _set_is_safe(made, _UNKNOWN)
    return made


def records_length(records: Chunk | Sequence[Chunk]) -> int:
    """The size of records in bytes, whether they are in memory, in a file, or in several pieces."""
    if isinstance(records, FileSlice):
        return records.length
    return sum(map(len, records)) if isinstance(records, (list, tuple)) else len(records)


def put_records(records: Chunk | Sequence[Chunk], parts: list[Buffer], chunks: list[Chunk]) -> list[Buffer]:
    """Add records after *parts*, the pieces not yet joined; return the pieces that are not yet joined now."""
    if isinstance(records, (list, tuple)):
        for piece in records:
            parts = _put_chunk(piece, parts, chunks)
        return parts
    return _put_chunk(records, parts, chunks)  # type: ignore[arg-type]


def _put_chunk(chunk: Chunk, parts: list[Buffer], chunks: list[Chunk]) -> list[Buffer]:
    if isinstance(chunk, FileSlice):
        if chunk.length == 0:
            return parts
    elif len(chunk) < CHUNK_BYTES_MIN:
        parts.append(chunk)
        return parts
    if parts:
        chunks.append(b"".join(parts))
    chunks.append(chunk)
    return []


def beyond(what: str, claimed: int, left: int) -> ProtocolError:
    """The error for a length or a count that the frame cannot hold."""
    return ProtocolError(f"{what}: {claimed} claimed, {left} bytes left")


def too_many(what: str) -> ProtocolError:
    """The error for more entries than any client has reason to send at once."""
    return ProtocolError(f"{what}: more than {ENTRIES_MAX} entries in one request")


def bad_length(what: str, length: int) -> ProtocolError:
    """The error for a length below zero: null where it is not allowed, or nonsense."""
    return ProtocolError(f"{what}: null is not allowed" if length == -1 else f"{what}: length {length}")
