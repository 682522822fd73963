"""Drives one life of a broker: events go in, effects are carried out, each after a delay of its own.

The counterpart of ``run/driver``, with the same guarantees: metadata is written in order, syncs and removals happen in
order, bytes of a connection are sent in order, and nothing else is ordered. A driver belongs to one life; when that
ends, what was in progress never happens, or has happened without anybody hearing of it.

A process can be paused. When it is resumed, it sees everything that has happened meanwhile, all at once and in order.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Protocol, assert_never
from uuid import UUID

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
from cordwood.ids import ConnectionId, LinkId
from cordwood.ports import Chunk, FileSlice, LinkLoss, Logger, MetadataStore
from cordwood.sim.clock import SimClock
from cordwood.sim.disk import SimDisk
from cordwood.sim.links import Links
from cordwood.sim.network import BROKER, Address, Frames, Link, Network
from cordwood.sim.node import open_broker
from cordwood.sim.store import SimStore
from cordwood.sim.trace import Trace

STORE_DELAY_MAX_MS = 30
DISK_DELAY_MAX_MS = 40
RESULT_DELAY_MAX_MS = 10
SEND_DELAY_MAX_MS = 5
TIMER_LATE_MAX_MS = 3
LINGER_MAX_MS = 1
DIRECTORY_ID = UUID(int=1)

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
    address: Address = BROKER
    directory_id: UUID = DIRECTORY_ID
    boot_id: str = ""
    events_per_check: int = 1
    """After how many events all invariants of the broker are checked, which takes a while."""

    @property
    def host(self) -> str:
        return self.address[0]

    @property
    def logger(self) -> Logger:
        return self.trace.voice(self.host)


class SharedMetadata(MetadataStore, Protocol):
    """A broker's session with a store that it shares."""

    def start(self, driver: "Driver", /) -> None:
        """From now on there is a driver to be notified."""

    def write(self, write: WriteMetadata, /) -> None: ...


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
            self._driver.when_running(partial(self._driver.frame, self, frame))

    def lost(self) -> None:
        self._driver.when_running(partial(self._driver.lost, self))


class Driver:
    """One broker from its start to its end."""

    def __init__(self, machine: Machine, static: Mapping[str, str], session: SharedMetadata | None = None) -> None:
        self._machine = machine
        self._session = session
        self._clock = machine.clock
        self._random = machine.random
        self._ends: dict[ConnectionId, ClientEnd] = {}
        self._writes: deque[WriteMetadata] = deque()
        self._disk_work: deque[Sync | Remove] = deque()
        self._store_results: deque[Callable[[], None]] = deque()
        self._disk_results: deque[Callable[[], None]] = deque()
        self._timer_ms: int | None = None
        self._links = Links(machine.network, machine.host, self)
        self._backlog: deque[Callable[[], None]] = deque()
        self.alive = True
        self.paused = False
        self._events = 0
        self.acted = False
        """Has the broker done anything? Callers that want to know reset it."""
        self.failure: str | None = None
        """Why the broker stopped by itself: its disk failed where it cannot continue without it."""
        self.broker = open_broker(
            static=static,
            disk=machine.disk,
            store=session or machine.store,
            entropy=machine.random,
            logger=machine.logger,
            now=machine.clock.now,
            directory_id=machine.directory_id,
            boot_id=machine.boot_id,
        )

    def start(self) -> None:
        if self._session is not None:
            self._session.start(self)
        self.act(self.broker.start)
        self._machine.network.listeners[self._machine.address] = self._accept

    def end(self) -> None:
        """The process is gone, one way or another."""
        self.alive = False
        self._backlog.clear()
        self._machine.network.listeners.pop(self._machine.address, None)
        self._machine.network.cut_all(self._machine.host)

    # ------------------------------------------------------------------ pauses

    def pause(self) -> None:
        """Do nothing, see nothing. Peers that connect meanwhile believe that the broker is there."""
        self.paused = True

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._catch_up()

    def when_running(self, action: Callable[[], None]) -> None:
        """Call *action* now, or once the paused process has caught up with events before it; or never, if it is
        gone."""
        if not self.alive:
            return
        if self.paused or self._backlog:
            self._backlog.append(action)
        else:
            action()

    def _catch_up(self) -> None:
        if self.alive and not self.paused and self._backlog:
            self._backlog[0]()
            if self._backlog:
                self._backlog.popleft()
            self._clock.after(0, f"the {self._machine.host} catches up", self._catch_up)

    # ------------------------------------------------------------------ events

    def _accept(self, link: Link) -> None:
        self.when_running(lambda: self._welcome(link))

    def _welcome(self, link: Link) -> None:
        if not link.is_open:
            return
        peer = Peer(link.host, 40_000 + link.number, *self._machine.address)
        connection = self.broker.connected(ConnectionId(link.number), peer, self._clock.now)
        if connection is None:
            link.cut(self._machine.host)
            return
        end = self._ends[connection.id] = ClientEnd(self, link, connection)
        link.up.attach(end)

    def frame(self, end: ClientEnd, frame: bytearray) -> None:
        if not end.connection.closed:
            self.act(self.broker.received, end.connection, memoryview(frame))
            frame[:] = b"\xee" * len(frame)  # it was only lent: nobody may still look at it

    def link_up(self, link: LinkId) -> None:
        self.act(self.broker.link_up, link)

    def link_received(self, link: LinkId, frame: bytearray) -> None:
        self.act(self.broker.link_received, link, memoryview(frame))
        frame[:] = b"\xee" * len(frame)

    def link_lost(self, link: LinkId, loss: LinkLoss, reason: str) -> None:
        self.act(self.broker.link_lost, link, loss, reason)

    def lost(self, end: ClientEnd) -> None:
        if self._ends.pop(end.connection.id, None) is not None:
            self.act(self.broker.disconnected, end.connection)

    def act(self, event: Event, *arguments: object) -> None:
        """Give the broker an event and carry out what it asks for."""
        self.acted = True
        try:
            effects = event(*arguments, self._clock.now)
        except StorageError as error:
            self._fail(error)
            return
        self._check()
        for effect in effects:
            self._execute(effect)
        self._set_timer()

    def _check(self) -> None:
        self._events += 1
        if self._events % self._machine.events_per_check == 0:
            self.broker.check()

    def _fail(self, error: CordwoodError) -> None:
        """A disk failure that cannot be reported to any client ends the broker, as in reality."""
        self.failure = str(error)

    # ------------------------------------------------------------------ effects

    def _execute(self, effect: Effect) -> None:
        match effect:
            case Send(connection, chunks):
                self._send(connection, chunks)
            case Close(connection, reason):
                self._close(connection, reason)
            case WriteMetadata():
                self._submit(effect)
            case Sync() | Remove():
                self._disk_work.append(effect)
                self.later(DISK_DELAY_MAX_MS, "the disk works", self._work)
            case Compact():
                self.later(DISK_DELAY_MAX_MS, "compaction works", lambda: self._compact(effect))
            case Linger():
                self.later(LINGER_MAX_MS, "what has arrived has come in", lambda: self.act(self.broker.lingered))
            case PurgeChanges():
                (self._session or self._machine.store).purge()
            case Dial():
                self._links.dial(effect)
            case Transmit(link, chunks):
                self._links.transmit(link, chunks)
            case HangUp(link):
                self._links.hang_up(link)
            case _:
                assert_never(effect)

    def later(self, delay_max_ms: int, what: str, action: Callable[[], None]) -> None:
        self._clock.after(self._random.randint(0, delay_max_ms), what, lambda: self.when_running(action))

    def _send(self, connection: ConnectionId, chunks: Sequence[Chunk]) -> None:
        end = self._ends.get(connection)
        if end is not None:
            end.outbox.append(chunks)
            self.later(SEND_DELAY_MAX_MS, f"an answer on connection {connection}", lambda: _flush(end))

    def _close(self, connection: ConnectionId, reason: str) -> None:
        end = self._ends.pop(connection, None)
        if end is not None:
            self._machine.trace.line(self._machine.host, f"closes connection {connection}: {reason}")
            end.link.cut(self._machine.host)
            self.act(self.broker.disconnected, end.connection)

    def _set_timer(self) -> None:
        deadline_ms = self.broker.next_deadline()
        if deadline_ms is None or (self._timer_ms is not None and self._timer_ms <= deadline_ms):
            return
        self._timer_ms = deadline_ms
        delay_ms = max(deadline_ms - self._clock.now.mono_ms, 0) + self._random.randint(0, TIMER_LATE_MAX_MS)
        self._clock.after(delay_ms, "a timer", lambda: self.when_running(lambda: self._tick(deadline_ms)))

    def _tick(self, deadline_ms: int) -> None:
        if self._timer_ms == deadline_ms:
            self._timer_ms = None
            self.act(self.broker.tick)

    # ------------------------------------------------------------------ the store and the disk

    def _submit(self, write: WriteMetadata) -> None:
        if self._session is not None:
            self._session.write(write)
            return
        self._writes.append(write)
        self.later(STORE_DELAY_MAX_MS, "the store works", self._write)

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
        """One step of the work, among everything else that happens."""
        try:
            next(effect.work)
        except StopIteration:
            self._hand_back(self._disk_results, self.broker.compacted, effect.token, None)
        except (StorageError, CorruptData) as error:
            self._machine.trace.line("disk", f"compaction {effect.token} fails: {error}")
            self._hand_back(self._disk_results, self.broker.compacted, effect.token, error)
        else:
            self.later(DISK_DELAY_MAX_MS, "compaction works", lambda: self._compact(effect))

    def _hand_back(self, results: deque[Callable[[], None]], event: Event, *arguments: object) -> None:
        """Report what was done after a delay, in the order in which it was done. Much may happen before that."""
        results.append(lambda: self.act(event, *arguments))
        self.later(RESULT_DELAY_MAX_MS, "a result comes back", lambda: results.popleft()())

    def _remove(self, work: Remove) -> None:
        if self._random.random() < self._machine.odds.removal_failure:
            raise StorageError("as the odds will have it")
        for path in work.files:
            self._machine.disk.remove(path)
        for path in work.directories:
            self._machine.disk.remove_tree(path)


def _flush(end: ClientEnd) -> None:
    """Slices of files are read only now, whatever has happened to the files in the meantime."""
    if end.outbox and end.link.is_open:
        chunks = end.outbox.popleft()
        end.link.down.write(b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks))
