"""OffsetDelete (47), version 0: delete offsets of topics that a group is not subscribed to. DeleteGroups: all of it."""

from collections.abc import Iterator

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.groups import Group
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.ids import TopicName
from cordwood.ports import Instant
from cordwood.wire.messages import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from .pending import has_pending


def delete(state: GroupState, request: OffsetDeleteRequest, caller: Caller, now: Instant) -> Outcome:
    if not request.group_id:
        raise Refused(Error.INVALID_GROUP_ID)
    group = _group(state, request.group_id)
    group.check_offset_delete()
    response, keys = OffsetDeleteResponse(), dict[OffsetCommitKey, None]()
    for topic in request.topics:
        answered = OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answered)
        for index, error in _look_at(state, group, topic):
            answered.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
            if not error and _is_there(state, request.group_id, topic.name, index):
                keys[OffsetCommitKey(request.group_id, topic.name, index)] = None
    return Outcome([StateRecord(key, None) for key in keys], [(caller, response)], splits=True)


def _look_at(state: GroupState, group: Group, topic: OffsetDeleteRequestTopic) -> Iterator[tuple[int, Error]]:
    """The result for each partition of a topic."""
    info = state.image.topics.get(TopicName(topic.name))
    count = len(info.partitions) if info is not None else 0
    known = Error.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else Error.NONE
    for partition in topic.partitions:
        index = partition.partition_index
        yield index, known if 0 <= index < count else Error.UNKNOWN_TOPIC_OR_PARTITION


def _is_there(state: GroupState, group_id: str, topic: str, index: int) -> bool:
    return state.offsets.get(group_id, topic, index) is not None or has_pending(state, group_id, topic, index)


def delete_group(state: GroupState, group_id: str) -> list[StateRecord]:
    """The records that delete a group with all of its offsets.

    Raises:
        Refused: there is no such group, or it has members.
    """
    group = _group(state, group_id)
    group.check_delete()
    return [*offset_tombstones(state, group_id), *group.tombstones()]


def offset_tombstones(state: GroupState, group_id: str) -> list[StateRecord]:
    return [
        StateRecord(OffsetCommitKey(group_id, topic, partition), None)
        for topic, partitions in state.offsets.topics(group_id).items()
        for partition in partitions
    ]


def _group(state: GroupState, group_id: str) -> Group:
    group = state.groups.get(group_id)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return group
