"""A ZooKeeper session, typed: the only module that knows kazoo.

kazoo does the protocol, the heartbeats and the reconnecting. Added here:

- *The lease.* A session lives on the server for its timeout after the server last heard of us, which was not before we
  sent the last request that it has answered. So from the moment of that sending on the session is certain for the
  timeout, by our monotonic clock, and not longer: also when this process was stopped for a while and finds old answers
  in its socket. kazoo learns of a session's end only when it reaches a server again.
- *Many reads in one request*, which ZooKeeper has from 3.6 on and kazoo has not.
- *A server that sends nonsense* costs the connection, not the thread that reads from it.
- *A server that does not answer* when we connect is given up in time to try another before the session ends.

Methods that ask the server are called from one thread. They raise ``StorageError`` if ZooKeeper refuses, and its kind
``Unanswered`` if there is no answer; whether a change was made is then not known.
"""

import logging
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NamedTuple, assert_never

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionDropped,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.connection import PING_XID, WATCH_XID, ConnectionHandler
from kazoo.protocol.serialization import (
    CheckVersion,
    Connect,
    Create,
    GetChildren,
    GetData,
    MultiHeader,
    SetData,
    Transaction,
)
from kazoo.protocol.serialization import Delete as DeleteRequest
from kazoo.protocol.states import KazooState, WatchedEvent
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_digest_acl

from cordwood import ports
from cordwood.errors import StorageError

FRAME_BYTES_MAX: Final = 64 << 20
"""More than any answer to what is asked here; a server that claims more is none."""
SESSION_MS_MAX: Final = 3_600_000
READS_MAX: Final = 1_000
"""In one request. An answer then has some 200 kB."""
GOODBYE_S: Final = 2.0
RETRY_S_MIN: Final = 0.05
RETRY_S_MAX: Final = 0.5
_MULTI_READ: Final = 22
_POLL_S: Final = 0.1
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_ANY: Final = -1


class Credentials(NamedTuple):
    """Who we are, for ZooKeeper's scheme *digest*."""

    user: str
    password: str


class ConnectionEvent(Enum):
    """What becomes of a connection."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    ENDED = "ended"
    """The session is over, or the client is: it is of no use any more."""


class StoredNode(NamedTuple):
    """What ZooKeeper holds under a path. *data* is None for a node that is only there because others are below it."""

    data: bytes | None
    version: int
    children: int
    created: int
    """The number of the change that made it, in the order of all changes."""


class Parent(NamedTuple):
    """An operation: a node that holds nothing, for others to be below it."""

    path: str


class Unanswered(StorageError):
    """There was no answer, or none that makes sense: whatever was asked for may have happened."""


class OperationRefused(Exception):
    """A ``multi`` did not happen because of one of its operations: *index* says which."""

    def __init__(
        self, index: int, reason: str, *, exists: bool = False, missing: bool = False, has_children: bool = False
    ) -> None:
        super().__init__(reason)
        self.index = index
        self.exists = exists
        self.missing = missing
        self.has_children = has_children


class ZooKeeperClient:
    """One session. When it has ended, another client takes its place."""

    def __init__(
        self,
        hosts: str,
        *,
        chroot: str,
        session_timeout_ms: int,
        credentials: Credentials | None,
        sensitive: Callable[[str], bool],
        on_event: Callable[[ConnectionEvent], None],
        logger: logging.Logger,
    ) -> None:
        """
        Args:
            chroot: the node below which all paths are, without a slash at its end.
            sensitive: is a path for those with our credentials alone, or may everybody read it?
            on_event: called from kazoo's thread; it must not wait.
        """
        self._chroot = chroot
        self._abandoned = threading.Event()
        self._sensitive = sensitive
        self._on_event = on_event
        self._acl_open, self._acl_secret = _acls(credentials)
        quiet = logger.getChild("kazoo")
        quiet.setLevel(logging.CRITICAL)  # what is worth a line, the store says itself
        handler = _Handler()
        retry = KazooRetry(max_tries=-1, delay=RETRY_S_MIN, max_delay=RETRY_S_MAX, sleep_func=handler.sleep_func)
        self._kazoo = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            handler=handler,
            auth_data=[("digest", f"{credentials.user}:{credentials.password}")] if credentials else None,
            connection_retry=retry,
            logger=quiet,
        )
        self._connection = _Connection(self._kazoo, retry.copy(), logger=quiet, on_end=self._ended)
        self._kazoo._connection = self._connection
        handler.connect_timeout_s = self._connection.connect_timeout_s
        self._kazoo.add_listener(self._listen)

    # ------------------------------------------------------------------ the session

    def start(self) -> None:
        """Begin to connect; ``on_event`` tells the rest."""
        self._kazoo.start_async()

    def stop(self) -> None:
        """End the session: at once if we are connected, and soon even if the server does not say good-bye."""
        self.abandon()
        stopping = threading.Thread(target=self._stop, name="cordwood-zookeeper-stop", daemon=True)
        stopping.start()
        stopping.join(GOODBYE_S)
        if stopping.is_alive():
            self._connection.hang_up()
            stopping.join(GOODBYE_S)

    def _stop(self) -> None:
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except Exception as error:  # kazoo raises plain Exceptions here; there is nothing left to save
            self._kazoo.logger.debug("while closing: %s", error)

    def abandon(self) -> None:
        """Whoever waits for an answer shall not. Any thread may call it."""
        self._abandoned.set()

    @property
    def connected(self) -> bool:
        return bool(self._kazoo.connected)

    @property
    def lease_end_s(self) -> float:
        """Until when, on the monotonic clock, the session is certain to live."""
        return self._connection.lease_end_s

    @property
    def session_timeout_ms(self) -> int:
        """What the server has granted."""
        return round(self._connection.granted_s * 1000)

    @property
    def position(self) -> int:
        """All changes up to this number were in the server's state when it gave the last answer."""
        return int(self._kazoo.last_zxid)

    def _listen(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._on_event(ConnectionEvent.CONNECTED)
        elif state == KazooState.SUSPENDED:
            self._on_event(ConnectionEvent.SUSPENDED)
        else:
            self._ended()

    def _ended(self) -> None:
        self._on_event(ConnectionEvent.ENDED)

    # ------------------------------------------------------------------ questions

    def read(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """The nodes under these paths, None for one that is not there. They are not read at the same moment."""
        found: list[Any] = self._read_many([GetData(self._full(path), None) for path in paths])
        return [None if answer is None else _stored(answer) for answer in found]

    def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names of the nodes right below each of these paths, None for one that is not there."""
        names: list[list[str] | None] = self._read_many([GetChildren(self._full(path), None) for path in paths])
        return names

    def watch_children(self, path: str, changed: Callable[[], None]) -> list[str] | None:
        """The names of the nodes below; *changed* is called, once, when they are not these any more."""
        try:
            names: list[str | None] = self._ask(
                self._kazoo.get_children_async, self._full(path), watch=_Watcher(changed)
            )
        except NoNodeError:
            return None
        return [name for name in names if name is not None]

    def watch_existence(self, path: str, changed: Callable[[], None]) -> bool:
        """Is it there? *changed* is called, once, when it comes, goes, or has new data."""
        return self._ask(self._kazoo.exists_async, self._full(path), watch=_Watcher(changed)) is not None

    def _read_many(self, requests: Sequence[Any]) -> list[Any]:
        answers = [
            self._submit(_MultiRead(requests[start : start + READS_MAX]))
            for start in range(0, len(requests), READS_MAX)
        ]
        found: list[Any] = []
        for answer in answers:
            found += self._wait(answer)
        return found

    # ------------------------------------------------------------------ changes

    def ensure(self, path: str) -> None:
        """Make a node that holds nothing, and its parents, unless they are there. No path at all is the chroot."""
        names = (self._chroot + path).split("/")
        for end in range(2, len(names) + 1):
            part = "/".join(names[:end])
            if self._ask(self._kazoo.exists_async, part) is None:
                with suppress(NodeExistsError):
                    self._ask(self._kazoo.create_async, part, None, acl=self._acl(part[len(self._chroot) :]))

    def multi(self, operations: Sequence["ports.StoreOp | Parent"], *, record: tuple[str, bytes] | None = None) -> str:
        """Do all the operations or none, and leave a record: a node whose name is *record*'s with a number behind it.

        Returns:
            The name of the record, without its parents'.

        Raises:
            OperationRefused: nothing was done.
        """
        requests = [self._request(operation) for operation in operations]
        if record is not None:
            requests.append(Create(self._full(record[0]), record[1], self._acl(record[0]), _SEQUENTIAL))
        results = self._wait(self._submit(Transaction(requests)))
        if len(results) != len(requests):
            raise Unanswered("ZooKeeper's answer can not be understood")
        for index, result in enumerate(results):
            if isinstance(result, KazooException) and not isinstance(result, RolledBackError):
                self._refuse(index, requests, result)
        return str(results[-1]).rpartition("/")[2] if record is not None else ""

    def _refuse(self, index: int, requests: Sequence[Any], error: KazooException) -> None:
        path = requests[index].path[len(self._chroot) :]
        if isinstance(error, NodeExistsError | NoNodeError | BadVersionError | NotEmptyError):
            raise OperationRefused(
                index,
                f"{path} {_REFUSALS[type(error)]}",
                exists=isinstance(error, NodeExistsError),
                missing=isinstance(error, NoNodeError),
                has_children=isinstance(error, NotEmptyError),
            )
        raise _failure(error, path)

    def _request(self, operation: "ports.StoreOp | Parent") -> Any:  # noqa: ANN401  # kazoo has no types
        match operation:
            case Parent(path):
                return Create(self._full(path), None, self._acl(path), 0)
            case ports.Create(path, data, ephemeral):
                return Create(self._full(path), data, self._acl(path), _EPHEMERAL if ephemeral else 0)
            case ports.Set(path, data, version):
                return SetData(self._full(path), data, _ANY if version is None else version)
            case ports.Delete(path, version):
                return DeleteRequest(self._full(path), _ANY if version is None else version)
            case ports.Check(path, version):
                return CheckVersion(self._full(path), version)
            case _:
                assert_never(operation)

    def _full(self, path: str) -> str:
        return (self._chroot + path) or "/"

    def _acl(self, path: str) -> list[ACL]:
        return self._acl_secret if self._sensitive(path) else self._acl_open

    # ------------------------------------------------------------------ asking and waiting

    def _submit(self, request: Any) -> Any:  # noqa: ANN401
        self._require_connection()
        result = self._kazoo.handler.async_result()
        self._kazoo._call(request, result)
        return result

    def _ask(self, method: Callable[..., Any], path: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        self._require_connection()
        return self._wait(method(path, *arguments, **options), path)

    def _require_connection(self) -> None:
        if not self._kazoo.connected:
            raise Unanswered("there is no connection to ZooKeeper")

    def _wait(self, result: Any, path: str = "") -> Any:  # noqa: ANN401
        """The answer; or an error, at the latest when the session may have ended, or could have by now."""
        patience_s = time.monotonic() + self._connection.granted_s
        while not result.ready():
            left_s = min(patience_s, self.lease_end_s) - time.monotonic()
            if self._abandoned.is_set():
                raise Unanswered("the metadata store is being closed")
            if left_s <= 0:
                raise Unanswered("ZooKeeper did not answer for as long as the session lasts")
            result.wait(min(left_s, _POLL_S))
        try:
            return result.get()
        except (NoNodeError, NodeExistsError):
            raise
        except Exception as error:
            raise _failure(error, path) from error


def _failure(error: Exception, path: str) -> StorageError:
    match error:
        case NoAuthError():
            return StorageError(
                f"ZooKeeper does not let us use {path or 'a node'}: it was made with other credentials "
                "(zookeeper.digest.user and zookeeper.digest.password)"
            )
        case UnimplementedError():
            return StorageError("this ZooKeeper is too old: it must be 3.6 or newer")
        case KazooTimeoutError():
            return Unanswered("ZooKeeper did not answer in time")
        case _:
            text = f": {error}" if str(error) else ""
            return Unanswered(f"ZooKeeper can not be used: {type(error).__name__}{text}")


_REFUSALS: Final = {
    NodeExistsError: "exists already",
    NoNodeError: "does not exist",
    BadVersionError: "has another version",
    NotEmptyError: "has nodes below it",
}


def _acls(credentials: Credentials | None) -> tuple[list[ACL], list[ACL]]:
    """For what everybody may read, and for what is nobody else's business."""
    if credentials is None:
        return list(OPEN_ACL_UNSAFE), list(OPEN_ACL_UNSAFE)
    ours = make_digest_acl(credentials.user, credentials.password, all=True)
    return [ours, *READ_ACL_UNSAFE], [ours]


def _stored(answer: tuple[bytes | None, Any]) -> StoredNode:
    data, stat = answer
    return StoredNode(data, stat.version, stat.numChildren, stat.czxid)


class _Watcher:
    """kazoo calls it with the event, and also, for nothing, when the connection is gone."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def __call__(self, event: WatchedEvent) -> None:
        self._changed()

    def __eq__(self, other: object) -> bool:
        """A watch that is set twice is told once."""
        return isinstance(other, _Watcher) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self._changed)


class _MultiRead:
    """ZooKeeper's request for many nodes at once; each has an answer or an error of its own."""

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


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects in time for another try: kazoo would wait a whole session for a server that is not there."""

    connect_timeout_s = 1.0

    def create_connection(self, *arguments: object, **options: object) -> object:
        return super().create_connection(*arguments, **{**options, "timeout": self.connect_timeout_s})


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Keeps the lease, and takes nonsense for a lost connection. Everything here runs in kazoo's thread."""

    def __init__(
        self, client: KazooClient, retry_sleeper: KazooRetry, logger: logging.Logger, on_end: Callable[[], None]
    ) -> None:
        super().__init__(client, retry_sleeper, logger=logger)
        self._on_end = on_end
        self._requests_sent_s: deque[float] = deque()
        self._pings_sent_s: deque[float] = deque()
        self.granted_s: float = client._session_timeout / 1000
        self.lease_end_s = float("inf")  # there is no session yet that could end
        # A third of the session is left when a silent server is given up; all others must have had their try by then.
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
        """Any thread may call it."""
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
        except Exception as error:  # whatever kazoo's decoding stumbles over
            raise ConnectionDropped(f"the server sent nonsense: {error!r}") from error
