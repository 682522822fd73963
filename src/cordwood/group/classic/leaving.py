"""LeaveGroup: members leave on their own, or are removed by an administrator, by instance id.

Version 3 and later name several members, with an answer for each; earlier versions have one of each.
"""

from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.ports import Instant
from cordwood.wire.messages import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
)

from .group import ClassicGroup
from .rebalance import rebalance_or_complete
from .states import State
from .turn import Turn


def leave(state: GroupState, request: LeaveGroupRequest, caller: Caller, now: Instant) -> Outcome:
    if not request.group_id:
        return answer(caller, LeaveGroupResponse(error_code=Error.INVALID_GROUP_ID))
    leavers = _leavers(request, caller)
    group = state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return answer(caller, _response(leavers, [Error.UNKNOWN_MEMBER_ID] * len(leavers), caller))
    turn = Turn(state, group, now)
    errors = [_leave(turn, leaver) for leaver in leavers]
    if Error.NONE in errors and group.state is not State.EMPTY:
        rebalance_or_complete(turn, f"{errors.count(Error.NONE)} members left: {_reason(leavers)}")
    turn.reply(caller, _response(leavers, errors, caller))
    return turn.outcome


def _leavers(request: LeaveGroupRequest, caller: Caller) -> list[LeaveGroupRequestMember]:
    if caller.api_version >= 3:
        return request.members
    return [LeaveGroupRequestMember(member_id=request.member_id)]


def _reason(leavers: list[LeaveGroupRequestMember]) -> str:
    return next((leaver.reason for leaver in leavers if leaver.reason), "not provided")


def _leave(turn: Turn, leaver: LeaveGroupRequestMember) -> Error:
    group, member_id, instance_id = turn.group, leaver.member_id, leaver.group_instance_id
    if member_id in group.pending:
        turn.drop_pending(member_id)
        return Error.NONE
    if not member_id and instance_id is not None:
        member_id = group.roster.static_member_id(instance_id) or ""
    try:
        turn.drop(group.check_member(member_id, instance_id).id)
    except Refused as refusal:
        return refusal.error
    return Error.NONE


def _response(leavers: list[LeaveGroupRequestMember], errors: list[Error], caller: Caller) -> LeaveGroupResponse:
    if caller.api_version < 3:
        return LeaveGroupResponse(error_code=errors[0])
    members = [
        LeaveGroupResponseMember(
            member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=error
        )
        for leaver, error in zip(leavers, errors, strict=True)
    ]
    return LeaveGroupResponse(members=members)
