"""OffsetFetch (9), versions 1-10: how far groups have read. See ``group/offsets/fetch``.

- 1: an error about the group is given for each partition; 2-7: once, for the only group; 8: for each group.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.each_group import ask_each
from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.group.state import GroupState
from cordwood.ids import NO_OFFSET
from cordwood.wire.messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseGroupPartition,
    OffsetFetchResponseGroupTopic,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8


def handle(broker: "Broker", call: Call, request: OffsetFetchRequest) -> None:
    version = call.api_version
    groups = _once(request.groups) if version >= MANY_GROUPS_SINCE else [_only_group(request)]

    def fetch(state: GroupState, caller: Caller, index: int) -> Outcome:
        found = offsets.fetch_group(state, groups[index], version, require_stable=request.require_stable)
        return answer(caller, found)

    def gathered(answers: list[object | Refused]) -> OffsetFetchResponse:
        return _response([_answered(*pair, version) for pair in zip(groups, answers, strict=True)], version)

    ask_each(broker, call, [group.group_id for group in groups], fetch, gathered)


def _once(groups: list[OffsetFetchRequestGroup]) -> list[OffsetFetchRequestGroup]:
    """Each group once, with all the topics that any of its entries asks for."""
    found: dict[str, OffsetFetchRequestGroup] = {}
    for group in groups:
        first = found.setdefault(group.group_id, group)
        if first is group:
            continue
        if first.topics is None or group.topics is None:
            first.topics = None
        else:
            first.topics += group.topics
    return list(found.values())


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestGroupTopic(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )


def _answered(group: OffsetFetchRequestGroup, found: object | Refused, version: int) -> OffsetFetchResponseGroup:
    if isinstance(found, OffsetFetchResponseGroup):
        return found
    assert isinstance(found, Refused)
    if found.error is Error.COORDINATOR_NOT_AVAILABLE:
        found = Refused(Error.NOT_COORDINATOR, found.message)  # old consumers do not know the other error here
    topics = [_refused(topic, found) for topic in group.topics or ()] if version < GROUP_ERROR_SINCE else []
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics, error_code=found.error)


def _refused(topic: OffsetFetchRequestGroupTopic, refusal: Refused) -> OffsetFetchResponseGroupTopic:
    return OffsetFetchResponseGroupTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponseGroupPartition(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=refusal.error
            )
            for index in topic.partition_indexes
        ],
    )


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name=topic.name, partitions=_plain(topic)) for topic in group.topics],
        error_code=group.error_code,
    )


def _plain(topic: OffsetFetchResponseGroupTopic) -> list[OffsetFetchResponsePartition]:
    return [
        OffsetFetchResponsePartition(
            partition_index=partition.partition_index,
            committed_offset=partition.committed_offset,
            committed_leader_epoch=partition.committed_leader_epoch,
            metadata=partition.metadata,
            error_code=partition.error_code,
        )
        for partition in topic.partitions
    ]
