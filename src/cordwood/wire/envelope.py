"""What frames in both directions have in common: a size in front, tags in the header, a body that fills the rest."""

from collections.abc import Sequence
from struct import Struct
from typing import Final, TypeVar

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk

from .compiler import decoder
from .runtime import skip_tags

M = TypeVar("M")

SIZE: Final = Struct(">i")
REQUEST_START_BYTES: Final = 10
"""API key, version, correlation id, and the length of the client id."""


def skip_header_tags(frame: memoryview, pos: int) -> int:
    """Where the body begins, if the header's tags begin at *pos*."""
    try:
        count = frame[pos]
        return skip_tags(frame, pos + 1, count) if count else pos + 1
    except IndexError:
        raise ProtocolError("the header ends too early") from None


def read_all(cls: type[M], version: int, frame: memoryview, pos: int) -> M:
    """The message that fills a frame from *pos* to its end."""
    message, end = decoder(cls, version)(frame, pos)
    if end != len(frame):
        raise too_long(cls, version, len(frame) - end)
    return message


def too_long(cls: type, version: int, surplus: int) -> ProtocolError:
    return ProtocolError(f"{cls.__name__} v{version}: {surplus} bytes too many")


def length_of(chunks: Sequence[Chunk]) -> int:
    return len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))


def with_head(head: bytes, chunks: list[Chunk]) -> list[Chunk]:
    """Put *head* in front: every message begins with ``bytes``, so the head joins the first chunk."""
    if not chunks:
        return [head]
    first = chunks[0]
    assert isinstance(first, bytes)
    chunks[0] = head + first
    return chunks
