"""One partition of an internal topic that this broker leads, and the state machine over it.

- *Loading*: all records of the partition are applied to an empty state, a slice at a time, so that others are served in
  between. Until then every request is refused with COORDINATOR_LOAD_IN_PROGRESS.
- *Serving*: a handler's records are appended as one batch; if that fails nothing has changed, else they are applied.
  A reply leaves when everything that its handler may have seen is committed, so no client is told of a state that a
  failover could take back.
- *Over*: the leadership is gone, or loading failed. Whoever waits is refused with NOT_COORDINATOR.

Invariants (``check``): what is applied is what the log holds up to ``applied_end``; replies wait in offset order.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.outcome import Caller, Outcome, StateRecord
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, Logger
from cordwood.record.batch import Codec, batches
from cordwood.record.build import Record, build, records

LOAD_SLICE_BYTES = 64 << 10
"""So much is loaded in one go: some milliseconds, in which nobody else is served."""

DUE_AT_ONCE = 100
"""So many deadlines are dealt with in one go: a group may have thousands of members who all fall silent at once."""


class Machine(Protocol):
    """A state that records make, and handlers read."""

    @property
    def deadlines(self) -> Deadlines[object]: ...

    def encode(self, record: StateRecord, /) -> tuple[bytes, bytes | None]: ...

    def decode(self, key: bytes, value: bytes | None, /) -> StateRecord | None:
        """None for a kind of record that a later version may write. ``CorruptData`` if it makes no sense."""

    def apply(self, record: StateRecord, /) -> None:
        """The only place where the durable state changes."""

    def loaded(self, now: Instant, /) -> Outcome:
        """All is applied, and serving begins: set the deadlines of what was found."""

    def expired(self, key: object, now: Instant, /) -> Outcome:
        """A deadline has come."""

    def ended(self) -> Outcome:
        """Serving is over: whoever still waits for the machine itself must ask elsewhere. Nothing is written."""

    def check(self) -> None: ...


class ShardState(Enum):
    LOADING = "loading"
    SERVING = "serving"
    OVER = "over"


class Shard:
    """A state machine, its partition, and who waits for it."""

    def __init__(
        self,
        partition: Partition,
        machine: Machine,
        logger: Logger,
        *,
        record_bytes_max: int,
        want_sync: Callable[[Partition], None],
        codec: Codec = Codec.NONE,
    ) -> None:
        self.partition = partition
        self.machine = machine
        self.state = ShardState.LOADING
        self.epoch = partition.leader_epoch
        self.applied_end = partition.log.log_start_offset
        self._logger = logger
        self._record_bytes_max = record_bytes_max
        self._want_sync = want_sync
        self._codec = codec
        self._waiting: deque[tuple[int, Outcome]] = deque()

    # ------------------------------------------------------------------ loading

    def load_slice(self, now: Instant) -> int:
        """Apply some more of the log; how many bytes. When there are no more, requests are served."""
        assert self.state is ShardState.LOADING
        log = self.partition.log
        try:
            found = log.read(self.applied_end, LOAD_SLICE_BYTES, up_to_offset=log.end_offset)
            if found is not None:
                self._apply_slice(found.read())
                return len(found)
        except (StorageError, CorruptData, Refused) as error:
            self._logger.error("%s can not be loaded, its groups are not served: %s", self.partition.name, error)
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

    def check_serving(self) -> None:
        if self.state is ShardState.LOADING:
            raise Refused(Error.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is ShardState.OVER:
            raise Refused(Error.NOT_COORDINATOR)

    def handle(self, caller: Caller, handler: Callable[[], Outcome], now: Instant) -> None:
        """Let *handler* decide on a request, and see to what comes of it."""
        try:
            self.check_serving()
            outcome = handler()
        except Refused as refusal:
            caller.refuse(refusal)
            return
        self.finish(outcome, now)

    def run_due(self, now: Instant) -> None:
        """Deal with deadlines that have come, as many as may be dealt with in one go. ``deadlines`` has the others."""
        for _ in range(DUE_AT_ONCE):
            if self.state is not ShardState.SERVING:
                return
            key = self.machine.deadlines.pop_due(now.mono_ms)
            if key is None:
                return
            self.finish(self.machine.expired(key, now), now)

    def finish(self, outcome: Outcome, now: Instant) -> None:
        """Write the records, apply them, and let the replies go now or when all is committed."""
        if outcome.records:
            try:
                self._append(outcome.records, now)
            except Refused as refusal:
                _fail(outcome, refusal)
                return
            for record in outcome.records:
                self.machine.apply(record)
        if self.partition.high_watermark >= self.applied_end:
            _reply(outcome)
        elif outcome.replies:
            self._waiting.append((self.applied_end, outcome))
            self.partition.watchers[self] = None

    def _append(self, changes: Sequence[StateRecord], now: Instant) -> None:
        encoded = map(self.machine.encode, changes)
        batch = build([Record(n, now.wall_ms, key, value) for n, (key, value) in enumerate(encoded)], codec=self._codec)
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
        while waiting and waiting[0][0] <= self.partition.high_watermark:
            _reply(waiting.popleft()[1])
        if not waiting:
            self.partition.watchers.pop(self, None)

    def end(self) -> None:
        """This broker does not lead the partition any more, or can not serve it."""
        self.state = ShardState.OVER
        self.partition.watchers.pop(self, None)
        waiting, self._waiting = self._waiting, deque()
        for _, outcome in waiting:
            _fail(outcome, Refused(Error.NOT_COORDINATOR))
        _reply(self.machine.ended())

    def check(self) -> None:
        self.machine.check()
        self.machine.deadlines.check()
        ends = [end for end, _ in self._waiting]
        assert ends == sorted(ends)
        assert not self._waiting or self in self.partition.watchers
        if self.state is ShardState.SERVING:
            assert self.applied_end == self.partition.log.end_offset


def _reply(outcome: Outcome) -> None:
    # What could undo it refers to it, and may hold a copy of a whole group: let go of it now, not when the garbage
    # collector comes round.
    outcome.failed = None
    for caller, response in outcome.replies:
        caller.reply(response)


def _fail(outcome: Outcome, refusal: Refused) -> None:
    if outcome.failed is not None:
        outcome.failed(refusal)
        return
    for caller, _ in outcome.replies:
        caller.refuse(refusal)


_WRITE_ERRORS = {
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.MESSAGE_TOO_LARGE: Error.RECORD_LIST_TOO_LARGE,
}


def _as_coordinator(refusal: Refused) -> Refused:
    """A refused append in the words of a coordinator, as clients expect them."""
    return Refused(_WRITE_ERRORS.get(refusal.error, refusal.error), refusal.message)
