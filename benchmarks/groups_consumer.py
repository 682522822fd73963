"""A group of the consumer protocol, as its members see it: they send heartbeats, the broker assigns.

A real member sends a heartbeat every five seconds, and most of a rebalance is waiting. Here all members send the next
one as soon as all are answered, until there is nothing new, so what is left is the broker's part.
"""

import time
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid4

from cordwood.wire import messages as m
from cordwood.wire.client_frame import read_response

from .groups_wires import Wires, check, request

VERSION: Final = 1
REBALANCE_TIMEOUT_MS: Final = 60_000
LEAVE: Final = -1


@dataclass(slots=True)
class _Member:
    id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    held: frozenset[tuple[UUID, int]] = frozenset()
    has_news: bool = False
    """Has what it holds changed since its last heartbeat?"""

    def take(self, answer: m.ConsumerGroupHeartbeatResponse) -> None:
        check(answer.error_code, "ConsumerGroupHeartbeat")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            held = frozenset((t.topic_id, p) for t in answer.assignment.topic_partitions for p in t.partitions)
            self.has_news = held != self.held
            self.held = held


@dataclass(slots=True)
class ConsumerGroup:
    """Members of one group, one per connection, on a topic with as many partitions: each is to hold one."""

    wires: Wires
    name: str
    topic: str
    numbers: range
    _members: dict[int, _Member] = field(default_factory=dict)

    def form(self) -> None:
        """Let all members join but the last."""
        for number in self.numbers[:-1]:
            self._enter(number)
        self._report_until_settled()

    def rebalance(self) -> float:
        """The last member joins; return the seconds until each holds its partition. Afterwards it leaves again."""
        begin = time.perf_counter()
        self._enter(self.numbers[-1])
        self._report_until_settled()
        took_s = time.perf_counter() - begin
        assert all(len(member.held) == 1 for member in self._members.values())
        self._leave(self.numbers[-1])
        self._report_until_settled()
        return took_s

    def leave(self) -> None:
        for number in list(self._members):
            self._leave(number)

    def _enter(self, number: int) -> None:
        member = self._members[number] = _Member()
        hello = m.ConsumerGroupHeartbeatRequest(
            group_id=self.name,
            member_id=member.id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )
        member.take(self._ask(number, hello))

    def _leave(self, number: int) -> None:
        goodbye = m.ConsumerGroupHeartbeatRequest(
            group_id=self.name, member_id=self._members.pop(number).id, member_epoch=LEAVE
        )
        check(self._ask(number, goodbye).error_code, "leaving")

    def _ask(self, number: int, message: m.ConsumerGroupHeartbeatRequest) -> m.ConsumerGroupHeartbeatResponse:
        return self.wires.ask(number, request(message, VERSION), m.ConsumerGroupHeartbeatResponse, VERSION)

    def _report_until_settled(self) -> None:
        """All members send heartbeats, in rounds, until nothing is left to change."""
        waiting = set(self._members)
        for number in sorted(waiting):
            self._report(number)
        for number, frame in self.wires.frames():
            member = self._members[number]
            member.take(read_response(m.ConsumerGroupHeartbeatResponse, VERSION, frame))
            waiting.discard(number)
            if not waiting and self._settled():
                return
            if not waiting:
                waiting = set(self._members)
                for each in sorted(waiting):
                    self._report(each)

    def _settled(self) -> bool:
        """Are all members at the same epoch, without a change to report, and is every partition held exactly once?"""
        members = self._members.values()
        held = [partition for member in members for partition in member.held]
        same_epoch = len({member.epoch for member in members}) <= 1
        everything = len(held) == len(set(held)) == len(self.numbers)
        return same_epoch and everything and not any(member.has_news for member in members)

    def _report(self, number: int) -> None:
        member = self._members[number]
        report = m.ConsumerGroupHeartbeatRequest(group_id=self.name, member_id=member.id, member_epoch=member.epoch)
        if member.has_news:
            member.has_news = False
            report.topic_partitions = [
                m.ConsumerGroupHeartbeatRequestTopic(
                    topic_id=topic, partitions=sorted(p for t, p in member.held if t == topic)
                )
                for topic in {topic for topic, _ in member.held}
            ]
        self.wires.send(number, request(report, VERSION))
