"""Produce requests that wait until all in-sync replicas have their records (acks=all).

A request is answered when each of its partitions is settled: committed, or known never to be committed by this broker
(it is no longer the leader, too few replicas are left, or the topic is gone). When the client's timeout expires first,
it is answered with REQUEST_TIMED_OUT for the partitions that are not settled yet.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cordwood.broker.connection import Call
from cordwood.broker.leaders import name_leaders_of_produce
from cordwood.broker.timers import Timer
from cordwood.errors import Error
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
from cordwood.wire.messages import ProduceResponse, ProduceResponsePartition

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Uncommitted(NamedTuple):
    """What a request has appended to one partition, as long as it is not committed."""

    partition: Partition
    end_offset: int
    answer: ProduceResponsePartition


class Acks:
    """One request that waits."""

    __slots__ = ("_broker", "_call", "_left", "_misdirected", "_response", "_timer", "_waiting")

    def __init__(self, broker: "Broker", call: Call, response: ProduceResponse) -> None:
        self._broker = broker
        self._call = call
        self._response = response
        self._left = 0
        self._misdirected = False
        self._waiting: list[Ack] = []
        self._timer: Timer | None = None

    def wait(self, uncommitted: Sequence[Uncommitted], timeout_ms: int) -> None:
        broker = self._broker
        self._left = len(uncommitted)
        self._waiting = [Ack(self, partition, answer) for partition, _, answer in uncommitted]
        for ack, entry in zip(self._waiting, uncommitted, strict=True):
            entry.partition.wait_for(entry.end_offset, ack)
        self._timer = broker.timers.at(broker.now.mono_ms + max(timeout_ms, 0), self._time_is_up)
        self._call.abandon = self._abandon

    def settle_one(self, error: Error) -> None:
        self._left -= 1
        self._misdirected |= error is Error.NOT_LEADER_OR_FOLLOWER
        if self._left == 0:
            self._reply()

    def _reply(self) -> None:
        self._stop()
        if self._misdirected:
            name_leaders_of_produce(self._broker, self._call, self._response)
        self._broker.reply(self._call, self._response)

    def _time_is_up(self, _: Instant) -> None:
        for ack in self._give_up():
            ack.answer.error_code = Error.REQUEST_TIMED_OUT
        self._reply()

    def _abandon(self) -> None:
        self._give_up()
        self._stop()

    def _give_up(self) -> "list[Ack]":
        waiting = [ack for ack in self._waiting if not ack.done]
        for ack in waiting:
            ack.done = True
            ack.partition.drop_done()
        return waiting

    def _stop(self) -> None:
        self._call.abandon = None
        self._waiting = []  # they refer to this object, and reference counting alone must be enough to free everything
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Ack:
    """One partition's part in a waiting request."""

    __slots__ = ("_acks", "answer", "done", "partition")

    def __init__(self, acks: Acks, partition: Partition, answer: ProduceResponsePartition) -> None:
        self._acks = acks
        self.partition = partition
        self.answer = answer
        self.done = False

    def settled(self, error: Error, /) -> None:
        if not self.done:
            self.done = True
            self.answer.error_code = error
            self._acks.settle_one(error)
