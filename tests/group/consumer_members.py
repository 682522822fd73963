"""Members of consumer groups for tests: they say what a client would say, and remember what they were told."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from cordwood.errors import Error, Refused
from cordwood.group import consumer
from cordwood.group.consumer import ConsumerGroup
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopic,
    ConsumerGroupHeartbeatResponse,
)
from group.group_harness import Asker, GroupHarness

GROUP = "g"
Partitions = set[tuple[UUID, int]]
START_AGAIN = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.FENCED_INSTANCE_ID, Error.GROUP_ID_NOT_FOUND)


@dataclass(slots=True)
class TestMember:
    """A client. It owns what it was told to have, and what it was told to give up and has not."""

    __test__ = False

    harness: GroupHarness
    id: str
    topics: list[str] | None = field(default_factory=lambda: ["t"])
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    rebalance_timeout_ms: int = 60_000
    group_id: str = GROUP
    epoch: int = 0
    told: Partitions = field(default_factory=set)
    owned: Partitions = field(default_factory=set)
    version: int = 1
    unsure: bool = False
    """It did not hear the last answer, and says everything again."""

    def send(self, **fields: object) -> ConsumerGroupHeartbeatResponse | Refused:
        """A heartbeat with nothing in it but *fields*; what it answers is not looked at."""
        (answer,) = self.ask(**fields).answers
        assert isinstance(answer, ConsumerGroupHeartbeatResponse | Refused)
        return answer

    def ask(self, **fields: object) -> Asker:
        """Such a heartbeat, which may be answered later."""
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": self.group_id, "member_id": self.id, "instance_id": self.instance_id, **fields}  # type: ignore[arg-type]
        )
        handler = consumer.goodbye if request.member_epoch < 0 else consumer.heartbeat
        return self.harness.call(handler, request, self.version)

    def ask_as_usual(self) -> Asker:
        """Join, or stay, whatever is due."""
        if self.epoch <= 0:
            self.told, self.owned, self.epoch = set(), set(), 0
            return self.ask(member_epoch=0, topic_partitions=[], **self.said())
        return self.ask(
            member_epoch=self.epoch, topic_partitions=topics(self.owned), **(self.said() if self.unsure else {})
        )

    def join(self) -> ConsumerGroupHeartbeatResponse:
        """Join, or join again with nothing."""
        self.told, self.owned, self.epoch = set(), set(), 0
        return self.heard(self.send(member_epoch=0, topic_partitions=[], **self.said()))

    def beat(self, *, say_owned: bool = True, **fields: object) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat as clients send them while they stay; the partitions it has are told unless nothing changed."""
        if say_owned:
            fields = {"topic_partitions": topics(self.owned), **fields}
        if self.unsure:
            fields = {**self.said(), **fields}
        return self.heard(self.send(member_epoch=self.epoch, **fields))

    def said(self) -> dict[str, object]:
        return {
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.pattern,
            "server_assignor": self.assignor,
        }

    def heard(self, answer: ConsumerGroupHeartbeatResponse | Refused) -> ConsumerGroupHeartbeatResponse:
        if isinstance(answer, Refused):
            raise answer
        self.unsure = False
        self.id = answer.member_id or self.id
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.told = {(each.topic_id, n) for each in answer.assignment.topic_partitions for n in each.partitions}
            self.owned |= self.told
        return answer

    def give_up(self) -> None:
        """Stop reading what it was told not to have."""
        self.owned = set(self.told)

    def settle(self) -> None:
        """One heartbeat, and another one at once if there was something to give up."""
        self.beat()
        if self.owned != self.told:
            self.give_up()
            self.beat()

    def leave(self, epoch: int = -1) -> None:
        answer = self.send(member_epoch=epoch)
        assert not isinstance(answer, Refused), answer
        self.told, self.owned, self.epoch = set(), set(), epoch

    @property
    def numbers(self) -> list[int]:
        """The partitions it was told to have, of whichever topic."""
        return sorted(partition for _, partition in self.told)


def topics(partitions: Partitions) -> list[ConsumerGroupHeartbeatRequestTopic]:
    ids = sorted({topic_id for topic_id, _ in partitions}, key=lambda topic_id: topic_id.int)
    return [
        ConsumerGroupHeartbeatRequestTopic(
            topic_id=topic_id, partitions=sorted(partition for each, partition in partitions if each == topic_id)
        )
        for topic_id in ids
    ]


def refused(answer: ConsumerGroupHeartbeatResponse | Refused) -> Error:
    assert isinstance(answer, Refused), answer
    return answer.error


def group_of(harness: GroupHarness, group_id: str = GROUP) -> ConsumerGroup:
    group = harness.state.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def settle(harness: GroupHarness, *members: TestMember, rounds: int = 4) -> None:
    """Let everyone heartbeat, a few times, with time between."""
    for _ in range(rounds):
        harness.advance(5000)
        for member in members:
            member.settle()


def expect(refusal: Refused, *errors: Error) -> None:
    assert refusal.error in errors


def contents(group: object) -> dict[str, object]:
    """All of a group but its marks."""
    return {name: value for name, value in attributes(group).items() if name not in ("topics_changed", "new_topics")}


def attributes(group: object) -> dict[str, object]:
    """By name; of a compiled class too, whose objects have no dictionary."""
    names: Iterable[str] = getattr(type(group), "__mypyc_attrs__", None) or vars(group)
    return {name: getattr(group, name) for name in names}
