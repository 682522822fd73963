"""ConsumerGroupDescribe: a group with its members, and what each of them has and should have."""

from collections.abc import Collection, Mapping
from uuid import UUID

from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.ids import TopicId
from cordwood.wire.messages import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopic,
)

from .group import ConsumerGroup
from .member import Current, Member

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe(state: GroupState, group_id: str) -> ConsumerGroupDescribeResponseGroup:
    """Raises ``Refused`` if there is no such group, or one of the classic protocol."""
    group = state.groups.get(group_id)
    if group is None:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"There is no group {group_id}.")
    if not isinstance(group, ConsumerGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return ConsumerGroupDescribeResponseGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.subscriptions.preferred_assignor(state.config.group_consumer_assignors),
        members=[_member(state, group, member) for member in group.members.values()],
    )


def _member(state: GroupState, group: ConsumerGroup, member: Member) -> ConsumerGroupDescribeResponseMember:
    description = member.description
    return ConsumerGroupDescribeResponseMember(
        member_id=member.id,
        instance_id=description.instance_id,
        rack_id=description.rack_id,
        member_epoch=member.current.epoch,
        client_id=description.client_id,
        client_host=description.client_host,
        subscribed_topic_names=sorted(description.topics),
        subscribed_topic_regex=description.pattern,
        assignment=_assignment(state, _all_held(member.current)),
        target_assignment=_assignment(state, group.target(member.id)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _all_held(current: Current) -> Mapping[UUID, Collection[int]]:
    """What a member was told to give up is its own until it has done so."""
    topics = {*current.assigned, *current.revoking}
    return {each: {*current.assigned.get(each, ()), *current.revoking.get(each, ())} for each in topics}


def _assignment(
    state: GroupState, partitions: Mapping[UUID, Collection[int]]
) -> ConsumerGroupDescribeResponseAssignment:
    """Topics that no longer exist have no name that could be given, and are left out."""
    names = state.image.topic_names
    named = sorted((names[TopicId(each)], each) for each in partitions if TopicId(each) in names)
    return ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[
            ConsumerGroupDescribeResponseTopic(topic_id=each, topic_name=name, partitions=sorted(partitions[each]))
            for name, each in named
        ]
    )
