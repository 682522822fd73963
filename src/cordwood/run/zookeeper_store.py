"""The metadata store that the brokers of a cluster share: ZooKeeper.

One thread does everything in order: it writes what it is asked to, follows what others have changed, and reads
everything again when necessary. Its callbacks report changes in the order in which ZooKeeper has made them, including
this broker's own. Outstanding work is kept as flags, not as a list of events, so that losing the connection loses
nothing, and a failure is handled by doing the work again.

A change whose answer was lost is looked for in the feed when the connection is back. Its outcome is reported only then,
unless that takes too long, so that the caller plans its next step knowing what has happened.

Invariants: every change is either reported once, in the order of the feed, or is part of a complete reading; ``ALIVE``
is reported once everything up to then has been.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from cordwood.cluster.layout import BROKERS, CONTROLLER
from cordwood.errors import CorruptData, PerhapsDone, StorageError, StoreAway, StoreConflict
from cordwood.ports import Check, Delete, MetadataChange, Node, SessionState, StoreOp

from .zookeeper_address import Address
from .zookeeper_client import ConnectionEvent, Credentials, OperationRefused, StoredNode, ZooKeeperClient
from .zookeeper_doubts import Decisions, Doubts, InDoubt
from .zookeeper_feed import (
    FEED,
    NOTHING_SEEN,
    RECORD,
    Ephemerals,
    apply_change,
    change_numbers,
    change_path,
    decode_change,
    encode_change,
    fold,
    news,
)
from .zookeeper_plan import PACKET_BYTES_MAX, Planner, Resolved, packet_bytes
from .zookeeper_session import Session
from .zookeeper_tree import read_tree

CHANGES_KEPT: Final = 1_000
PURGE_EVERY: Final = 250
"""Whoever writes a change whose number is a multiple of this removes the oldest ones; so the work is shared."""
DELETES_AT_ONCE: Final = 1_000
PLANS_MAX: Final = 10
"""How often a ``multi`` is planned, in case what was read for it has changed."""
AGAIN_S: Final = 0.25
IDLE_S_MAX: Final = 60.0
FIRST_POLL_S: Final = 0.02
FIRST_TOLD_S: Final = 1.0
"""If the first connection takes longer than this, that is worth a log line."""
SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token", FEED)
"""What only brokers may read, as in Kafka, because it contains passwords. The feed has copies of them."""

T = TypeVar("T")


class ZooKeeperStore:
    """A ``MetadataStore`` on ZooKeeper.

    Until ``begin`` it behaves like a store that is not shared: ``load`` reads, ``multi`` returns what has changed
    since, including changes by others. From then on all changes are reported through the callbacks, and ``multi``
    returns an empty change.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        credentials: Credentials | None,
        logger: logging.Logger,
        deliver: Callable[[Sequence[MetadataChange]], None],
        reloaded: Callable[[Sequence[Node]], None],
        session_changed: Callable[[SessionState], None],
    ) -> None:
        """
        Raises:
            ConfigError: *connect* is not a valid address.
            StorageError: ZooKeeper did not answer in time.
        """
        self._address = Address.parse(connect)
        self._connect = connect
        self._session_timeout_ms = session_timeout_ms
        self._credentials = credentials
        self._logger = logger
        self._deliver = deliver
        self._reloaded = reloaded
        self._session_changed = session_changed
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._closing = threading.Event()
        self._loaded = False
        self._begun = False
        self._held: list[MetadataChange] = []
        self._held_reload: list[Node] | None = None

        self._again_s = 0.0
        self._seen = NOTHING_SEEN
        self._read_all = True
        self._stale = {FEED: True, BROKERS: True, CONTROLLER: True}
        self._ephemerals = Ephemerals()
        self._planner = Planner()
        self._name = secrets.token_hex(8)
        self._marks = 0
        self._torn = False
        """Has something been deleted in advance for the current ``multi``?"""
        self._doubts = Doubts()
        self._session = Session(
            self._make_client, put=self._tasks.put, broken=self._on_break, told=self._tell_state, logger=logger
        )
        self._worker = threading.Thread(target=self._work, name="cordwood-zookeeper", daemon=True)
        self._worker.start()
        try:
            self._await_first_connection(connection_timeout_ms)
        except BaseException:
            self.close()
            raise

    def _await_first_connection(self, connection_timeout_ms: int) -> None:
        start_s = time.monotonic()
        deadline_s = start_s + connection_timeout_ms / 1000
        is_told = False
        while True:
            try:
                self._ask(self._prepare)
                return
            except StoreAway as error:  # while servers elect their leader, they accept connections and drop them again
                if time.monotonic() >= deadline_s:
                    raise StorageError(f"ZooKeeper at {self._connect} did not answer in time") from error
                if not is_told and time.monotonic() >= start_s + FIRST_TOLD_S:
                    self._logger.info("ZooKeeper at %s does not answer yet; waiting for it", self._connect)
                    is_told = True
                self._closing.wait(FIRST_POLL_S)

    # ------------------------------------------------------------------ called from other threads

    def load(self) -> Iterable[Node]:
        """Every node, as of one moment, including earlier changes that were held back."""
        return self._ask(self._load)

    def begin(self) -> None:
        """From now on report everything: first the state of the session, then what has happened since ``load``."""
        self._ask(self._begin)

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        """Do all of the operations, and return once the change has been reported.

        Raises:
            StoreConflict: nothing was done: a node is missing, exists already, or has another version.
            StoreAway: ZooKeeper cannot be reached, or the connection was lost in between; nothing was done.
            PerhapsDone: the connection was lost in between, and it is unknown what was done: ZooKeeper did not come
                back in time, the session was lost, or others have since changed more than the feed holds.
            StorageError: it cannot be done, and nothing was.
        """
        return self._ask(lambda: self._multi(operations))

    def purge(self) -> None:
        """Remove the oldest changes from the feed. This also happens by itself; call it if that is not soon enough."""
        self._ask(self._purge)

    @property
    def certain_until_s(self) -> float:
        """The time on the monotonic clock until which ZooKeeper certainly holds our session. Any thread may ask."""
        return self._session.certain_until_s

    def give_up_session(self) -> None:
        """The caller has acted as if the session were lost. So it is, whatever ZooKeeper says next."""
        self._tasks.put(self._give_up_session)

    def _give_up_session(self) -> None:
        if self._session.state is not SessionState.LOST:
            self._session.lose("this process did nothing for longer than the session lasts")

    @property
    def session_timeout_ms(self) -> int:
        """The timeout that ZooKeeper has granted."""
        return self._client.session_timeout_ms

    def close(self) -> None:
        """End the session, so that its ephemeral nodes go at once."""
        if not self._closing.is_set():
            self._closing.set()
            self._client.abandon()
            self._tasks.put(_nothing)
        self._worker.join()

    def _ask(self, work: Callable[[], T]) -> T:
        answer: Future[T] = Future()
        self._tasks.put(lambda: self._resolve(answer, work))
        if not self._worker.is_alive():
            self._refuse_tasks()
        return answer.result()

    def _resolve(self, answer: "Future[T]", work: Callable[[], T]) -> None:
        if self._closing.is_set():
            answer.set_exception(StorageError("the metadata store is closed"))
            return
        try:
            answer.set_result(work())
        except InDoubt as doubt:
            if self._begun:
                self._doubts.add(doubt, answer)
            else:
                answer.set_exception(doubt)
        except Exception as error:
            answer.set_exception(error)

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        while not self._closing.is_set():
            task: Callable[[], None] | None = None
            with suppress(Empty):
                task = self._tasks.get(timeout=self._idle_s())
            try:
                self._session.tick()
                if task is not None:
                    task()
                self._session.tick()
                self._catch_up()
                self._doubts.give_up(time.monotonic())
            except Exception:
                self._logger.exception("the metadata is read anew, because something unforeseen went wrong")
                self._session.lose("something unforeseen went wrong")
        self._session.close()
        self._doubts.give_up(float("inf"))
        self._refuse_tasks()

    def _refuse_tasks(self) -> None:
        """Tell everybody who is still waiting that the store is closed."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()()

    def _idle_s(self) -> float:
        """How long there is nothing to do."""
        due_s = min(
            self._session.due_s,
            self._again_s if self._is_behind() else float("inf"),
            self._doubts.due_s,
        )
        return min(max(due_s - time.monotonic(), 0.0), IDLE_S_MAX)

    @property
    def _client(self) -> ZooKeeperClient:
        return self._session.client

    def _make_client(self, on_event: Callable[[ConnectionEvent], None]) -> ZooKeeperClient:
        return ZooKeeperClient(
            self._address.hosts,
            chroot=self._address.chroot,
            session_timeout_ms=self._session_timeout_ms,
            credentials=self._credentials,
            sensitive=_is_sensitive,
            on_event=on_event,
            logger=self._logger,
        )

    def _on_break(self) -> None:
        """The watches are lost with the connection. If the session was lost as well, everything must be read again."""
        self._look_at_everything()
        self._read_all |= self._session.state is SessionState.LOST
        self._again_s = 0.0

    # ------------------------------------------------------------------ reporting

    def _tell_state(self, state: SessionState) -> None:
        if self._begun:
            self._call(self._session_changed, state)

    def _call(self, callback: Callable[[T], None], argument: T) -> None:
        """Call back; an error in a callback must not be mistaken for one of ZooKeeper's."""
        try:
            callback(argument)
        except Exception:
            self._logger.exception("what ZooKeeper told could not be passed on")

    def _tell(self, changes: Sequence[MetadataChange]) -> None:
        if not changes:
            return
        if self._begun:
            self._call(self._deliver, changes)
        else:
            self._held += changes

    def _tell_reload(self, nodes: list[Node]) -> None:
        if self._begun:
            self._call(self._reloaded, nodes)
        else:
            self._held = []
            self._held_reload = nodes

    # ------------------------------------------------------------------ following the feed

    def _look_at_everything(self) -> None:
        self._stale.update(dict.fromkeys(self._stale, True))

    def _is_behind(self) -> bool:
        """Is there something to catch up on, and is ZooKeeper reachable?"""
        stale = self._read_all or any(self._stale.values()) or self._session.state is not SessionState.ALIVE
        return (stale or bool(self._doubts)) and self._loaded and self._session.usable

    def _catch_up(self) -> None:
        """Do whatever is due; if ZooKeeper fails, it stays due."""
        if not self._is_behind() or time.monotonic() < self._again_s:
            return
        try:
            self._settle()
        except StorageError as error:
            self._again_s = time.monotonic() + AGAIN_S
            self._logger.debug("the metadata could not be followed: %s", error)

    def _settle(self) -> None:
        decided = self._decide()  # but the outcomes are reported only after the changes
        if self._read_all:
            self._tell_reload(self._read_everything())
        if self._stale[FEED] or decided:
            self._follow()
        for place in (BROKERS, CONTROLLER):
            if self._stale[place]:
                self._look(place)
        self._doubts.tell(decided)
        self._session.alive()

    def _decide(self) -> Decisions:
        if not self._doubts:
            return {}
        self._write_through()
        (names,) = self._client.children([FEED])
        return self._doubts.decide(self._client, change_numbers(names or ()))

    def _follow(self) -> bool:
        """Report the changes since the last one. False if some could not be read, and everything was read instead."""
        found = news(self._changes_there(), self._seen)
        if found is None:
            return self._fall_behind("changes were missed")
        nodes = self._client.read([change_path(number) for number in found])
        told: list[MetadataChange] = []
        for number, node in zip(found, nodes, strict=True):
            if node is None:
                return self._fall_behind("changes were removed before they were read")
            try:
                change = decode_change(node.data)
            except CorruptData as error:
                self._logger.error("%s in ZooKeeper cannot be used: %s", change_path(number), error)
                return self._fall_behind("a change could not be read")
            told.append(self._ephemerals.pass_on(change, node.created))
        if found:
            self._seen = found[-1]
            self._tell(told)
        return True

    def _fall_behind(self, reason: str) -> bool:
        self._logger.info("the metadata is read anew: %s", reason)
        self._read_all = True
        self._tell_reload(self._read_everything())
        return False

    def _changes_there(self) -> list[int]:
        """The numbers of all changes in the feed; sets a watch for more."""
        self._stale[FEED] = False
        names = self._client.watch_children(FEED, self._watcher(FEED))
        if names is None:
            self._prepare()
            names = self._client.watch_children(FEED, self._watcher(FEED)) or []
        return change_numbers(names)

    def _watcher(self, place: str) -> Callable[[], None]:
        return _Mark(self._tasks.put, self._stale, place)

    def _look(self, place: str) -> None:
        """Look at ephemeral nodes directly, because they vanish without a change in the feed."""
        present, position = self._present(place)
        gone, unknown = self._ephemerals.look(place, present, position)
        if gone:
            self._tell([MetadataChange([], gone)])
        if unknown and self._follow():  # whoever created them has left a change
            untold = self._ephemerals.look(place, present, position)[1]
            if untold:
                self._tell_of_strangers(untold)

    def _present(self, place: str) -> tuple[list[str], int]:
        self._stale[place] = False
        changed = self._watcher(place)
        if place == CONTROLLER:
            present = [CONTROLLER] if self._client.watch_existence(CONTROLLER, changed) else []
        else:
            names = self._client.watch_children(place, changed)
            if names is None:
                self._prepare()
                names = self._client.watch_children(place, changed) or []
            present = [f"{place}/{name}" for name in names]
        return present, self._client.position

    def _tell_of_strangers(self, paths: Sequence[str]) -> None:
        """Report nodes that were created without a change in the feed, perhaps by hand."""
        found = zip(paths, self._client.read(paths), strict=True)
        nodes = [Node(path, node.data or b"", node.version) for path, node in found if node is not None]
        self._tell([self._ephemerals.pass_on(MetadataChange(nodes), self._client.position)])

    # ------------------------------------------------------------------ reading everything

    def _write_through(self) -> None:
        """Make sure that anything read afterwards is at least as new as this moment."""
        while not self._client.write_through(FEED):
            self._prepare()

    def _prepare(self) -> None:
        """Create the nodes that must exist to be watched."""
        for path in ("", FEED, BROKERS):
            self._client.ensure(path)

    def _read_everything(self) -> list[Node]:
        """All nodes as of one moment: changes made while they are read are in the feed, and are applied again here.

        The moment is not in the past; otherwise a topic that did not exist yet would be taken for a deleted one.
        """
        self._write_through()
        numbers = self._changes_there()
        while True:
            seen = numbers[-1] if numbers else NOTHING_SEEN
            nodes = read_tree(self._client)
            numbers = self._changes_there()
            try:
                self._replay(nodes, news(numbers, seen))
                break
            except CorruptData as error:
                self._logger.info("the metadata is read once more: %s", error)
        self._seen = numbers[-1] if numbers else NOTHING_SEEN
        self._ephemerals.reset(nodes)
        for place in (BROKERS, CONTROLLER):
            gone, _ = self._ephemerals.look(place, *self._present(place))
            apply_change(nodes, MetadataChange(deleted=gone))
        self._read_all = False
        return [nodes[path] for path in sorted(nodes)]

    def _replay(self, nodes: dict[str, Node], numbers: Sequence[int] | None) -> None:
        if numbers is None:
            raise CorruptData("more has changed meanwhile than the feed holds")
        for number, node in zip(numbers, self._client.read([change_path(n) for n in numbers]), strict=True):
            apply_change(nodes, _parse(node, number))

    # ------------------------------------------------------------------ requests from other threads

    def _load(self) -> list[Node]:
        self._require_connection()
        nodes = self._read_everything()
        self._held, self._held_reload = [], None
        self._loaded = True
        self._session.alive()
        return nodes

    def _begin(self) -> None:
        self._loaded = True
        self._begun = True
        self._tell_state(self._session.state)
        if self._held_reload is not None:
            self._tell_reload(self._held_reload)
        held, self._held, self._held_reload = self._held, [], None
        self._tell(held)

    def _require_connection(self) -> None:
        if not self._session.usable:
            raise StoreAway(f"there is no connection to ZooKeeper at {self._connect}; nothing was changed")

    def _multi(self, operations: Sequence[StoreOp]) -> MetadataChange:
        self._require_connection()
        if not self._loaded:
            self._load()
        if self._session.state is not SessionState.ALIVE:
            raise StoreAway("the metadata is being read from ZooKeeper; nothing was changed")
        self._torn = False
        try:
            self._plan_and_do(operations)
        except StoreConflict:
            self._learn_why()
            raise
        except StoreAway as error:
            if self._torn and not isinstance(error, PerhapsDone):
                raise PerhapsDone(f"{error}; some of what was to be deleted is gone already") from error
            raise
        return self._take_held()

    def _plan_and_do(self, operations: Sequence[StoreOp]) -> None:
        self._marks += 1
        mark = f"{self._name}-{self._marks}"
        for attempt in range(PLANS_MAX):
            resolved = self._resolve_operations(operations, careful=attempt > 0)
            record = self._fit(resolved, operations, mark)
            if record is not None and self._carry_out(resolved, record, mark):
                return
        raise StoreConflict("what was to be changed has been changed by others, again and again")

    def _resolve_operations(self, operations: Sequence[StoreOp], *, careful: bool) -> Resolved:
        try:
            return self._planner.resolve(operations, self._client, careful=careful)
        except PerhapsDone as error:
            raise StoreAway(f"{error}; it was only asked what there is") from error

    def _carry_out(self, resolved: Resolved, record: bytes, mark: str) -> bool:
        """Carry out the plan; False if it rested on something that is no longer true."""
        after, client = self._seen, self._client
        try:
            name = client.multi(resolved.operations, record=(RECORD, record))
            self._finish(resolved, name)
        except OperationRefused as refusal:
            self._planner.forget()
            if refusal.index >= len(resolved.operations):
                self._make_feed_again()
            if resolved.guessed_wrong(refusal):
                return False
            raise StoreConflict(str(refusal)) from None
        except PerhapsDone as error:
            raise InDoubt(error, mark, after=after, client=client, torn=self._torn) from error
        return True

    def _make_feed_again(self) -> None:
        """Create the feed again: somebody has removed it, and this thread has been too busy to be told by a watch."""
        try:
            self._prepare()
        except PerhapsDone as error:
            raise StoreAway(f"{error}; nothing was changed") from error

    def _learn_why(self) -> None:
        """First report what was in the way, so that whoever plans again with that knowledge does not hit it again."""
        self._look_at_everything()
        with suppress(StorageError):
            self._settle()

    def _take_held(self) -> MetadataChange:
        """The changes that must be returned to the caller, because no callbacks are called yet."""
        if self._held_reload is not None:
            raise StorageError("the metadata was read anew from ZooKeeper while this broker started; start it again")
        change, self._held = fold(self._held), []
        return change

    def _finish(self, resolved: Resolved, name: str) -> None:
        """The change was made: report it, after everything that happened before it."""
        self._planner.succeeded(resolved)
        number = next(iter(change_numbers([name])), NOTHING_SEEN)
        if number == self._seen + 1:
            self._seen = number
            self._tell([self._ephemerals.pass_on(resolved.change, self._client.position)])
        else:
            try:
                self._follow()
            except StorageError as error:
                raise PerhapsDone(f"it was done, but what others did before it is not known yet: {error}") from error
        if number % PURGE_EVERY == 0:
            self._tasks.put(self._purge_if_possible)

    def _fit(self, resolved: Resolved, operations: Sequence[StoreOp], mark: str) -> bytes | None:
        """The record for the feed; None if the change was too large, and part of it has been deleted in advance."""
        record = encode_change(resolved.change, mark)
        size = packet_bytes(resolved.operations) + len(record) + len(resolved.operations) * len(self._address.chroot)
        if size <= PACKET_BYTES_MAX:
            return record
        below = [
            operation
            for operation, assumed in zip(resolved.operations, resolved.assumed, strict=True)
            if assumed and isinstance(operation, Delete)
        ]
        if len(below) < DELETES_AT_ONCE:
            raise StorageError(
                f"a change of the metadata would take {size} bytes, and ZooKeeper takes {PACKET_BYTES_MAX} at once; "
                "nothing was changed"
            )
        self._delete_beforehand(below, [operation for operation in operations if isinstance(operation, Check)])
        return None

    def _delete_beforehand(self, below: Sequence[Delete], checks: Sequence[Check]) -> None:
        """A topic with thousands of partitions does not fit into one request: delete its lowest nodes first.

        If this is interrupted, the topic remains, with partitions that have no state; deleting it again completes it.
        """
        for start in range(0, len(below), DELETES_AT_ONCE):
            try:
                self._client.multi([*checks, *below[start : start + DELETES_AT_ONCE]])
            except OperationRefused as refusal:
                if refusal.index < len(checks):
                    raise StoreConflict(str(refusal)) from None
                return  # others have deleted some, too; planning again shows what is left
            self._torn = True

    def _purge_if_possible(self) -> None:
        try:
            self._purge()
        except StorageError as error:
            self._logger.debug("old changes stay for now: %s", error)

    def _purge(self) -> None:
        self._require_connection()
        (names,) = self._client.children([FEED])
        old = change_numbers(names or ())[:-CHANGES_KEPT]
        for start in range(0, len(old), DELETES_AT_ONCE):
            with suppress(OperationRefused):  # another broker was faster
                self._client.multi([Delete(change_path(number)) for number in old[start : start + DELETES_AT_ONCE]])

    def check(self) -> None:
        """Assert what must hold between two tasks; for tests, while nothing is going on."""
        self._ephemerals.check()
        assert self._session.state is not SessionState.ALIVE or not self._read_all
        assert not (self._begun and (self._held or self._held_reload is not None))
        assert self._begun or not self._doubts


class _Mark:
    """Notes, in the store's thread, that a place must be looked at again. Two marks for the same place are equal."""

    def __init__(self, put: Callable[[Callable[[], None]], None], stale: dict[str, bool], place: str) -> None:
        self._put = put
        self._stale = stale
        self._place = place

    def __call__(self) -> None:
        self._put(self._mark)

    def _mark(self) -> None:
        self._stale[self._place] = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Mark) and self._place == other._place and self._stale is other._stale

    def __hash__(self) -> int:
        return hash(self._place)


def _parse(node: StoredNode | None, number: int) -> MetadataChange:
    if node is None:
        raise CorruptData(f"change {number} is gone already")
    return decode_change(node.data)


def _is_sensitive(path: str) -> bool:
    return any(path == root or path.startswith(root + "/") for root in SENSITIVE)


def _nothing() -> None:
    pass


__all__ = ["Credentials", "ZooKeeperStore"]
