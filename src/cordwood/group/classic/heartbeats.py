"""Heartbeat: a member says that it is alive, and is told whether it should rejoin. Silent members are dropped."""

from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.group.timers import ClassicSession, PendingMember
from cordwood.ports import Instant
from cordwood.wire.messages import HeartbeatRequest, HeartbeatResponse

from .group import ClassicGroup
from .rebalance import complete_or_rest, rebalance_or_complete
from .states import State
from .turn import Turn


def heartbeat(state: GroupState, request: HeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    try:
        error = _heartbeat(state, request, now)
    except Refused as refusal:
        error = refusal.error
    return answer(caller, HeartbeatResponse(error_code=error))


def _heartbeat(state: GroupState, request: HeartbeatRequest, now: Instant) -> Error:
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    group = state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return Error.UNKNOWN_MEMBER_ID
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        return Error.ILLEGAL_GENERATION
    Turn(state, group, now).expect_life(member)
    return Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else Error.NONE


def session_over(state: GroupState, key: ClassicSession, now: Instant) -> Outcome:
    """A member has been silent. One that waits for our answer is excused: its phase has a deadline of its own."""
    group = state.groups.get(key.group_id)
    member = group.roster.members.get(key.member_id) if isinstance(group, ClassicGroup) else None
    if not isinstance(group, ClassicGroup) or member is None or member.waits:
        return Outcome()
    turn = Turn(state, group, now)
    turn.drop(member.id)
    if group.can_rebalance:
        rebalance_or_complete(turn, f"{member.id} was not heard of")
    elif group.all_joined:
        complete_or_rest(turn)
    return turn.outcome


def pending_over(state: GroupState, key: PendingMember, now: Instant) -> Outcome:
    """An id that was given out has not been used to join in time."""
    group = state.groups.get(key.group_id)
    if not isinstance(group, ClassicGroup) or key.member_id not in group.pending:
        return Outcome()
    turn = Turn(state, group, now)
    turn.drop_pending(key.member_id)
    if group.state is State.PREPARING and group.all_joined:
        complete_or_rest(turn)
    return turn.outcome
