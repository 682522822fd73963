"""One partition of an internal topic that this broker leads, and the state machine over it.

- *Loading*: all records of the partition are applied to an empty state, a slice at a time, so that others are served in
  between. Until then every request is refused with COORDINATOR_LOAD_IN_PROGRESS.
- *Serving*: a handler's records are appended as one batch; if that fails, nothing has changed, otherwise they are
  applied. A reply is sent when everything that its handler may have seen is committed, so no client is told of a state
  that a failover could take back. A caller that has waited too long for that is refused; the state stays as it is, and
  may still be committed.
- *Gathering*: requests of a kind that arrives thousands of times a second may wait for each other and be written as one
  batch. Either they do not look at what others of their kind change, and only the last change of each key is written;
  or their handler applies them to copies, which the next of them looks at. They are written before anything else
  happens to the shard, so to everybody else it is as if each had been written when it arrived.
- *Over*: this broker no longer leads the partition, or loading failed, which may be retried with a new shard. All
  waiting callers are refused with NOT_COORDINATOR.

Invariants (``check``): what is applied is what the log holds up to ``applied_end``; replies wait in offset order, which
is also the order in which they time out; what has been gathered is not applied.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.outcome import Caller, Gathers, Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, Logger
from cordwood.record.batch import Codec, batches
from cordwood.record.build import Record, build_pairs, records

LOAD_SLICE_BYTES: Final = 64 << 10
"""How much is loaded at a time: this takes some milliseconds, in which nobody else is served."""

DUE_AT_ONCE: Final = 100
"""How many deadlines are handled at a time: a group may have thousands of members that all fall silent at once."""

COMMIT_TIMEOUT_MS: Final = 5000

GATHERED_MAX: Final = 1000
"""How much may be gathered before it is written: more would not be cheaper, and others wait."""


class Machine(Protocol):
    """State that is built from records, and that handlers read."""

    @property
    def deadlines(self) -> Deadlines[object]: ...

    def encode(self, record: StateRecord, /) -> tuple[bytes, bytes | None]: ...

    def decode(self, key: bytes, value: bytes | None, /) -> StateRecord | None:
        """None for a kind of record that a later version may write. Raises ``CorruptData`` if it cannot be decoded."""

    def apply(self, record: StateRecord, /) -> None:
        """The only place where the durable state changes, apart from ``adopt``."""

    def adopt(self) -> None:
        """All that handlers have applied to copies (``Gathers.AHEAD``) is written: the copies are the state now."""

    def abandon(self) -> None:
        """It could not be written: discard the copies."""

    def loaded(self, now: Instant, /) -> Outcome:
        """Everything has been applied, and serving begins: set the deadlines of what was loaded."""

    def expired(self, key: object, now: Instant, /) -> Outcome:
        """A deadline has passed."""

    def ended(self) -> Outcome:
        """Serving is over: callers that are still waiting in the machine must ask elsewhere. Nothing is written."""

    def check(self) -> None: ...


class ShardState(Enum):
    LOADING = "loading"
    SERVING = "serving"
    OVER = "over"


# It is looked at for every request, and looking up a member of an enumeration takes a while.
_SERVING: Final = ShardState.SERVING
_AHEAD: Final = Gathers.AHEAD


class _Waiting(NamedTuple):
    """An outcome whose replies are sent when the log is committed up to *end*, or refused at *due_ms*."""

    end: int
    due_ms: int
    outcome: Outcome


class Shard:
    """A state machine, its partition, and the callers that wait for it."""

    def __init__(
        self,
        partition: Partition,
        machine: Machine,
        logger: Logger,
        *,
        record_bytes_max: int,
        want_sync: Callable[[Partition], None],
        commit_timeout_ms: int = COMMIT_TIMEOUT_MS,
        codec: Codec = Codec.NONE,
    ) -> None:
        self.partition = partition
        self.machine = machine
        self.state = ShardState.LOADING
        self.epoch = partition.leader_epoch
        self.applied_end = partition.log.log_start_offset
        self.load_error: StorageError | CorruptData | Refused | None = None
        """Why it could not be loaded."""
        self._logger = logger
        self._record_bytes_max = record_bytes_max
        self._want_sync = want_sync
        self._codec = codec
        self._commit_timeout_ms = commit_timeout_ms
        self._waiting: deque[_Waiting] = deque()
        self._gathered: list[Outcome] = []
        self._gathered_count = 0
        self._gathering: object = None
        """The kind of requests that was served last, see ``make_way``."""

    # ------------------------------------------------------------------ loading

    def load_slice(self, now: Instant) -> int:
        """Apply the next part of the log; returns how many bytes. At the end of the log, serving begins."""
        assert self.state is ShardState.LOADING
        log = self.partition.log
        try:
            found = log.read(self.applied_end, LOAD_SLICE_BYTES, up_to_offset=log.end_offset)
            if found is not None:
                self._apply_slice(found.read())
                return len(found)
        except (StorageError, CorruptData, Refused) as error:
            self._logger.error("%s cannot be loaded, its groups are not served: %s", self.partition.name, error)
            self.load_error = error
            self.end()
            return 0
        self.state = ShardState.SERVING
        self.finish(self.machine.loaded(now), now)
        return 0

    def _apply_slice(self, data: bytes) -> None:
        for batch, header in batches(memoryview(data)):
            if not header.is_control:
                for record in records(batch, header, limit=self._record_bytes_max):
                    self._apply_stored(record)
            self.applied_end = header.last_offset + 1

    def _apply_stored(self, record: Record) -> None:
        if record.offset < self.applied_end or record.key is None:
            return
        change = self.machine.decode(record.key, record.value)
        if change is not None:
            self.machine.apply(change)

    # ------------------------------------------------------------------ serving

    def handle(self, caller: Caller, handler: Callable[[], Outcome], now: Instant) -> None:
        """Let *handler* decide on a request, and carry out the outcome."""
        try:
            self.make_way(None, now)
            outcome = handler()
        except Refused as refusal:
            caller.refuse(refusal)
            return
        self.finish(outcome, now)

    def make_way(self, kind: object, now: Instant) -> None:
        """A request is about to be handled: write what has been gathered, unless all of it is of the same *kind*.

        Raises:
            Refused: no requests are served here.
        """
        if self._gathered and (kind is None or self._gathering is not kind):
            self.write_gathered(now)
        if self.state is not _SERVING:
            loading = self.state is ShardState.LOADING
            raise Refused(Error.COORDINATOR_LOAD_IN_PROGRESS if loading else Error.NOT_COORDINATOR)
        self._gathering = kind

    def run_due(self, now: Instant) -> None:
        """Handle the deadlines that have passed, up to the limit; the others stay in ``deadlines``."""
        self.write_gathered(now)
        self._refuse_late(now)
        for _ in range(DUE_AT_ONCE):
            if self.state is not ShardState.SERVING:
                return
            key = self.machine.deadlines.pop_due(now.mono_ms)
            if key is None:
                return
            self.finish(self.machine.expired(key, now), now)

    def earliest(self) -> int | None:
        """When to call ``run_due`` again: nothing is due earlier."""
        earliest = self.machine.deadlines.earliest()
        if self._waiting and (earliest is None or self._waiting[0].due_ms < earliest):
            return self._waiting[0].due_ms
        return earliest

    def gather(self, outcome: Outcome, now: Instant) -> bool:
        """Like ``finish``, but an outcome that ``gathers`` waits for ``write_gathered``. Is it the first to wait?

        An outcome that does not gather need not wait; if it has records, what was gathered is written first.
        """
        if outcome.gathers is None:
            if outcome.records:
                self.write_gathered(now)
            self._write([outcome], outcome.records, now)
            return False
        gathered = self._gathered
        gathered.append(outcome)
        self._gathered_count += len(outcome.records) or 1
        if self._gathered_count >= GATHERED_MAX:
            self.write_gathered(now)
        return len(gathered) == 1

    def write_gathered(self, now: Instant) -> None:
        """Write what has been gathered, as one batch."""
        if self._gathered:
            gathered, self._gathered, self._gathered_count = self._gathered, [], 0
            is_ahead = gathered[0].gathers is _AHEAD
            self._write(gathered, _all_changes(gathered) if is_ahead else _newest(gathered), now, is_ahead=is_ahead)

    def finish(self, outcome: Outcome, now: Instant) -> None:
        """Write the records, apply them, and send the replies now or when everything is committed."""
        assert not self._gathered, "what has gathered comes first"
        self._write([outcome], outcome.records, now)

    def _write(
        self, outcomes: Sequence[Outcome], changes: Collection[StateRecord], now: Instant, *, is_ahead: bool = False
    ) -> None:
        """Write the records of all outcomes as one batch."""
        if changes:
            try:
                if outcomes[0].splits:
                    self._write_parts(list(changes), now)
                else:
                    self._append(changes, now)
                    self._happen(changes, is_ahead=is_ahead)
            except Refused as refusal:
                if is_ahead:
                    self.machine.abandon()
                self._refuse(outcomes, refusal, now)
                return
        if self.partition.high_watermark >= self.applied_end:
            for outcome in outcomes:
                _reply(outcome)
            return
        due_ms = now.mono_ms + self._commit_timeout_ms
        self._waiting.extend(_Waiting(self.applied_end, due_ms, outcome) for outcome in outcomes if outcome.replies)
        if self._waiting:
            self.partition.watchers[self] = None

    def _write_parts(self, changes: Sequence[StateRecord], now: Instant) -> None:
        """Write the changes as one batch or, if that is too large, as several."""
        try:
            self._append(changes, now)
        except Refused as refusal:
            if refusal.error is not Error.RECORD_LIST_TOO_LARGE or len(changes) == 1:
                raise
            half = len(changes) // 2
            self._write_parts(changes[:half], now)
            self._write_parts(changes[half:], now)
        else:
            self._happen(changes, is_ahead=False)

    def _happen(self, changes: Collection[StateRecord], *, is_ahead: bool) -> None:
        if is_ahead:
            self.machine.adopt()
            return
        apply = self.machine.apply
        for change in changes:
            apply(change)

    def _refuse(self, outcomes: Sequence[Outcome], refusal: Refused, now: Instant) -> None:
        """The records could not be written. If they were too large for one batch, each outcome gets a batch of its own.

        What was decided ahead depends on earlier decisions: if one of them cannot be written, neither can those after
        it.
        """
        if refusal.error is not Error.RECORD_LIST_TOO_LARGE or len(outcomes) == 1:
            for outcome in outcomes:
                _fail(outcome, refusal)
            return
        for number, outcome in enumerate(outcomes):
            end = self.applied_end
            self._write([outcome], outcome.records, now)
            if outcome.gathers is _AHEAD and outcome.records and self.applied_end == end:
                self._refuse(outcomes[number + 1 :], Refused(Error.COORDINATOR_NOT_AVAILABLE), now)
                return

    def _append(self, changes: Iterable[StateRecord], now: Instant) -> None:
        batch = build_pairs(map(self.machine.encode, changes), timestamp=now.wall_ms, codec=self._codec)
        partition = self.partition
        try:
            result = partition.append_own(memoryview(batch), now)
        except (StorageError, CorruptData) as error:
            self._logger.error("%s could not be written: %s", partition.name, error)
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        except Refused as refusal:
            raise _as_coordinator(refusal) from refusal
        self.applied_end = result.last_offset + 1
        if partition.high_watermark < self.applied_end:
            self._want_sync(partition)

    def advanced(self, size: int, /) -> None:
        """The partition's high watermark has moved, see ``Watcher``."""
        waiting = self._waiting
        while waiting and waiting[0].end <= self.partition.high_watermark:
            _reply(waiting.popleft().outcome)
        if not waiting:
            self.partition.watchers.pop(self, None)

    def _refuse_late(self, now: Instant) -> None:
        """Nothing is undone: what was written may still be committed."""
        waiting = self._waiting
        while waiting and waiting[0].due_ms <= now.mono_ms:
            outcome = waiting.popleft().outcome
            outcome.failed = None
            _fail(outcome, Refused(Error.COORDINATOR_NOT_AVAILABLE, "Not all replicas have it yet."))
        if not waiting:
            self.partition.watchers.pop(self, None)

    def end(self) -> None:
        """This broker no longer leads the partition, or cannot serve it."""
        self.state = ShardState.OVER
        self.partition.watchers.pop(self, None)
        waiting = [each.outcome for each in self._waiting] + self._gathered
        self._waiting.clear()
        self._gathered, self._gathered_count = [], 0
        self.machine.abandon()
        for outcome in waiting:
            _fail(outcome, Refused(Error.NOT_COORDINATOR))
        _reply(self.machine.ended())

    def check(self) -> None:
        self.machine.check()
        self.machine.deadlines.check()
        for earlier, later in pairwise(self._waiting):
            assert earlier.end <= later.end
            assert earlier.due_ms <= later.due_ms
        assert not self._waiting or self in self.partition.watchers
        assert len({outcome.gathers for outcome in self._gathered} - {None}) <= 1, "one kind gathers at a time"
        assert self._gathered_count == sum(len(outcome.records) or 1 for outcome in self._gathered)
        if self.state is ShardState.SERVING:
            assert self.applied_end == self.partition.log.end_offset


def _all_changes(outcomes: Iterable[Outcome]) -> list[StateRecord]:
    return [record for outcome in outcomes for record in outcome.records]


def _newest(outcomes: Iterable[Outcome]) -> Collection[StateRecord]:
    """The last change of each key: nobody can have seen those that it replaces."""
    return {record.key: record for outcome in outcomes for record in outcome.records}.values()


def _reply(outcome: Outcome) -> None:
    # The function that would undo it refers to it, and may hold a copy of a whole group: release it now, rather than
    # when the garbage collector runs.
    outcome.failed = None
    for caller, response in outcome.replies:
        caller.reply(response)


def _fail(outcome: Outcome, refusal: Refused) -> None:
    if outcome.failed is not None:
        outcome.failed(refusal)
        return
    for caller, _ in outcome.replies:
        caller.refuse(refusal)


_WRITE_ERRORS: Final = {
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.MESSAGE_TOO_LARGE: Error.RECORD_LIST_TOO_LARGE,
}


def _as_coordinator(refusal: Refused) -> Refused:
    """The error of a refused append, translated to what clients expect from a coordinator."""
    return Refused(_WRITE_ERRORS.get(refusal.error, refusal.error), refusal.message)
