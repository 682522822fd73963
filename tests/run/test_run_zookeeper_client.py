"""The lease: how long a session is certain, whatever answers say and whenever they come."""

import logging
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import pytest

from cordwood.errors import StorageError
from cordwood.run.zookeeper_client import GOODBYE_S, ConnectionEvent, ZooKeeperClient
from support.waiting import eventually, in_time

SESSION_MS = 2_000
PING = -2
CLOSE = -11


class SlowServer:
    """Greets as ZooKeeper does, answers each ping after a while, and says good-bye if it is polite; nothing else."""

    def __init__(self, delay_s: float, *, granted_ms: int = SESSION_MS, polite: bool = True) -> None:
        self.pings_s: list[float] = []
        self.questions_s: list[float] = []
        """When there was anything that an answer prolongs a session for: a greeting, or a ping."""
        self.greeted = self.answered = 0
        self._delay_s = delay_s
        self._granted_ms = granted_ms
        self._polite = polite
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: socket.socket | None = None
        self._ended = threading.Event()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock, suppress(OSError):  # the client has gone, or the test
                self._open = sock
                self._serve(sock)

    def _serve(self, sock: socket.socket) -> None:
        _frame(sock)
        self.questions_s.append(monotonic())
        greeting = struct.pack("!iiqi", 0, self._granted_ms, 7, 16) + bytes(16) + b"\0"
        sock.sendall(struct.pack("!i", len(greeting)) + greeting)
        self.greeted += 1
        while frame := _frame(sock):
            xid, kind = struct.unpack_from("!ii", frame)
            if kind == CLOSE and self._polite:
                return
            if xid == PING:
                self.questions_s.append(monotonic())
                self.pings_s.append(self.questions_s[-1])
                self._ended.wait(self._delay_s)
                sock.sendall(struct.pack("!iiqi", 16, PING, 0, 0))
                self.answered += 1

    def close(self) -> None:
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._open is not None:
            with suppress(OSError):
                self._open.shutdown(socket.SHUT_RDWR)
        self._thread.join()


def _frame(sock: socket.socket) -> bytes:
    head = sock.recv(4, socket.MSG_WAITALL)
    return sock.recv(struct.unpack("!i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else b""


@contextmanager
def connected_to(address: str) -> Iterator[tuple[ZooKeeperClient, list[ConnectionEvent]]]:
    events: list[ConnectionEvent] = []
    client = ZooKeeperClient(
        address,
        chroot="",
        session_timeout_ms=SESSION_MS,
        credentials=None,
        sensitive=lambda path: False,
        on_event=events.append,
        logger=logging.getLogger("test"),
    )
    client.start()
    try:
        yield client, events
    finally:
        client.stop()


@pytest.fixture
def slow() -> Iterator[SlowServer]:
    server = SlowServer(delay_s=0.3)
    yield server
    server.close()


def test_the_lease_counts_from_the_question_and_not_from_the_answer(slow: SlowServer) -> None:
    with connected_to(slow.address) as (client, _):
        eventually(lambda: slow.answered >= 1, what="a ping")
        question_s = slow.pings_s[0]
        eventually(lambda: client.lease_end_s > question_s + SESSION_MS / 1000 - 0.2, what="the lease is prolonged")
        lease_end_s = client.lease_end_s
        # Usually the first ping, but a machine may stall, and the session may be another.
        assert lease_end_s <= slow.questions_s[-1] + SESSION_MS / 1000


def test_a_question_without_an_answer_ends_with_the_lease(slow: SlowServer) -> None:
    def ask() -> float:
        with connected_to(slow.address) as (client, events):
            eventually(lambda: ConnectionEvent.CONNECTED in events)
            start_s = monotonic()
            with pytest.raises(StorageError, match=r"did not answer|cannot be used"):
                client.read(["/a"])
            return monotonic() - start_s

    in_time(ask, limit_s=SESSION_MS / 1000 + 0.5)


def test_a_server_that_promises_too_much_is_not_believed() -> None:
    server = SlowServer(delay_s=0.0, granted_ms=2**31 - 1)
    with connected_to(server.address) as (client, events):
        eventually(lambda: server.greeted >= 2, what="another try")
        assert not client.connected
        assert ConnectionEvent.CONNECTED not in events
    server.close()


def test_the_end_does_not_wait_for_a_good_bye() -> None:
    server = SlowServer(delay_s=0.0, polite=False)

    def end() -> float:
        with connected_to(server.address) as (_, events):
            eventually(lambda: ConnectionEvent.CONNECTED in events)
            start_s = monotonic()
        return monotonic() - start_s

    in_time(end, limit_s=GOODBYE_S + 1.0)
    server.close()
