"""DeleteRecords requests that wait until the followers have deleted what their leader has.

A partition is done when its low watermark (the smallest log start offset of any live replica) has reached the offset
that was asked for, or when this broker can no longer see to it. What is not done when the client's timeout expires has
timed out.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cordwood.broker.connection import Call
from cordwood.broker.timers import Timer
from cordwood.errors import Error
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
from cordwood.wire.messages import DeleteRecordsResponsePartition

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Undone(NamedTuple):
    """What some follower may still have."""

    partition: Partition
    offset: int
    answer: DeleteRecordsResponsePartition


class Deletion:
    """One request that waits. It watches the log start offsets of its partitions."""

    def __init__(self, broker: "Broker", call: Call, reply: Callable[[], None]) -> None:
        self._broker = broker
        self._call = call
        self._reply = reply
        self._undone: list[Undone] = []
        self._timer: Timer | None = None

    def wait(self, undone: Sequence[Undone], timeout_ms: int) -> None:
        broker = self._broker
        self._undone = list(undone)
        for entry in undone:
            entry.partition.start_watchers[self] = None
        self._timer = broker.timers.at(broker.now.mono_ms + max(timeout_ms, 0), self._time_is_up)
        self._call.abandon = self._stop

    def start_moved(self) -> None:
        """A replica's log start offset has moved, or replicas came or went."""
        self._undone = [entry for entry in self._undone if not self._is_done(entry)]
        if not self._undone:
            self._stop()
            self._reply()

    def _is_done(self, entry: Undone) -> bool:
        partition, offset, answer = entry
        if partition.gone or not partition.leading:
            answer.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION if partition.gone else Error.NOT_LEADER_OR_FOLLOWER
            answer.low_watermark = -1
        else:
            answer.low_watermark = partition.low_watermark(self._broker.image.brokers)
            if answer.low_watermark < offset:
                return False
        partition.start_watchers.pop(self, None)
        return True

    def _time_is_up(self, _: Instant) -> None:
        for entry in self._undone:
            entry.answer.error_code = Error.REQUEST_TIMED_OUT
        self._stop()
        self._reply()

    def _stop(self) -> None:
        self._call.abandon = None
        for entry in self._undone:
            entry.partition.start_watchers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
