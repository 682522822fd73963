"""Frames: the size before them, the header in them, the body after it; for the broker's side and the client's.

A request's header is read by hand because every request pays for it; ``messages/headers.py`` declares the same header
and the tests hold both to be equal. Reading one never raises for an API or a version that is unknown: the broker must
answer those (an ApiVersions request of an unknown version is answered in version 0), or close with a good reason.
"""

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple, TypeVar

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk

from .compiler import decoder, encoder
from .registry import APIS, Api
from .runtime import SHORT_TEXT, bad_length, beyond, skip_tags
from .types import spec_of

M = TypeVar("M")

_read_start: Final = Struct(">hhih").unpack_from
_START_BYTES: Final = 10
_SIZE: Final = Struct(">i")
_SIZE_AND_ID: Final = Struct(">ii")
_SIZE_AND_ID_AND_NO_TAGS: Final = Struct(">iix")
_REQUEST_HEAD: Final = Struct(">ihhih")
_METADATA: Final = 3
_METADATA_SURPLUS_FROM: Final = 11


class RequestHead(NamedTuple):
    """What is known of a request before its body is read."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    api: Api | None
    """None for an API key that nobody knows; then ``body`` and ``client_id`` are not known either."""
    body: int
    """Where the body begins in the frame."""

    @property
    def known(self) -> bool:
        """Can the body be decoded?"""
        return self.api is not None and self.api_version in self.api.versions


def read_request_head(frame: memoryview) -> RequestHead:
    """The header of a request, given its frame without the size.

    Raises:
        ProtocolError: there is no header in these bytes.
    """
    try:
        api_key, api_version, correlation_id, length = _read_start(frame)
        api = APIS.get(api_key)
        if api is None:
            return RequestHead(api_key, api_version, correlation_id, None, None, _START_BYTES)
        pos = _START_BYTES
        client_id = None
        if 0 <= length < len(SHORT_TEXT):
            client_id = SHORT_TEXT[length](frame, pos)[0].decode()
            pos += length
        elif length != -1:
            client_id = _long_client_id(frame, length)
            pos += length
        if api_version >= api.flexible_from:
            pos = _skip_header_tags(frame, pos)
    except struct_error:
        raise ProtocolError(f"a request of {len(frame)} bytes") from None
    except UnicodeDecodeError:
        raise ProtocolError("client id: not UTF-8") from None
    return RequestHead(api_key, api_version, correlation_id, client_id, api, pos)


def _long_client_id(frame: memoryview, length: int) -> str:
    if length < 0:
        raise bad_length("client id", length)
    if length > len(frame) - _START_BYTES:
        raise beyond("client id", length, len(frame) - _START_BYTES)
    return str(frame[_START_BYTES : _START_BYTES + length], "utf-8")


def _skip_header_tags(frame: memoryview, pos: int) -> int:
    try:
        count = frame[pos]
        return skip_tags(frame, pos + 1, count) if count else pos + 1
    except IndexError:
        raise ProtocolError("the header ends too early") from None


def read_request(head: RequestHead, frame: memoryview) -> object:
    """The body of a request whose head is known, of the class ``head.api.request``.

    Raises:
        ProtocolError: the body is not such a request, or it does not fill the frame.
    """
    return request_reader(head.api_key, head.api_version)(frame, head.body)


@cache
def request_reader(api_key: int, api_version: int) -> Callable[[memoryview, int], object]:
    """The function ``(frame, where the body begins) -> request`` of one API and version."""
    cls = APIS[api_key].request
    decode = decoder(cls, api_version)

    def read(frame: memoryview, body: int) -> object:
        message, end = decode(frame, body)
        if end != len(frame):
            raise _too_long(cls, api_version, len(frame) - end)
        return message

    if api_key == _METADATA and api_version >= _METADATA_SURPLUS_FROM:
        return lambda frame, body: read(_without_librdkafkas_surplus(frame, body), body)
    return read


def _without_librdkafkas_surplus(frame: memoryview, pos: int) -> memoryview:
    """Kafka ignores what follows a request, so nobody noticed that librdkafka asks for all topics with three bytes too
    many: it writes the missing list as four zeros instead of one (confluentinc/librdkafka#5049)."""
    return frame[:-3] if len(frame) - pos == 7 and not any(frame[pos : pos + 4]) else frame


def _read_all(cls: type[M], version: int, frame: memoryview, pos: int) -> M:
    message, end = decoder(cls, version)(frame, pos)
    if end != len(frame):
        raise _too_long(cls, version, len(frame) - end)
    return message


def _too_long(cls: type, version: int, surplus: int) -> ProtocolError:
    return ProtocolError(f"{cls.__name__} v{version}: {surplus} bytes too many")


class Encoded:
    """The bytes of a response in one version: for one that is given again and again, by whoever remembers it."""

    __slots__ = ("api_version", "body", "cls")

    def __init__(self, cls: type, api_version: int, body: bytes) -> None:
        self.cls = cls
        self.api_version = api_version
        self.body = body

    @property
    def message(self) -> object:
        """What it says."""
        message: object = _read_all(self.cls, self.api_version, memoryview(self.body), 0)
        return message


def response_frame(*, correlation_id: int, api_key: int, api_version: int, message: object) -> list[Chunk]:
    """A response, ready to be written: size, header, body."""
    cls, encode, header = _response_writer(api_key, api_version)
    if type(message) is Encoded:
        assert message.api_version == api_version
        assert message.cls is cls
        return [header.pack(header.size - _SIZE.size + len(message.body), correlation_id) + message.body]
    assert isinstance(message, cls)
    chunks = encode(message)
    size = header.size - _SIZE.size + _length(chunks)
    return _with_head(header.pack(size, correlation_id), chunks)


@cache
def _response_writer(api_key: int, api_version: int) -> tuple[type, Callable[[object], list[Chunk]], Struct]:
    """(the class of the answer, its encoder, the layout of what comes before it)."""
    api = APIS[api_key]
    header = _SIZE_AND_ID_AND_NO_TAGS if api.response_header_version(api_version) else _SIZE_AND_ID
    return api.response, encoder(api.response, api_version), header


def request_frame(
    *, correlation_id: int, api_version: int, message: object, client_id: str | None = None
) -> list[Chunk]:
    """A request, ready to be written: size, header, body."""
    api = api_of(message)
    chunks: list[Chunk] = encoder(api.request, api_version)(message)
    name = b"" if client_id is None else client_id.encode()
    tail = name + (b"\0" if api_version >= api.flexible_from else b"")
    size = _START_BYTES + len(tail) + _length(chunks)
    length = -1 if client_id is None else len(name)
    return _with_head(_REQUEST_HEAD.pack(size, api.key, api_version, correlation_id, length) + tail, chunks)


def api_of(message: object) -> Api:
    """The API of a request."""
    key = spec_of(type(message)).key
    assert key is not None
    api = APIS[key]
    assert isinstance(message, api.request)
    return api


def read_correlation_id(frame: memoryview) -> int:
    """The correlation id of a response, given its frame without the size."""
    try:
        (correlation_id,) = _SIZE.unpack_from(frame)
    except struct_error:
        raise ProtocolError(f"a response of {len(frame)} bytes") from None
    assert isinstance(correlation_id, int)
    return correlation_id


def read_response(cls: type[M], api_version: int, frame: memoryview) -> M:
    """The body of a response, given its frame without the size."""
    key = spec_of(cls).key
    assert key is not None
    api, pos = APIS[key], _SIZE.size
    if api.response_header_version(api_version):
        pos = _skip_header_tags(frame, pos)
    return _read_all(cls, api_version, frame, pos)


def _length(chunks: Sequence[Chunk]) -> int:
    return len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))


def _with_head(head: bytes, chunks: list[Chunk]) -> list[Chunk]:
    """Every message begins with bytes of its own, so the head joins the first chunk."""
    if not chunks:
        return [head]
    first = chunks[0]
    assert isinstance(first, bytes)
    chunks[0] = head + first
    return chunks
