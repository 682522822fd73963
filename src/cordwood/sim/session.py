"""One broker's access to the shared store: through as many sessions as its life takes.

What the store has for a broker (changes, and the outcomes of its own writes) arrives late, but in the store's order. A
broker that is cut off from the store hears nothing. After a while it notices, and when its session must have expired,
it decides that itself, counting from the last heartbeat that was answered. It may also be told so when it is connected
again. Either way, a new session begins with all of the metadata.

A write that was in flight when the connection broke has happened or not. The broker is told which when the store is
back, in the store's order; or it is told that nobody knows, because that took too long, too much was missed, or the
session of the write has ended. Until then, its next writes wait.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

from cordwood.effects import WriteMetadata
from cordwood.errors import CordwoodError, PerhapsDone, StorageError, StoreAway, StoreConflict
from cordwood.ports import MetadataChange, Node, SessionState, StoreOp
from cordwood.sim.clock import SimClock
from cordwood.sim.driver import Driver, Machine
from cordwood.sim.shared_store import HOST, SharedStore

STORE_DELAY_MAX_MS = 20
FEED_DELAY_MAX_MS = 40
AT_ONCE_MAX = 3
RECONNECT_MAX_MS = 300
DOUBT_MAX_MS = 2_000
OVERRUN = 0.3
"""How often a client that reads everything anew can no longer find the changes that led to it."""


@dataclass(slots=True, eq=False)
class Outcome:
    """What became of one write."""

    token: int
    error: CordwoodError | None = None
    in_doubt: bool = False
    """Was the answer lost?"""


class Reload:
    """Changes were missed: everything must be read anew."""


class Session:
    """The counterpart of the thread that ``run`` has for the store."""

    def __init__(self, store: SharedStore, machine: Machine, timeout_ms: int) -> None:
        self._store = store
        self._machine = machine
        self._clock: SimClock = machine.clock
        self._random: Random = machine.random
        self._timeout_ms = timeout_ms
        self._driver: Driver | None = None
        self._inbox: deque[MetadataChange | Outcome | Reload] = deque()
        self._writes: deque[WriteMetadata] = deque()
        self._stuck: list[WriteMetadata] = []
        """Writes on a road that is blocked, or at a store that is away, before anybody has noticed."""
        self._state = SessionState.ALIVE
        self._beat_ms = self._clock.now.mono_ms
        """When the last heartbeat that was answered was sent."""
        self._id = store.open(self, timeout_ms)

    # ------------------------------------------------------------------ at the start

    def load(self) -> Iterable[Node]:
        self._inbox.clear()
        return self._store.load()

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        change = self._store.multi(self._id, operations)
        self._inbox.clear()
        return change

    def purge(self) -> None:
        """Does nothing: here changes wait for each session separately, and chance decides which session misses some."""

    def close(self) -> None:
        """A clean end: ephemeral nodes are removed at once."""
        if self._reaches_store():
            self._store.close(self._id)

    def start(self, driver: Driver) -> None:
        self._driver = driver
        for _ in self._inbox:
            self._come_soon()
        self._beat()

    # ------------------------------------------------------------------ heartbeats of the session

    def _reaches_store(self) -> bool:
        roads, host = self._machine.network.roads, self._machine.host
        return not self._store.is_away and roads.is_open_both_ways(host, HOST)

    @property
    def is_fresh(self) -> bool:
        """Is it far from expiring?"""
        left_ms = self._beat_ms + self._timeout_ms - self._clock.now.mono_ms
        return self._state is SessionState.ALIVE and left_ms > self._timeout_ms // 2

    def _later(self, delay_max_ms: int, what: str, action: Callable[[], None]) -> None:
        assert self._driver is not None
        self._driver.later(delay_max_ms, f"{what} {self._machine.host}", action)

    def _beat(self) -> None:
        now_ms = self._clock.now.mono_ms
        if self._state is SessionState.LOST:
            return
        if not self._reaches_store():
            self._suspend()
            if now_ms - self._beat_ms >= self._timeout_ms:
                self._lose("it was not heard of for too long")
                return
        elif self._store.beat(self._id):
            self._beat_ms = now_ms
            self._come_through()
            self._revive()
            for _ in self._inbox:  # some of it may have arrived while the road was blocked
                self._come_soon()
        else:
            self._lose("the store has ended it")
            return
        left_ms = max(self._beat_ms + self._timeout_ms - now_ms, 1)
        delay_ms = min(self._random.randint(1, max(self._timeout_ms // 3, 1)), left_ms)
        driver = self._driver
        assert driver is not None
        self._clock.after(delay_ms, f"a beat of {self._machine.host}", lambda: driver.when_running(self._beat))

    def _tell(self, state: SessionState) -> None:
        assert self._driver is not None
        self._state = state
        self._driver.act(self._driver.broker.session_changed, state)

    def _suspend(self) -> None:
        if self._state is SessionState.ALIVE:
            self._say("is cut off from the store")
            self._lose_answers()
            self._tell(SessionState.SUSPENDED)

    def _revive(self) -> None:
        if self._state is SessionState.SUSPENDED:
            self._say("has the store again")
            self._tell(SessionState.ALIVE)

    def _lose(self, reason: str) -> None:
        self._say(f"has lost its session: {reason}")
        self._lose_answers()
        doubts = [entry for entry in self._inbox if isinstance(entry, Outcome)]
        for outcome in doubts:
            if outcome.error is not None:  # the store does not know yet that the session is over
                outcome.error = PerhapsDone("the session in which it was made is lost")
        self._inbox = deque(doubts)
        self._tell(SessionState.LOST)
        self._later(RECONNECT_MAX_MS, "a new session for", self._begin_anew)

    def _lose_answers(self) -> None:
        """The connection broke. What became of writes in flight is found out later, if at all."""
        self._inbox += [Outcome(write.token, StoreAway("it did not come through")) for write in self._stuck]
        self._stuck.clear()
        for entry in self._inbox:
            if isinstance(entry, Outcome) and not entry.in_doubt:
                entry.in_doubt = True
                self._later(DOUBT_MAX_MS, "what is not known of the store", partial(self._give_up, entry))

    def _give_up(self, outcome: Outcome) -> None:
        if outcome in self._inbox:
            self._inbox.remove(outcome)
            self._fail(outcome.token, PerhapsDone("the store has been away for too long"))
            self._write_on()

    def _begin_anew(self) -> None:
        if not self._reaches_store():
            self._later(RECONNECT_MAX_MS, "a new session for", self._begin_anew)
            return
        if self._random.random() < 0.5:
            self._store.close(self._id)
        self._id = self._store.open(self, self._timeout_ms)
        self._beat_ms = self._clock.now.mono_ms
        self._inbox.appendleft(Reload())
        self._say(f"has session {self._id}")
        if self._random.random() < 0.5:
            self._tell(SessionState.ALIVE)
            self._hear()
        else:
            self._state = SessionState.ALIVE
            self._hear()
            self._tell(SessionState.ALIVE)
        self._beat()

    def fall_behind(self) -> None:
        """Miss what has not been heard yet."""
        if self._driver is not None and self._state is not SessionState.LOST:
            self._inbox.appendleft(Reload())
            self._come_soon()

    def _say(self, what: str) -> None:
        self._machine.trace.line(self._machine.host, what)

    # ------------------------------------------------------------------ what the store tells

    def published(self, session: int, change: MetadataChange, /) -> None:
        if session == self._id:  # otherwise it is one that this broker has given up
            self._inbox.append(change)
            self._come_soon()

    def _come_soon(self) -> None:
        if self._driver is not None:
            self._later(FEED_DELAY_MAX_MS, "the store tells", self._hear)

    def _hear(self) -> None:
        """Take the next of what has arrived, or a few."""
        if not self._inbox or self._state is SessionState.LOST or not self._reaches_store():
            return
        driver = self._driver
        assert driver is not None
        entry = self._inbox.popleft()
        if isinstance(entry, Reload):
            self._inbox = deque(other for other in self._inbox if isinstance(other, Outcome))
            self._overrun()
            driver.act(driver.broker.metadata_reloaded, list(self._store.load()))
        elif isinstance(entry, Outcome):
            self._report(entry)
        else:
            changes = [entry, *self._take_changes(self._random.randint(0, AT_ONCE_MAX))]
            driver.act(driver.broker.metadata_changed, changes)

    def _overrun(self) -> None:
        """Changes were missed, perhaps including this broker's own."""
        if self._random.random() < OVERRUN:
            for entry in self._inbox:
                if isinstance(entry, Outcome) and entry.in_doubt:
                    entry.error = PerhapsDone("too much was changed since")

    def _take_changes(self, count: int) -> list[MetadataChange]:
        taken: list[MetadataChange] = []
        for entry in islice(list(self._inbox), count):
            if not isinstance(entry, MetadataChange):
                break
            taken.append(entry)
            self._inbox.popleft()
        return taken

    def _report(self, outcome: Outcome) -> None:
        if outcome.error is None:
            assert self._driver is not None
            self._driver.act(self._driver.broker.metadata_written, outcome.token, MetadataChange())
        elif outcome.in_doubt and not isinstance(outcome.error, PerhapsDone):
            self._fail(outcome.token, StoreAway("the connection broke, and it was not done"))
        else:
            self._fail(outcome.token, outcome.error)
        self._write_on()

    def _fail(self, token: int, error: CordwoodError) -> None:
        assert self._driver is not None
        self._machine.trace.line("store", f"refuses change {token} of {self._machine.host}: {error}")
        self._driver.act(self._driver.broker.metadata_refused, token, error)

    # ------------------------------------------------------------------ what the broker writes

    def write(self, write: WriteMetadata, /) -> None:
        self._writes.append(write)
        self._send_soon()

    def _send_soon(self) -> None:
        self._later(STORE_DELAY_MAX_MS, "the store works for", self._send)

    def _write_on(self) -> None:
        for _ in self._writes:
            self._send_soon()

    def _send(self) -> None:
        if not self._writes or any(isinstance(entry, Outcome) and entry.in_doubt for entry in self._inbox):
            return
        write = self._writes.popleft()
        if self._state is not SessionState.ALIVE:
            self._fail(write.token, StoreAway("there is no session, or no connection"))
        else:
            self._stuck.append(write)
            self._come_through()

    def _come_through(self) -> None:
        """What was sent reaches the store, if it is there. Its answers arrive when the road back is open."""
        roads, host = self._machine.network.roads, self._machine.host
        if self._store.is_away or not roads.is_open(host, HOST):
            return
        stuck, self._stuck = self._stuck, []
        for write in stuck:
            self._inbox.append(Outcome(write.token, self._do(write)))
            self._come_soon()

    def _do(self, write: WriteMetadata) -> CordwoodError | None:
        odds = self._machine.odds
        try:
            if self._random.random() < odds.store_conflict:
                raise StoreConflict("somebody else was faster")
            if self._random.random() < odds.store_failure:
                raise StorageError("the store fails")
            self._store.multi(self._id, write.operations)
        except (StoreConflict, StorageError) as error:
            return error
        paths = ", ".join(operation.path for operation in write.operations)
        self._machine.trace.line("store", f"change {write.token} of {self._machine.host}: {paths}")
        return None
