"""Drives one life of a broker: events go in, effects are carried out, each in its own time.

The counterpart of ``run/driver``, with the same promises: metadata is written in order, syncs and removals happen in
order, bytes of a connection are sent in order, and nothing else is ordered. A driver belongs to one life; what it had
under way when that ended never happens, or has happened and nobody hears of it.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import assert_never

from cordwood.broker.connection import Connection, Peer
from cordwood.effects import (
    Close,
    Compact,
    Dial,
    Effect,
    HangUp,
    Linger,
    PurgeChanges,
    Remove,
    Send,
    Sync,
    Transmit,
    WriteMetadata,
)
from cordwood.errors import CordwoodError, CorruptData, StorageError, StoreConflict
from cordwood.ids import ConnectionId
from cordwood.ports import Chunk, FileSlice
from cordwood.sim.clock import SimClock
from cordwood.sim.disk import SimDisk
from cordwood.sim.network import Frames, Link, Network
from cordwood.sim.node import open_broker
from cordwood.sim.store import SimStore
from cordwood.sim.trace import Trace

STORE_DELAY_MAX_MS = 30
DISK_DELAY_MAX_MS = 40
RESULT_DELAY_MAX_MS = 10
SEND_DELAY_MAX_MS = 5
TIMER_LATE_MAX_MS = 3
LINGER_MAX_MS = 1

Event = Callable[..., list[Effect]]


@dataclass(slots=True)
class Odds:
    """How often things go wrong, from 0 to 1."""

    store_conflict: float = 0.0
    store_failure: float = 0.0
    removal_failure: float = 0.0


@dataclass(slots=True)
class Machine:
    """What outlives a broker: time, the network, the disk, the store."""

    clock: SimClock
    network: Network
    disk: SimDisk
    store: SimStore
    random: Random
    trace: Trace
    odds: Odds


class ClientEnd:
    """The broker's end of one connection."""

    def __init__(self, driver: "Driver", link: Link, connection: Connection) -> None:
        self._driver = driver
        self._frames = Frames()
        self.link = link
        self.connection = connection
        self.outbox: deque[Sequence[Chunk]] = deque()

    def received(self, data: bytes, /) -> None:
        for frame in self._frames.feed(data):
            self._driver.frame(self, frame)

    def lost(self) -> None:
        self._driver.lost(self)


class Driver:
    """One broker from its start to its end."""

    def __init__(self, machine: Machine, static: Mapping[str, str]) -> None:
        self._machine = machine
        self._clock = machine.clock
        self._random = machine.random
        self._ends: dict[ConnectionId, ClientEnd] = {}
        self._writes: deque[WriteMetadata] = deque()
        self._disk_work: deque[Sync | Remove] = deque()
        self._store_results: deque[Callable[[], None]] = deque()
        self._disk_results: deque[Callable[[], None]] = deque()
        self._timer_ms: int | None = None
        self.alive = True
        self.failure: str | None = None
        """Why the broker stopped by itself: its disk failed where it can not go on without it."""
        self.broker = open_broker(
            static=static,
            disk=machine.disk,
            store=machine.store,
            entropy=machine.random,
            logger=machine.trace,
            now=machine.clock.now,
        )

    def start(self) -> None:
        self._act(self.broker.start)
        self._machine.network.listener = self._accept

    def end(self) -> None:
        """The process is gone, one way or another."""
        self.alive = False
        self._machine.network.listener = None
        self._machine.network.cut_all()

    # ------------------------------------------------------------------ events

    def _accept(self, link: Link) -> None:
        peer = Peer(link.host, 40_000 + link.number, "broker", 9092)
        connection = self.broker.connected(ConnectionId(link.number), peer, self._clock.now)
        if connection is None:
            link.cut()
            return
        end = self._ends[connection.id] = ClientEnd(self, link, connection)
        link.up.attach(end)

    def frame(self, end: ClientEnd, frame: bytearray) -> None:
        if self.alive and not end.connection.closed:
            self._act(self.broker.received, end.connection, memoryview(frame))
            frame[:] = b"\xee" * len(frame)  # it was lent: nobody may still look at it

    def lost(self, end: ClientEnd) -> None:
        if self.alive and self._ends.pop(end.connection.id, None) is not None:
            self._act(self.broker.disconnected, end.connection)

    def _act(self, event: Event, *arguments: object) -> None:
        """Give the broker an event and do what it asks for."""
        try:
            effects = event(*arguments, self._clock.now)
        except StorageError as error:
            self._fail(error)
            return
        self.broker.check()
        for effect in effects:
            self._execute(effect)
        self._set_timer()

    def _fail(self, error: CordwoodError) -> None:
        """A disk that fails where nobody can be told ends the broker, as it does the real one."""
        self.failure = str(error)

    # ------------------------------------------------------------------ effects

    def _execute(self, effect: Effect) -> None:
        match effect:
            case Send(connection, chunks):
                self._send(connection, chunks)
            case Close(connection, reason):
                self._close(connection, reason)
            case WriteMetadata():
                self._writes.append(effect)
                self._later(STORE_DELAY_MAX_MS, "the store works", self._write)
            case Sync() | Remove():
                self._disk_work.append(effect)
                self._later(DISK_DELAY_MAX_MS, "the disk works", self._work)
            case Compact():
                self._later(DISK_DELAY_MAX_MS, "compaction works", lambda: self._compact(effect))
            case Linger():
                self._later(LINGER_MAX_MS, "what has arrived has come in", lambda: self._act(self.broker.lingered))
            case PurgeChanges():
                pass  # a store of one broker keeps none
            case Dial() | Transmit() | HangUp():
                raise NotImplementedError("links to other brokers")
            case _:
                assert_never(effect)

    def _later(self, delay_max_ms: int, what: str, action: Callable[[], None]) -> None:
        self._clock.after(self._random.randint(0, delay_max_ms), what, lambda: action() if self.alive else None)

    def _send(self, connection: ConnectionId, chunks: Sequence[Chunk]) -> None:
        end = self._ends.get(connection)
        if end is not None:
            end.outbox.append(chunks)
            self._later(SEND_DELAY_MAX_MS, f"an answer on connection {connection}", lambda: _flush(end))

    def _close(self, connection: ConnectionId, reason: str) -> None:
        end = self._ends.pop(connection, None)
        if end is not None:
            self._machine.trace.line("broker", f"closes connection {connection}: {reason}")
            end.link.cut()
            self._act(self.broker.disconnected, end.connection)

    def _set_timer(self) -> None:
        deadline_ms = self.broker.next_deadline()
        if deadline_ms is None or (self._timer_ms is not None and self._timer_ms <= deadline_ms):
            return
        self._timer_ms = deadline_ms
        delay_ms = max(deadline_ms - self._clock.now.mono_ms, 0) + self._random.randint(0, TIMER_LATE_MAX_MS)
        self._clock.after(delay_ms, "a timer", lambda: self._tick(deadline_ms))

    def _tick(self, deadline_ms: int) -> None:
        if self.alive and self._timer_ms == deadline_ms:
            self._timer_ms = None
            self._act(self.broker.tick)

    # ------------------------------------------------------------------ the store and the disk

    def _write(self) -> None:
        write, odds = self._writes.popleft(), self._machine.odds
        try:
            if self._random.random() < odds.store_conflict:
                raise StoreConflict("somebody else was faster")
            if self._random.random() < odds.store_failure:
                raise StorageError("the store fails")
            change = self._machine.store.multi(write.operations)
        except (StoreConflict, StorageError) as error:
            self._machine.trace.line("store", f"refuses change {write.token}: {error}")
            self._hand_back(self._store_results, self.broker.metadata_refused, write.token, error)
            return
        self._machine.trace.line("store", f"change {write.token}: {', '.join(op.path for op in write.operations)}")
        self._hand_back(self._store_results, self.broker.metadata_written, write.token, change)

    def _work(self) -> None:
        work = self._disk_work.popleft()
        try:
            if isinstance(work, Sync):
                for file in work.files:
                    file.sync()
            else:
                self._remove(work)
        except StorageError as error:
            if isinstance(work, Sync):
                self._fail(error)
            else:
                self._machine.trace.line("disk", f"removal {work.token} fails: {error}")
            return
        done: Event = self.broker.synced if isinstance(work, Sync) else self.broker.removed
        self._hand_back(self._disk_results, done, work.token)

    def _compact(self, effect: Compact) -> None:
        """One step of the work, in the midst of all that happens."""
        try:
            next(effect.work)
        except StopIteration:
            self._hand_back(self._disk_results, self.broker.compacted, effect.token, None)
        except (StorageError, CorruptData) as error:
            self._machine.trace.line("disk", f"compaction {effect.token} fails: {error}")
            self._hand_back(self._disk_results, self.broker.compacted, effect.token, error)
        else:
            self._later(DISK_DELAY_MAX_MS, "compaction works", lambda: self._compact(effect))

    def _hand_back(self, results: deque[Callable[[], None]], event: Event, *arguments: object) -> None:
        """Tell the broker in a while what was done, in the order in which it was done. Much may happen before."""
        results.append(lambda: self._act(event, *arguments))
        self._later(RESULT_DELAY_MAX_MS, "a result comes back", lambda: results.popleft()())

    def _remove(self, work: Remove) -> None:
        if self._random.random() < self._machine.odds.removal_failure:
            raise StorageError("as the odds will have it")
        for path in work.files:
            self._machine.disk.remove(path)
        for path in work.directories:
            self._machine.disk.remove_tree(path)


def _flush(end: ClientEnd) -> None:
    """Only now are slices of files read: whatever happened to the files meanwhile."""
    if end.outbox and end.link.is_open:
        chunks = end.outbox.popleft()
        end.link.down.write(b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks))
