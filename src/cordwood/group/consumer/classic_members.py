"""SyncGroup, Heartbeat and LeaveGroup of members of a consumer group that speak the classic protocol.

Such a member takes the same steps as the others, but learns of them in a different way. At each heartbeat it is told to
rejoin if there is a step to take. It says what it has when it joins (``classic_joining``), and is given its partitions
when it syncs: giving up partitions takes one round of both, and getting others another.
"""

from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.group.timers import ClassicJoin, ClassicSync
from cordwood.ports import Instant
from cordwood.wire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
    SyncGroupRequest,
    SyncGroupResponse,
)

from .embedded import encode_assignment, spoken_version
from .group import PROTOCOL_TYPE, ConsumerGroup
from .joining import checked_static
from .leaving import remove
from .loading import set_session_deadline
from .member import Member, MemberState
from .target import is_due

PROTOCOL_NAMED_FROM_VERSION = 5
SEVERAL_LEAVE_FROM_VERSION = 3


# ---------------------------------------------------------------------- SyncGroup


def classic_sync(state: GroupState, request: SyncGroupRequest, caller: Caller, now: Instant) -> Outcome:
    group = _group(state, request.group_id)
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    _check_protocol(member, request, caller)
    if group.assignment_epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(state, group, member, now)
        raise Refused(Error.REBALANCE_IN_PROGRESS)
    state.deadlines.cancel(ClassicSync(group.id, member.id))
    set_session_deadline(state, group.id, member, now)
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(member.current.assigned, state.image, spoken_version([_protocol(member)[1]])),
    )
    return answer(caller, response)


def _check_protocol(member: Member, request: SyncGroupRequest, caller: Caller) -> None:
    given = (request.protocol_type, request.protocol_name)
    if caller.api_version >= PROTOCOL_NAMED_FROM_VERSION and None in given:
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    for text, ours in zip(given, (PROTOCOL_TYPE, _protocol(member)[0]), strict=True):
        if text not in (None, ours):
            raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL, f"The member joined with {ours}, not {text}.")


def _protocol(member: Member) -> tuple[str, bytes]:
    """The member's preferred protocol is as good as any: the broker assigns."""
    assert member.description.classic is not None
    first = member.description.classic.supported_protocols[0]
    return first.name, first.metadata


# ---------------------------------------------------------------------- Heartbeat


def classic_heartbeat(state: GroupState, request: HeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    group = _group(state, request.group_id)
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    set_session_deadline(state, group.id, member, now)
    if not _has_step_to_take(group, member) and not _must_assign(state, group, now):
        state.deadlines.cancel(ClassicJoin(group.id, member.id))
        return answer(caller, HeartbeatResponse())
    _expect_join(state, group, member, now)
    return answer(caller, HeartbeatResponse(error_code=Error.REBALANCE_IN_PROGRESS))


def _has_step_to_take(group: ConsumerGroup, member: Member) -> bool:
    if member.current.epoch < group.assignment_epoch:
        return True
    match member.current.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits_for_others(group, member)
        case _:
            return False


def _must_assign(state: GroupState, group: ConsumerGroup, now: Instant) -> bool:
    """Does something have to be reassigned that no other member will take care of?

    Members of the consumer protocol do that, at their heartbeats. If there are none, it is because the policy does not
    let the group go back to the classic protocol.
    """
    if group.subscriptions.classic_members < len(group.members):
        return False
    interval_ms = state.settings_of(group.id).consumer_assignment_interval_ms
    return group.topics_changed or is_due(group, interval_ms, now.wall_ms)


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Does another member have something that this one should have and does not?"""
    return any(
        group.owners.of(topic_id, partition) not in (None, member.id)
        for topic_id, partitions in group.target(member.id).items()
        for partition in partitions
    )


def _expect_join(state: GroupState, group: ConsumerGroup, member: Member, now: Instant) -> None:
    """The time for rejoining starts when the member is told to do so for the first time."""
    key = ClassicJoin(group.id, member.id)
    if key not in state.deadlines:
        state.deadlines.set(key, now.mono_ms + member.description.rebalance_timeout_ms)


# ---------------------------------------------------------------------- LeaveGroup


def classic_leave(state: GroupState, request: LeaveGroupRequest, caller: Caller, now: Instant) -> Outcome:
    """Members of either protocol can be named here; for static ones, the instance id alone is enough."""
    group = _group(state, request.group_id)
    several = caller.api_version >= SEVERAL_LEAVE_FROM_VERSION
    named = request.members if several else [LeaveGroupRequestMember(member_id=request.member_id)]
    leaving: dict[str, Member] = {}
    errors = []
    for each in named:
        try:
            member = _leaver(group, each)
        except Refused as refusal:
            errors.append(refusal.error)
        else:
            leaving[member.id] = member
            errors.append(Error.NONE)
    response = _left(named, errors) if several else LeaveGroupResponse(error_code=errors[0])
    if not leaving:
        return answer(caller, response)
    return remove(state, group, list(leaving.values()), now, (caller, response))


def _leaver(group: ConsumerGroup, named: LeaveGroupRequestMember) -> Member:
    if named.group_instance_id is None:
        return group.member(named.member_id)
    holder = group.static_member(named.group_instance_id)
    if holder is not None and not named.member_id:
        return holder
    return checked_static(group, named.member_id, named.group_instance_id)


def _left(named: list[LeaveGroupRequestMember], errors: list[Error]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponseMember(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error
            )
            for each, error in zip(named, errors, strict=True)
        ]
    )


# ---------------------------------------------------------------------- identity of members


def _group(state: GroupState, group_id: str) -> ConsumerGroup:
    group = state.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> Member:
    member = group.member(member_id) if instance_id is None else checked_static(group, member_id, instance_id)
    if not member.is_classic:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} speaks the consumer protocol.")
    if generation != member.current.epoch:
        raise Refused(Error.ILLEGAL_GENERATION, f"The member is at epoch {member.current.epoch}, not {generation}.")
    return member
