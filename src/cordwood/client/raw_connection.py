"""One blocking connection to one broker: TLS and SASL if asked for, negotiated versions, frames out and in.

Nothing that the other side claims is trusted: a response's size has a limit, its buffer grows with what has really
arrived (a claim of a gigabyte costs no more than a response to a Fetch), its correlation id must be that of the oldest
request in flight, and the wire layer checks the rest. Anything that breaks the order of requests and responses closes
the connection.

Responses lie in a buffer that is used again: what points into it (the records of a Fetch) is valid until the next
``receive``.
"""

import socket
from collections import deque
from struct import Struct
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from cordwood.errors import Error, ProtocolError
from cordwood.ports import Chunk
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from cordwood.wire.types import spec_of

from .raw_errors import AuthenticationFailed, ConnectionLost, RequestRefused, error_of
from .raw_settings import FETCH_BYTES, RawSettings

if TYPE_CHECKING:
    from ssl import SSLContext

R = TypeVar("R")

Address = tuple[str, int]

_LENGTH = Struct(">i")
_BUFFER_MIN = 256 * 1024
_BUFFER_LARGE = FETCH_BYTES + 64 * 1024
"""Whatever does not fit into the first buffer is usually the response to a Fetch, and fits into one of this size.
Growing to it in steps would make the system allocate the memory page by page, several times over."""
_JOINED_MAX = 64 * 1024
_SMALL_RESPONSE_MAX = 1024 * 1024
"""Before authentication, responses are short."""


class Question(NamedTuple):
    """A request that has been sent and not been answered yet."""

    correlation_id: int
    version: int


class Connection:
    """A connection that is ready for requests when the constructor returns.

    Raises:
        ConnectionLost: nobody listens there, or the other side closed the connection.
        AuthenticationFailed: the broker did not accept our credentials.
        ProtocolError: the other side does not speak Kafka's protocol.
    """

    def __init__(self, address: Address, settings: RawSettings, *, tls: "SSLContext | None" = None) -> None:
        self.address = address
        self._settings = settings
        self._buffer = bytearray(_BUFFER_MIN)
        self._questions: deque[Question] = deque()
        self._correlation_id = 0
        self._response_bytes_max = _SMALL_RESPONSE_MAX
        self._versions: dict[int, range] = {}
        self.broken = False
        """Nothing more can be sent."""
        self.closed = False
        self._socket = _connected(address, settings, tls)
        try:
            self._agree()
            if settings.security.uses_sasl:
                from .raw_login import log_in  # imports a theme of messages that other clients do not need

                log_in(self, settings.security)
        except BaseException:
            self.close()
            raise
        self._response_bytes_max = settings.response_bytes_max

    @property
    def pending(self) -> int:
        """How many requests are in flight."""
        return len(self._questions)

    def version(self, request: type, *, at_most: int | None = None) -> int:
        """The newest version of a request that both sides support."""
        spec = spec_of(request)
        assert spec.key is not None, "requests have keys"
        ours, theirs = spec.versions, self._versions.get(spec.key, range(0))
        stop = min(ours.stop, theirs.stop, ours.stop if at_most is None else at_most + 1)
        if stop <= max(ours.start, theirs.start):
            name = spec.name.removesuffix("Request")
            raise RequestRefused(
                f"the broker at {shown(self.address)} does not speak {name} as this client does",
                Error.UNSUPPORTED_VERSION,
                f"it has versions {_range_text(theirs)}, this client {_range_text(ours)}; Apache Kafka 2.8 or newer is "
                "needed",
            )
        return stop - 1

    def ask(self, request: object, answer: type[R], *, version: int | None = None) -> R:
        """Send a request and wait for its answer."""
        assert not self._questions, "answers come in the order of the questions"
        self.send(request, version=version)
        return self.receive(answer)

    def send(self, request: object, *, version: int | None = None) -> None:
        """Send a request; its answer comes with a later ``receive``."""
        if version is None:
            version = self.version(type(request))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        chunks = request_frame(
            correlation_id=self._correlation_id,
            api_version=version,
            message=request,
            client_id=self._settings.client_id,
        )
        try:
            self._send_chunks(chunks)
        except OSError as error:
            self.broken = True  # answers to earlier requests may still be there to be read
            raise lost(self.address, error) from error
        self._questions.append(Question(self._correlation_id, version))

    def receive(self, answer: type[R]) -> R:
        """The response to the oldest request in flight. What it points to is valid until the next ``receive``."""
        question = self._questions[0]
        try:
            frame = self._receive_frame()
            if read_correlation_id(frame) != question.correlation_id:
                raise ProtocolError(f"{shown(self.address)} answered another request than the one it was asked")
            found = read_response(answer, question.version, frame)
        except ProtocolError:
            self.close()
            raise
        except OSError as error:
            raise self._lost(error) from error
        self._questions.popleft()
        return found

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Bytes

    def _send_chunks(self, chunks: list[Chunk]) -> None:
        if sum(map(len, chunks)) <= _JOINED_MAX:
            self._socket.sendall(b"".join(chunks))  # type: ignore[arg-type]  # a client sends no slices of files
            return
        for chunk in chunks:
            assert isinstance(chunk, (bytes, bytearray, memoryview)), "a client sends no slices of files"
            self._socket.sendall(chunk)

    def _receive_frame(self) -> memoryview:
        self._receive_into(0, _LENGTH.size)
        (length,) = _LENGTH.unpack_from(self._buffer)
        if not 0 <= length <= self._response_bytes_max:
            raise ProtocolError(
                f"{shown(self.address)} announced an answer of {length} bytes; is it a Kafka broker, and does it want "
                "TLS or a password?"
            )
        start = 0
        while start < length:
            # Allocate no more than a Fetch needs, or twice what has arrived already: the claimed length may be a lie.
            end = min(length, max(len(self._buffer), _BUFFER_LARGE, 2 * start))
            self._grow(end)
            self._receive_into(start, end)
            start = end
        return memoryview(self._buffer)[:length]

    def _grow(self, size: int) -> None:
        if size > len(self._buffer):
            larger = bytearray(max(size, _BUFFER_LARGE))
            larger[: len(self._buffer)] = self._buffer
            self._buffer = larger  # views of the old one stay valid

    def _receive_into(self, start: int, end: int) -> None:
        view = memoryview(self._buffer)
        while start < end:
            received = self._socket.recv_into(view[start:end])
            if not received:
                raise ConnectionResetError("the broker hung up")
            start += received

    def _lost(self, error: OSError) -> ConnectionLost:
        self.close()
        return lost(self.address, error)

    # Agreeing on versions

    def _agree(self) -> None:
        """Find out which versions the broker supports. If it is too old for our request, it says so in version 0."""
        newest = spec_of(ApiVersionsRequest).versions.stop - 1
        answer = self._ask_versions(min(newest, 3))
        if answer.error_code == Error.UNSUPPORTED_VERSION:
            answer = self._ask_versions(0)
        if answer.error_code:
            raise RequestRefused(f"{shown(self.address)}: ApiVersions", error_of(answer.error_code))
        self._versions = {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}

    def _ask_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="cordwood", client_software_version="0")
        self.send(request, version=version)
        question = self._questions.popleft()
        try:
            frame = self._receive_frame()
        except OSError as error:
            raise self._lost(error) from error
        if read_correlation_id(frame) != question.correlation_id:
            raise ProtocolError(f"{shown(self.address)} does not answer like a Kafka broker")
        if version and int.from_bytes(frame[4:6], "big") == Error.UNSUPPORTED_VERSION:
            version = 0  # a version that the broker does not know is always answered in this one
        return read_response(ApiVersionsResponse, version, frame)


def _connected(address: Address, settings: RawSettings, tls: "SSLContext | None") -> socket.socket:
    assert (tls is not None) == settings.security.uses_tls
    try:
        plain_socket = socket.create_connection(address, settings.connect_timeout_ms / 1000)
    except OSError as error:
        raise lost(address, error) from error
    try:
        plain_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected = plain_socket if tls is None else _encrypted(plain_socket, address, tls)
        connected.settimeout(settings.request_timeout_ms / 1000)
    except AuthenticationFailed:
        plain_socket.close()
        raise
    except OSError as error:
        plain_socket.close()
        raise lost(address, error) from error
    return connected


def _encrypted(plain_socket: socket.socket, address: Address, tls: "SSLContext") -> socket.socket:
    import ssl  # already loaded, with the context; other clients do without

    try:
        return tls.wrap_socket(plain_socket, server_hostname=address[0])
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationFailed(f"the certificate of {shown(address)} is not trusted: {error}") from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError):
        raise  # the broker closed the connection, perhaps for a reason that will go away
    except ssl.SSLError as error:
        raise AuthenticationFailed(
            f"{shown(address)} and this client do not agree on TLS: {error}; does the broker want a certificate of "
            "ours, and is it a port for TLS?"
        ) from error


def lost(address: Address, error: OSError) -> ConnectionLost:
    if isinstance(error, socket.gaierror):
        reason = "there is no such host"
    elif isinstance(error, TimeoutError):
        reason = "no answer in time"
    else:
        reason = error.strerror or str(error)
    return ConnectionLost(f"{shown(address)}: {reason}")


def shown(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _range_text(versions: range) -> str:
    return f"{versions.start} to {versions.stop - 1}" if versions else "none"
