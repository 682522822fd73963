"""One member of a consumer group: how it describes itself, and what it has.

Both parts are values: each is the content of one kind of record, and a change is a new value. ``Member`` ties them
together under the member's id.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Final
from uuid import UUID

from cordwood.errors import CorruptData
from cordwood.group.stored import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)
from cordwood.wire.compiler import maker

JOINING: Final = 0
LEFT: Final = -1
LEFT_FOR_A_WHILE: Final = -2
"""The epoch of a static member that said it would be back within its session timeout."""

Held = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic, each with the epoch since which the member has it. No topic without partitions."""

NOTHING: Final[Held] = {}

_NUMBER: Final = attrgetter("int")
_stored_current: Final = maker(ConsumerGroupCurrentMemberAssignmentValue)
_stored_partitions: Final = maker(CurrentTopicPartitions)


class MemberState(IntEnum):
    """How far a member has followed its target assignment. The numbers are those of the stored records."""

    STABLE = 0
    """It has what it should have."""
    UNREVOKED_PARTITIONS = 1
    """It was told to give up partitions, and has not confirmed that yet."""
    UNRELEASED_PARTITIONS = 2
    """It has given up all that it must, and waits for partitions that others have not given up."""
    UNKNOWN = 127
    """A later version's state, or one that makes no sense: the member has to rejoin."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Description:
    """A member as it has described itself. What a heartbeat leaves out stays as it was."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    """What is only known of members that speak the classic protocol."""

    @classmethod
    def of_record(cls, value: ConsumerGroupMemberMetadataValue) -> "Description":
        if value.classic_member_metadata is not None and not value.classic_member_metadata.supported_protocols:
            raise CorruptData("a member of the classic protocol knows no way to assign")
        return cls(
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            frozenset(value.subscribed_topic_names),
            value.subscribed_topic_regex or "",
            value.rebalance_timeout_ms,
            value.server_assignor,
            value.classic_member_metadata,
        )

    def as_record(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )


@dataclass(frozen=True, slots=True)
class Current:
    """What a member has. Partitions in ``revoking`` are still its own, but it has been told to give them up."""

    epoch: int = JOINING
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)

    @classmethod
    def of_record(cls, value: ConsumerGroupCurrentMemberAssignmentValue) -> "Current":
        return cls(
            value.member_epoch,
            value.previous_member_epoch,
            MemberState(value.state),
            _held(value.assigned_partitions, value.member_epoch),
            _held(value.partitions_pending_revocation, value.member_epoch),
        )

    def as_record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return _stored_current(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_as_stored(self.assigned),
            partitions_pending_revocation=_as_stored(self.revoking),
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def since(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch since which the member has a partition, None if it does not have it."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group."""

    id: str
    description: Description = field(default_factory=Description)
    current: Current = field(default_factory=Current)

    @property
    def is_classic(self) -> bool:
        """Does it speak the classic protocol?"""
        return self.description.classic is not None


def _held(topics: list[CurrentTopicPartitions], member_epoch: int) -> Held:
    """Records written before Kafka 4.3 have no epochs of partitions: the member's is the safe one to assume."""
    held: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        held.setdefault(topic.topic_id, {}).update(zip(topic.partitions, epochs, strict=True))
    return {topic_id: partitions for topic_id, partitions in held.items() if partitions}


def in_order(topics: Collection[UUID]) -> Collection[UUID]:
    """Topics in the order in which they are stored and sent. Most members have partitions of only one."""
    return topics if len(topics) <= 1 else sorted(topics, key=_NUMBER)


def _as_stored(held: Held) -> list[CurrentTopicPartitions]:
    stored = []
    for topic_id in in_order(held):
        partitions = sorted(held[topic_id])
        epochs = [held[topic_id][partition] for partition in partitions]
        stored.append(_stored_partitions(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return stored
