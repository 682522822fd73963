"""A client without manners: whole requests, halves of them, or any bytes, over a plain socket."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from struct import Struct
from types import TracebackType
from typing import Self, TypeVar

from cordwood.broker.handlers.api_versions import served_versions
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.registry import api_of

R = TypeVar("R")

_LENGTH = Struct(">i")
_NO_LINGER = Struct("ii").pack(1, 0)
TIMEOUT_S = 20.0


class ClosedByBroker(Exception):
    """The broker has ended the connection."""


class RawClient:
    """One connection to a broker."""

    def __init__(
        self, bootstrap: str, *, receive_buffer_bytes: int | None = None, source_host: str | None = None
    ) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.socket()
        if source_host is not None:
            self._socket.bind((source_host, 0))
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def ask(self, request: object, answer: type[R], *, version: int | None = None) -> R:
        """Send a request and wait for its answer; without a version, in the newest."""
        version = newest(request) if version is None else version
        correlation_id = self.send(request, version=version)
        frame = memoryview(self.receive_frame())
        assert read_correlation_id(frame) == correlation_id
        return read_response(answer, version, frame)

    def send(self, request: object, *, version: int | None = None, client_id: str | None = "raw") -> int:
        """Send a request without waiting for its answer. Its correlation id."""
        self._correlation_id += 1
        version = newest(request) if version is None else version
        self.send_bytes(encoded(request, version=version, correlation_id=self._correlation_id, client_id=client_id))
        return self._correlation_id

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (ConnectionError, BrokenPipeError) as error:
            raise ClosedByBroker from error

    def send_some(self, data: bytes) -> int:
        """Send what the kernel takes at once; 0 if that is nothing."""
        self._socket.setblocking(False)
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except (ConnectionError, BrokenPipeError) as error:
            raise ClosedByBroker from error
        finally:
            self._socket.settimeout(TIMEOUT_S)

    def receive_frame(self) -> bytes:
        """A whole response without its length."""
        (length,) = _LENGTH.unpack(self.receive_bytes(_LENGTH.size))
        return self.receive_bytes(length)

    def receive_bytes(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                more = self._socket.recv(min(count - len(data), 1 << 20))
            except ConnectionError as error:
                raise ClosedByBroker from error
            if not more:
                raise ClosedByBroker
            data += more
        return bytes(data)

    def has_answer(self) -> bool:
        """Is there something to receive now?"""
        return bool(select.select([self._socket], [], [], 0)[0])

    def closed(self) -> bool:
        """Has the broker ended the connection? Waits for it, and takes no answer for an end."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def reset(self) -> None:
        """End the connection without a farewell."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._socket.close()

    def finish_sending(self) -> None:
        with suppress(OSError):  # it may have been closed already
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def crowd(bootstrap: str, count: int) -> Iterator[list[RawClient]]:
    """Many connections at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(RawClient(bootstrap)) for _ in range(count)]


def newest(request: object) -> int:
    return served_versions(api_of(request).key).stop - 1


def encoded(request: object, *, version: int, correlation_id: int = 1, client_id: str | None = "raw") -> bytes:
    """A request's bytes, with its length before it."""
    chunks = request_frame(correlation_id=correlation_id, api_version=version, message=request, client_id=client_id)
    return b"".join(bytes(chunk) for chunk in chunks if not hasattr(chunk, "file"))


def framed(body: bytes) -> bytes:
    """Any bytes with their length before them."""
    return _LENGTH.pack(len(body)) + body
