"""Many connections in one thread, for members of groups: complete frames in, complete frames out, and little else.

A member that waits for its group keeps its connection busy, so every member has one of its own, as real members do.
"""

import selectors
import socket
from collections.abc import Iterator
from threading import Event
from types import TracebackType
from typing import Final, Self, TypeVar

from cordwood.wire import encode
from cordwood.wire import messages as m
from cordwood.wire.client_frame import read_response, request_frame

from .raw import RawError, metadata_frame

SILENCE_LIMIT_S: Final = 30.0
RECEIVE_BYTES: Final = 1 << 18
CLIENT: Final = "bench"

# Fewer connections than may wait for Kafka to accept them; beyond that, the next would be tried again after a second.
BACKLOG: Final = 25
METADATA_VERSION: Final = 1

FIND_VERSION: Final = 4
FETCH_VERSION: Final = 9
# So many that every partition of the offsets topic certainly has one of them.
GROUPS_ASKED: Final = 1000
POLL_S: Final = 0.1

M = TypeVar("M")


class Wires:
    """Connections by number. Each has at most one request in flight, except for callers of `received`."""

    def __init__(self, port: int, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self._partial = [b""] * count
        for number in range(count):
            self._open(port)
            if number % BACKLOG == BACKLOG - 1:
                self.ask(number, metadata_frame(), m.MetadataResponse, METADATA_VERSION)

    def _open(self, port: int) -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ, len(self._sockets))
        self._sockets.append(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for connection in self._sockets:
            connection.close()

    def send(self, number: int, data: bytes | bytearray) -> None:
        self._sockets[number].sendall(data)

    def received(self) -> Iterator[tuple[int, bytes]]:
        """(connection, bytes) as they arrive, without end."""
        while True:
            ready = self._selector.select(SILENCE_LIMIT_S)
            if not ready:
                raise RawError(f"the broker was silent for {SILENCE_LIMIT_S:.0f} s")
            for key, _ in ready:
                data = self._sockets[key.data].recv(RECEIVE_BYTES)
                if not data:
                    raise RawError("the broker closed a connection")
                yield key.data, data

    def frames(self) -> Iterator[tuple[int, memoryview]]:
        """(connection, frame without its size) as they arrive, without end."""
        for number, data in self.received():
            data = self._partial[number] + data
            size = int.from_bytes(data[:4], "big")
            if len(data) < 4 + size:
                self._partial[number] = data
                continue
            assert len(data) == 4 + size, "two answers to one request"
            self._partial[number] = b""
            yield number, memoryview(data)[4:]

    def ask(self, number: int, frame: bytes, answer: type[M], version: int) -> M:
        """Send one request and return its answer, while nothing else is in flight."""
        self.send(number, frame)
        answered, data = next(self.frames())
        assert answered == number
        return read_response(answer, version, data)


def request(message: object, version: int) -> bytes:
    """A request as it is sent."""
    (frame,) = request_frame(correlation_id=0, api_version=version, message=message, client_id=CLIENT)
    assert isinstance(frame, bytes)
    return frame


def body(message: object, version: int) -> bytes:
    """A message that is a field of another one, after its version."""
    return version.to_bytes(2, "big") + encode(message, version)


def pause(seconds: float) -> None:
    """Wait for something that gives no sign when it has happened."""
    Event().wait(seconds)


def check(error: int, what: str) -> None:
    if error != 0:
        raise RawError(f"{what} was answered with error {error}")


def find_coordinators(port: int) -> None:
    """Wait until every group has a coordinator: the first request creates the offsets topic."""
    find = request(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["bench"]), FIND_VERSION)
    anybody = [m.OffsetFetchRequestGroup(group_id=f"bench-{n}", topics=None) for n in range(GROUPS_ASKED)]
    fetch = request(m.OffsetFetchRequest(groups=anybody), FETCH_VERSION)
    with Wires(port, 1) as wires:
        while any(c.error_code for c in wires.ask(0, find, m.FindCoordinatorResponse, FIND_VERSION).coordinators):
            pause(POLL_S)
        while any(group.error_code for group in wires.ask(0, fetch, m.OffsetFetchResponse, FETCH_VERSION).groups):
            pause(POLL_S)
