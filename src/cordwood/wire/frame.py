"""Frames as the broker reads and writes them: a size, a header, and a body.

Request headers are decoded by hand-written code, because every request pays for it; ``messages/headers.py`` declares
the same header, and tests make sure that both agree. Reading a header never raises for an unknown API or version: the
broker must answer such a request (ApiVersions of an unknown version is answered in version 0), or close the connection
with a good reason.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import Final

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk

from .compiler import WriteFrame, decoder, encoder, frame_writer, head_reader
from .envelope import REQUEST_START_BYTES, SIZE, length_of, read_all, skip_header_tags, too_long, with_head
from .registry import APIS, Api
from .runtime import SHORT_TEXT, bad_length, beyond

_read_usual_head: Final = head_reader()
_FLEXIBLE_FROM: Final = {api.key: api.flexible_from for api in APIS.values()}
_read_start: Final = Struct(">hhih").unpack_from
_SIZE_AND_ID: Final = Struct(">ii")
_SIZE_AND_ID_AND_NO_TAGS: Final = Struct(">iix")
_METADATA: Final = 3
_METADATA_SURPLUS_FROM: Final = 11


class RequestHead:
    """What is known of a request before its body is read: for an unknown API, only the numbers."""

    __slots__ = ("api_key", "api_version", "body", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body: int) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        """Where the body begins in the frame."""

    @property
    def api(self) -> Api | None:
        """None for an unknown API key."""
        return APIS.get(self.api_key)

    @property
    def known(self) -> bool:
        """Can the body be decoded?"""
        api = self.api
        return api is not None and self.api_version in api.versions


def read_request_head(frame: memoryview) -> RequestHead:
    """The header of a request, given its frame without the size.

    Raises:
        ProtocolError: the bytes do not begin with a header.
    """
    if _read_usual_head is not None:
        usual = _read_usual_head(frame, _FLEXIBLE_FROM)
        if usual is not None:
            api_key, api_version, correlation_id, client_id, body = usual
            return RequestHead(api_key, api_version, correlation_id, client_id, body)
    try:
        api_key, api_version, correlation_id, length = _read_start(frame)
        api = APIS.get(api_key)
        if api is None:
            return RequestHead(api_key, api_version, correlation_id, None, REQUEST_START_BYTES)
        pos = REQUEST_START_BYTES
        client_id = None
        if 0 <= length < len(SHORT_TEXT):
            client_id = SHORT_TEXT[length](frame, pos)[0].decode()
            pos += length
        elif length != -1:
            client_id = _long_client_id(frame, length)
            pos += length
        if api_version >= api.flexible_from:
            pos = skip_header_tags(frame, pos)
    except struct_error:
        raise ProtocolError(f"a request of {len(frame)} bytes") from None
    except UnicodeDecodeError:
        raise ProtocolError("client id: not UTF-8") from None
    return RequestHead(api_key, api_version, correlation_id, client_id, pos)


def _long_client_id(frame: memoryview, length: int) -> str:
    if length < 0:
        raise bad_length("client id", length)
    if length > len(frame) - REQUEST_START_BYTES:
        raise beyond("client id", length, len(frame) - REQUEST_START_BYTES)
    return str(frame[REQUEST_START_BYTES : REQUEST_START_BYTES + length], "utf-8")


def read_request(head: RequestHead, frame: memoryview) -> object:
    """The body of a request whose head is known, of the class ``head.api.request``.

    Raises:
        ProtocolError: the body is not such a request, or it does not fill the frame.
    """
    return request_reader(head.api_key, head.api_version)(frame, head.body)


@cache
def request_reader(api_key: int, api_version: int) -> Callable[[memoryview, int], object]:
    """The function ``(frame, where the body begins) -> request`` for one API and version."""
    cls = APIS[api_key].request
    decode = decoder(cls, api_version)

    def read(frame: memoryview, body: int) -> object:
        message, end = decode(frame, body)
        if end != len(frame):
            raise too_long(cls, api_version, len(frame) - end)
        return message

    if api_key == _METADATA and api_version >= _METADATA_SURPLUS_FROM:
        return lambda frame, body: read(_without_librdkafkas_surplus(frame, body), body)
    return read


def _without_librdkafkas_surplus(frame: memoryview, pos: int) -> memoryview:
    """Cut off the three bytes too many with which librdkafka asks for all topics: it writes the missing list as four
    zeros instead of one (confluentinc/librdkafka#5049). Kafka ignores what follows a request, so nobody noticed."""
    return frame[:-3] if len(frame) - pos == 7 and not any(frame[pos : pos + 4]) else frame


class Encoded:
    """The body of a response, encoded in one version, to be kept and sent again and again."""

    __slots__ = ("api_version", "body", "cls")

    def __init__(self, cls: type, api_version: int, body: bytes) -> None:
        self.cls = cls
        self.api_version = api_version
        self.body = body

    @property
    def message(self) -> object:
        """The decoded message."""
        message: object = read_all(self.cls, self.api_version, memoryview(self.body), 0)
        return message


def response_frame(*, correlation_id: int, api_key: int, api_version: int, message: object) -> list[Chunk]:
    """A response, ready to be written: size, header, body."""
    cls, write, header = _response_writer(api_key, api_version)
    if type(message) is Encoded:
        assert message.api_version == api_version
        assert message.cls is cls
        return [header.pack(header.size - SIZE.size + len(message.body), correlation_id) + message.body]
    assert isinstance(message, cls)
    return write(message, correlation_id)


@cache
def _response_writer(api_key: int, api_version: int) -> tuple[type, WriteFrame, Struct]:
    """The response's class, the function that makes a frame of one, and the layout of what precedes the body."""
    api = APIS[api_key]
    header = _SIZE_AND_ID_AND_NO_TAGS if api.response_header_version(api_version) else _SIZE_AND_ID
    encode = encoder(api.response, api_version)

    def write(message: object, correlation_id: int) -> list[Chunk]:
        chunks = encode(message)
        size = header.size - SIZE.size + length_of(chunks)
        return with_head(header.pack(size, correlation_id), chunks)

    return api.response, frame_writer(api.response, api_version, header.size, write), header
