"""A ZooKeeper session with a typed interface. Only this module and ``zookeeper_kazoo`` use kazoo.

kazoo does the protocol, the heartbeats and the reconnecting; ``zookeeper_kazoo`` adds what it lacks. One such thing is
the *lease*. A session lives on the server for its timeout after the server last heard from us, which was not before we
sent the last request that it has answered. So the session is certain for the timeout, by our monotonic clock, counted
from the moment when that request was sent, and no longer; this holds even if the process was stopped for a while and
finds old answers in its socket. kazoo itself learns of a session's end only when it reaches a server again.

Methods that ask the server are called from one thread. They raise ``StorageError`` if ZooKeeper refuses;
``StoreAway``, a kind of that, if ZooKeeper was not even asked, or not in this session; and ``PerhapsDone`` if there is
no answer, so that it is unknown whether a change was made.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NamedTuple, assert_never

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    SessionExpiredError,
    SessionMovedError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.serialization import CheckVersion, Create, GetChildren, GetData, SetData, Transaction
from kazoo.protocol.serialization import Delete as DeleteRequest
from kazoo.protocol.states import KazooState, WatchedEvent
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_digest_acl

from cordwood import ports
from cordwood.errors import PerhapsDone, StorageError, StoreAway

from .zookeeper_kazoo import Connection, Handler, MultiRead

READS_MAX: Final = 1_000
"""The most reads in one request; the answer then takes some 200 kB."""
GOODBYE_S: Final = 2.0
RETRY_S_MIN: Final = 0.05
RETRY_S_MAX: Final = 0.5
_POLL_S: Final = 0.1
_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2
_ANY: Final = -1


class Credentials(NamedTuple):
    """User and password for ZooKeeper's scheme *digest*."""

    user: str
    password: str


class ConnectionEvent(Enum):
    """What happens to a connection."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    ENDED = "ended"
    """The session or the client has ended: the client is of no use any more."""


class StoredNode(NamedTuple):
    """What ZooKeeper holds under a path. *data* is None for a node that exists only as the parent of others."""

    data: bytes | None
    version: int
    children: int
    created: int
    """The number of the change that created it; ZooKeeper numbers all changes in order."""


class Parent(NamedTuple):
    """An operation: create an empty node, as a parent for others."""

    path: str


class OperationRefused(Exception):
    """A ``multi`` was not done because of one of its operations: *index* says which."""

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
            sensitive: may a path be read only with our credentials, rather than by everybody?
            on_event: called from kazoo's thread; must not block.
        """
        self._chroot = chroot
        self._abandoned = threading.Event()
        self._sensitive = sensitive
        self._on_event = on_event
        self._acl_open, self._acl_secret = _acls(credentials)
        quiet = logger.getChild("kazoo")
        quiet.setLevel(logging.CRITICAL)  # the store itself logs what is worth a line
        handler = Handler()
        retry = KazooRetry(max_tries=-1, delay=RETRY_S_MIN, max_delay=RETRY_S_MAX, sleep_func=handler.sleep_func)
        self._kazoo = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1000,
            handler=handler,
            auth_data=[("digest", f"{credentials.user}:{credentials.password}")] if credentials else None,
            connection_retry=retry,
            logger=quiet,
        )
        self._connection = Connection(self._kazoo, retry.copy(), logger=quiet, on_end=self._ended)
        self._kazoo._connection = self._connection
        handler.connect_timeout_s = self._connection.connect_timeout_s
        self._kazoo.add_listener(self._listen)

    # ------------------------------------------------------------------ the session

    def start(self) -> None:
        """Begin to connect; ``on_event`` reports what happens."""
        self._kazoo.start_async()

    def stop(self) -> None:
        """End the session: at once if we are connected, and soon even if the server does not answer."""
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
        except Exception as error:  # kazoo raises plain Exceptions here, and nothing can be done about them
            self._kazoo.logger.debug("while closing: %s", error)

    def abandon(self) -> None:
        """Let nobody wait for an answer any longer. Any thread may call this."""
        self._abandoned.set()

    @property
    def connected(self) -> bool:
        return bool(self._kazoo.connected)

    @property
    def lease_end_s(self) -> float:
        """The time on the monotonic clock until which the session certainly lives."""
        return self._connection.lease_end_s

    @property
    def session_timeout_ms(self) -> int:
        """The timeout that the server has granted."""
        return round(self._connection.granted_s * 1000)

    @property
    def position(self) -> int:
        """The number of the last change that was in the server's state when it gave its last answer."""
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
        """The nodes under these paths, None for one that does not exist. They are not read at the same moment."""
        found: list[Any] = self._read_many([GetData(self._full(path), None) for path in paths])
        return [None if answer is None else _stored(answer) for answer in found]

    def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names of the children of each of these paths, None for a path that does not exist."""
        names: list[list[str] | None] = self._read_many([GetChildren(self._full(path), None) for path in paths])
        return names

    def watch_children(self, path: str, changed: Callable[[], None]) -> list[str] | None:
        """The names of a path's children; *changed* is called, once, when these have changed."""
        try:
            names: list[str | None] = self._ask(
                self._kazoo.get_children_async, self._full(path), watch=_Watcher(changed)
            )
        except NoNodeError:
            return None
        return [name for name in names if name is not None]

    def watch_existence(self, path: str, changed: Callable[[], None]) -> bool:
        """Does the node exist? *changed* is called, once, when it is created or deleted, or gets new data."""
        return self._ask(self._kazoo.exists_async, self._full(path), watch=_Watcher(changed)) is not None

    def _read_many(self, requests: Sequence[Any]) -> list[Any]:
        answers = [
            self._submit(MultiRead(requests[start : start + READS_MAX])) for start in range(0, len(requests), READS_MAX)
        ]
        found: list[Any] = []
        for answer in answers:
            found += self._wait(answer)
        return found

    # ------------------------------------------------------------------ changes

    def ensure(self, path: str) -> None:
        """Create an empty node and its parents, unless they exist. The empty path is the chroot."""
        names = (self._chroot + path).split("/")
        for end in range(2, len(names) + 1):
            part = "/".join(names[:end])
            if self._ask(self._kazoo.exists_async, part) is None:
                with suppress(NodeExistsError):
                    self._ask(self._kazoo.create_async, part, None, acl=self._acl(part[len(self._chroot) :]))

    def write_through(self, path: str) -> bool:
        """Write nothing into a node; False if it does not exist. Anything read afterwards is at least as new as this.

        Otherwise the first answers in a session may be old, because a server that lags behind the others answers with
        what it knows.
        """
        try:
            self._ask(self._kazoo.set_async, self._full(path), b"")
        except NoNodeError:
            return False
        return True

    def multi(self, operations: Sequence["ports.StoreOp | Parent"], *, record: tuple[str, bytes] | None = None) -> str:
        """Do all the operations or none, and leave a record: a node with *record*'s name, followed by a number.

        Returns:
            The name of the record, without its path.

        Raises:
            OperationRefused: nothing was done.
        """
        requests = [self._request(operation) for operation in operations]
        if record is not None:
            requests.append(Create(self._full(record[0]), record[1], self._acl(record[0]), _SEQUENTIAL))
        results = self._wait(self._submit(Transaction(requests)))
        if len(results) != len(requests):
            raise PerhapsDone("ZooKeeper's answer cannot be understood")
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
        failure = _failure(error, path)
        if isinstance(failure, PerhapsDone):  # not so here: it was answered, so nothing was done
            kind = StoreAway if isinstance(error, SessionMovedError | SessionExpiredError) else StorageError
            raise kind(f"ZooKeeper refuses a change of {path}: {type(error).__name__}") from error
        raise failure

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
            raise StoreAway("there is no connection to ZooKeeper")

    def _wait(self, result: Any, path: str = "") -> Any:  # noqa: ANN401
        """Wait for the answer; raises an error at the latest when the session may have ended."""
        patience_s = time.monotonic() + self._connection.granted_s
        while not result.ready():
            left_s = min(patience_s, self.lease_end_s) - time.monotonic()
            if self._abandoned.is_set():
                raise PerhapsDone("the metadata store is being closed")
            if left_s <= 0:
                raise PerhapsDone("ZooKeeper did not answer for as long as the session lasts")
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
            return PerhapsDone("ZooKeeper did not answer in time")
        case _:
            text = f": {error}" if str(error) else ""
            return PerhapsDone(f"ZooKeeper cannot be used: {type(error).__name__}{text}")


_REFUSALS: Final = {
    NodeExistsError: "exists already",
    NoNodeError: "does not exist",
    BadVersionError: "has another version",
    NotEmptyError: "has nodes below it",
}


def _acls(credentials: Credentials | None) -> tuple[list[ACL], list[ACL]]:
    """The access lists for nodes that everybody may read, and for those that nobody else may."""
    if credentials is None:
        return list(OPEN_ACL_UNSAFE), list(OPEN_ACL_UNSAFE)
    ours = make_digest_acl(credentials.user, credentials.password, all=True)
    return [ours, *READ_ACL_UNSAFE], [ours]


def _stored(answer: tuple[bytes | None, Any]) -> StoredNode:
    data, stat = answer
    return StoredNode(data, stat.version, stat.numChildren, stat.czxid)


class _Watcher:
    """A watch. kazoo calls it with the event, but also, needlessly, when the connection is lost."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def __call__(self, event: WatchedEvent) -> None:
        self._changed()

    def __eq__(self, other: object) -> bool:
        """Makes a watch that is set twice be called once."""
        return isinstance(other, _Watcher) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self._changed)
