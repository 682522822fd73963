"""The records of a consumer group, as Kafka writes them. A deletion has a key and no value."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from cordwood.coordinator.state_record import StateRecord
from cordwood.group.stored import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TargetTopicPartitions,
)
from cordwood.wire.compiler import maker

from .member import Current, Description, in_order

Target = Mapping[UUID, frozenset[int]]
"""What a member should have: partitions by topic. No topic without partitions."""

_current_key: Final = maker(ConsumerGroupCurrentMemberAssignmentKey)


def description_record(group_id: str, member_id: str, description: Description | None) -> StateRecord:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return StateRecord(key, None if description is None else description.as_record())


def current_record(group_id: str, member_id: str, current: Current | None) -> StateRecord:
    key = _current_key(group_id=group_id, member_id=member_id)
    return StateRecord(key, None if current is None else current.as_record())


def target_record(group_id: str, member_id: str, target: Target | None) -> StateRecord:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return StateRecord(key, None if target is None else target_value(target))


def target_value(target: Target) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartitions(topic_id=topic_id, partitions=sorted(target[topic_id]))
            for topic_id in in_order(target)
        ]
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions if topic.partitions}


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StateRecord:
    key = ConsumerGroupMetadataKey(group_id=group_id)
    return StateRecord(key, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash))


def assignment_epoch_record(group_id: str, epoch: int, timestamp: int) -> StateRecord:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    return StateRecord(key, value)


def pattern_record(group_id: str, pattern: str, topics: Iterable[str], timestamp: int) -> StateRecord:
    """The version of the metadata is not written: no such number here would mean anything after a restart."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return StateRecord(key, ConsumerGroupRegularExpressionValue(topics=sorted(topics), timestamp=timestamp))


def no_pattern_record(group_id: str, pattern: str) -> StateRecord:
    return StateRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def no_member_records(group_id: str, member_id: str) -> list[StateRecord]:
    """In this order, because a member that is forgotten must have nothing and no target."""
    return [
        current_record(group_id, member_id, None),
        target_record(group_id, member_id, None),
        description_record(group_id, member_id, None),
    ]


def no_group_records(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> list[StateRecord]:
    members = list(member_ids)
    return [
        *(current_record(group_id, member_id, None) for member_id in members),
        *(target_record(group_id, member_id, None) for member_id in members),
        StateRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(description_record(group_id, member_id, None) for member_id in members),
        *(no_pattern_record(group_id, pattern) for pattern in patterns),
        StateRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
