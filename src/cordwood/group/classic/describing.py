"""DescribeGroups: a classic group with its members."""

from cordwood.errors import Error
from cordwood.group.state import GroupState
from cordwood.wire.messages import DescribeGroupsResponseGroup, DescribeGroupsResponseMember

from .group import ClassicGroup
from .member import Member
from .states import State


def describe(state: GroupState, group_id: str, api_version: int) -> DescribeGroupsResponseGroup:
    """A group that does not exist, or is not a classic one, is described as dead; version 6 also gives the error."""
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return _absent(group_id, api_version, is_other=group is not None)
    is_stable = group.state is State.STABLE
    return DescribeGroupsResponseGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol or "" if is_stable else "",
        members=[_member(member, group.protocol if is_stable else None) for member in group.roster.members.values()],
    )


def _absent(group_id: str, api_version: int, *, is_other: bool) -> DescribeGroupsResponseGroup:
    response = DescribeGroupsResponseGroup(group_id=group_id, group_state=State.DEAD.value)
    if api_version >= 6:
        response.error_code = Error.GROUP_ID_NOT_FOUND
        shown = f"Group {group_id[:200]}"
        response.error_message = f"{shown} is not a classic group." if is_other else f"{shown} not found."
    return response


def _member(member: Member, protocol: str | None) -> DescribeGroupsResponseMember:
    return DescribeGroupsResponseMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )
