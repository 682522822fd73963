"""A metadata store that several brokers share, with sessions: like ZooKeeper, as far as a broker can tell.

Every change goes to all sessions in the same order. A session that has not been heard of for its timeout expires, and
its ephemeral nodes are removed. While the store is away, no session expires.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cordwood.errors import StoreAway
from cordwood.ports import Create, Delete, MetadataChange, Node, StoreOp
from cordwood.sim.clock import SimClock
from cordwood.sim.store import SimStore

HOST = "store"


class Listener(Protocol):
    """Holds a session: it is told of every change as soon as it happens."""

    def published(self, session: int, change: MetadataChange, /) -> None: ...


@dataclass(slots=True)
class StoredSession:
    """A session as the store knows it."""

    listener: Listener
    timeout_ms: int
    heard_ms: int


class SharedStore:
    """The nodes, and the sessions."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self._nodes = SimStore()
        self._owners: dict[str, int] = {}
        self._sessions: dict[int, StoredSession] = {}
        self._count = 0
        self.is_away = False

    def load(self) -> Iterable[Node]:
        return self._nodes.load()

    # ------------------------------------------------------------------ sessions

    def open(self, listener: Listener, timeout_ms: int) -> int:
        self._count += 1
        self._sessions[self._count] = StoredSession(listener, timeout_ms, self._clock.now.mono_ms)
        self._watch(self._count, timeout_ms)
        return self._count

    def beat(self, session: int) -> bool:
        """A heartbeat of a session. Does the session still exist?"""
        stored = self._sessions.get(session)
        if stored is not None:
            stored.heard_ms = self._clock.now.mono_ms
        return stored is not None

    def close(self, session: int) -> None:
        """A session ends, because its holder wants it or because it has expired."""
        if self._sessions.pop(session, None) is not None:
            gone = sorted(path for path, owner in self._owners.items() if owner == session)
            if gone:
                self._change([Delete(path) for path in gone], session)

    def _watch(self, session: int, delay_ms: int) -> None:
        self._clock.after(delay_ms, f"the store looks after session {session}", lambda: self._look(session))

    def _look(self, session: int) -> None:
        stored = self._sessions.get(session)
        if stored is None:
            return
        if self.is_away:
            stored.heard_ms = self._clock.now.mono_ms
        left_ms = stored.heard_ms + stored.timeout_ms - self._clock.now.mono_ms
        if left_ms > 0:
            self._watch(session, left_ms)
        else:
            self.close(session)

    # ------------------------------------------------------------------ changes

    def multi(self, session: int, operations: Sequence[StoreOp]) -> MetadataChange:
        """Apply all operations, or raise ``StoreConflict``; ``StoreAway`` if the session is over."""
        if session not in self._sessions:
            raise StoreAway("the session is over")
        return self._change(operations, session)

    def _change(self, operations: Sequence[StoreOp], session: int) -> MetadataChange:
        change = self._nodes.multi(operations)
        for operation in operations:
            if isinstance(operation, Create) and operation.ephemeral:
                self._owners[operation.path] = session
            elif isinstance(operation, Delete):
                self._owners.pop(operation.path, None)
        for number, stored in list(self._sessions.items()):
            stored.listener.published(number, change)
        return change
