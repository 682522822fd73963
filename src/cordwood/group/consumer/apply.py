"""How each kind of record changes a consumer group, and the groups of a shard."""

from collections.abc import Callable, Mapping
from typing import Any

from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData
from cordwood.group.state import GroupState
from cordwood.group.stored import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from cordwood.group.tables import Apply

from .group import FIRST_EPOCH, ConsumerGroup, Resolved
from .member import LEFT, Current, Description
from .records import target_of

EPOCH_MAX = (1 << 31) - 1


def _epoch(group: ConsumerGroup, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        if value.epoch >= EPOCH_MAX:
            raise CorruptData(f"no group gets to epoch {value.epoch}")
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _description(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    group.describe(key.member_id, None if value is None else Description.of_record(value))


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is not None:
        group.hold(key.member_id, Current.of_record(value))
    elif key.member_id in group.members:
        group.hold(key.member_id, Current(epoch=LEFT, previous_epoch=LEFT))


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    group.aim(key.member_id, None if value is None else target_of(value))


def _assignment_epoch(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp = 0 if value is None else value.assignment_timestamp


def _pattern(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    resolved = None if value is None else Resolved(frozenset(value.topics), value.timestamp)
    group.resolve(key.regular_expression, resolved)


_CHANGES: Mapping[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _epoch,
    ConsumerGroupMemberMetadataKey: _description,
    ConsumerGroupTargetAssignmentMetadataKey: _assignment_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupRegularExpressionKey: _pattern,
}


def change(group: ConsumerGroup, record: StateRecord) -> None:
    """Change a group as a record says; whether the group exists is not decided here."""
    _CHANGES[type(record.key)](group, record.key, record.value)


def _apply(state: GroupState, key: Any, value: object) -> None:  # noqa: ANN401 (any of six kinds of keys)
    """A group is created by the first record about it, and ends when the record of its epoch is deleted."""
    group = state.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = state.groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del state.groups[key.group_id]
    else:
        change(group, StateRecord(key, value))


APPLY: Apply = dict.fromkeys(_CHANGES, _apply)
