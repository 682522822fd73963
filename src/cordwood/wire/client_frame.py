"""Frames as a client writes and reads them.

Everything needed for an API is in the declarations of its two messages, so a client that uses few APIs loads no others.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final, TypeVar

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk

from .compiler import encoder
from .envelope import REQUEST_START_BYTES, SIZE, length_of, read_all, skip_header_tags, with_head
from .types import API_VERSIONS_KEY, spec_of

M = TypeVar("M")

_REQUEST_HEAD: Final = Struct(">ihhih")


def request_frame(
    *, correlation_id: int, api_version: int, message: object, client_id: str | None = None
) -> list[Chunk]:
    """A request, ready to be written: size, header, body."""
    spec = spec_of(type(message))
    assert spec.key is not None, "only whole messages have keys"
    assert spec.name.endswith("Request"), "answers are the broker's"
    chunks: list[Chunk] = encoder(type(message), api_version)(message)
    name = b"" if client_id is None else client_id.encode()
    tail = name + (b"\0" if api_version in spec.flexible else b"")
    size = REQUEST_START_BYTES + len(tail) + length_of(chunks)
    length = -1 if client_id is None else len(name)
    return with_head(_REQUEST_HEAD.pack(size, spec.key, api_version, correlation_id, length) + tail, chunks)


def read_correlation_id(frame: memoryview) -> int:
    """The correlation id of a response, given its frame without the size."""
    try:
        (correlation_id,) = SIZE.unpack_from(frame)
    except struct_error:
        raise ProtocolError(f"a response of {len(frame)} bytes") from None
    assert isinstance(correlation_id, int)
    return correlation_id


def read_response(cls: type[M], api_version: int, frame: memoryview) -> M:
    """The body of a response, given its frame without the size."""
    spec, pos = spec_of(cls), SIZE.size
    if api_version in spec.flexible and spec.key != API_VERSIONS_KEY:
        pos = skip_header_tags(frame, pos)
    return read_all(cls, api_version, frame, pos)
