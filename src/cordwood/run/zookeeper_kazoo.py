"""What kazoo lacks: many reads in one request, a lease, and limited patience.

Unmodified, kazoo loses its only thread, and with it the session, to a header that is too short, to an answer without a
request, or to a negative length; and it spends a whole session timeout on connecting to a server that does not answer.
These classes replace its own and depend on its internals, so its minor version is pinned.
"""

import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped, KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.connection import PING_XID, WATCH_XID, ConnectionHandler
from kazoo.protocol.serialization import Connect, GetChildren, GetData, MultiHeader
from kazoo.retry import KazooRetry

FRAME_BYTES_MAX: Final = 64 << 20
"""Larger than any answer to our requests; a server that claims more is not a ZooKeeper."""
SESSION_MS_MAX: Final = 3_600_000
_MULTI_READ: Final = 22


class MultiRead:
    """ZooKeeper's request for many reads at once; each gets a result or an error of its own."""

    type: Final = _MULTI_READ

    def __init__(self, requests: Sequence[Any]) -> None:
        self._requests = requests

    def serialize(self) -> bytes:
        parts = [MultiHeader(request.type, False, -1).serialize() + request.serialize() for request in self._requests]
        return b"".join([*parts, MultiHeader(-1, True, -1).serialize()])

    def deserialize(self, data: bytes, offset: int) -> list[Any]:
        answers: list[Any] = []
        header, offset = MultiHeader.deserialize(data, offset)
        while not header.done:
            answer, offset = _ANSWERS[header.type](data, offset)
            answers.append(answer)
            header, offset = MultiHeader.deserialize(data, offset)
        if len(answers) != len(self._requests):
            raise ValueError(f"{len(answers)} answers to {len(self._requests)} questions")
        return answers


_LENGTH: Final = struct.Struct("!i")
_STAT_SIZE: Final = struct.calcsize("!qqqqiiiqiiq")


def _read_data(data: bytes, offset: int) -> tuple[Any, int]:
    answer = GetData.deserialize(data, offset)
    return answer, offset + _LENGTH.size + len(answer[0] or b"") + _STAT_SIZE


def _read_children(data: bytes, offset: int) -> tuple[list[str], int]:
    names: list[str] = GetChildren.deserialize(data, offset)
    return names, offset + _LENGTH.size + sum(_LENGTH.size + len(name.encode()) for name in names)


def _read_error(data: bytes, offset: int) -> tuple[None, int]:
    (code,) = _LENGTH.unpack_from(data, offset)
    if code != NoNodeError.code:
        raise NoAuthError if code == NoAuthError.code else KazooException(f"error {code}")
    return None, offset + _LENGTH.size


_ANSWERS: Final[dict[int, Callable[[bytes, int], tuple[Any, int]]]] = {
    GetData.type: _read_data,
    GetChildren.type: _read_children,
    -1: _read_error,
}


class Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Gives up connecting in time to try another server; kazoo would wait a whole session for one that is down."""

    connect_timeout_s = 1.0

    def create_connection(self, *arguments: object, **options: object) -> object:
        return super().create_connection(*arguments, **{**options, "timeout": self.connect_timeout_s})


class Connection(ConnectionHandler):  # type: ignore[misc]
    """Keeps the lease, and treats nonsense as a lost connection. Everything here runs in kazoo's thread."""

    def __init__(
        self, client: KazooClient, retry_sleeper: KazooRetry, logger: logging.Logger, on_end: Callable[[], None]
    ) -> None:
        super().__init__(client, retry_sleeper, logger=logger)
        self._on_end = on_end
        self._requests_sent_s: deque[float] = deque()
        self._pings_sent_s: deque[float] = deque()
        self.granted_s: float = client._session_timeout / 1000
        self.lease_end_s = float("inf")  # no session exists yet that could end
        # When a silent server is given up, a third of the session is left; by then all others must have been tried.
        hosts = len(client.hosts)
        self.connect_timeout_s = min(max(1.0, self.granted_s / (3 * hosts)), self.granted_s / hosts)

    def zk_loop(self) -> None:
        try:
            super().zk_loop()
        except Exception as error:
            self.logger.error("kazoo gives up: %r", error)
        finally:
            self._on_end()

    def hang_up(self) -> None:
        """Drop the connection. Any thread may call this."""
        sock = self._socket
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _submit(self, request: Any, timeout: float, xid: int | None = None) -> None:  # noqa: ANN401
        (self._pings_sent_s if xid == PING_XID else self._requests_sent_s).append(time.monotonic())
        super()._submit(request, timeout, xid)

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:  # noqa: ANN401
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        self._pings_sent_s.clear()
        self._requests_sent_s.clear()
        sent_s = time.monotonic()
        answer = super()._invoke(self.connect_timeout_s, request, xid)
        self._requests_sent_s.clear()
        if answer[0].time_out > SESSION_MS_MAX:
            raise ConnectionDropped(f"the server claims to keep the session for {answer[0].time_out} ms")
        if answer[0].time_out > 0:
            self.granted_s = answer[0].time_out / 1000
            self.lease_end_s = sent_s + self.granted_s
        return answer

    def _read(self, length: int, timeout: float) -> bytes:
        if not 0 <= length <= FRAME_BYTES_MAX:
            raise ConnectionDropped(f"the server claims to send {length} bytes")
        return bytes(super()._read(length, timeout))

    def _read_header(self, timeout: float) -> Any:  # noqa: ANN401
        try:
            answer = super()._read_header(timeout)
        except struct.error as error:
            raise ConnectionDropped(f"the server sent no header: {error}") from None
        xid = answer[0].xid
        if xid != WATCH_XID:
            sent_s = self._pings_sent_s if xid == PING_XID else self._requests_sent_s
            if sent_s:
                self.lease_end_s = max(self.lease_end_s, sent_s.popleft() + self.granted_s)
        return answer

    def _read_socket(self, read_timeout: float) -> Any:  # noqa: ANN401
        try:
            return super()._read_socket(read_timeout)
        except (KazooException, KazooTimeoutError, OSError):
            raise
        except Exception as error:  # whatever kazoo's decoding fails with
            raise ConnectionDropped(f"the server sent nonsense: {error!r}") from error
