"""SyncGroup: the leader of a generation hands over its assignments, and all members ask for theirs.

The assignments are written before any member is told of them. If they cannot be written, the generation is abandoned.
"""

from functools import partial
from typing import Final

from cordwood.coordinator.outcome import Caller, Gathers, Outcome, answer
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.group.timers import SyncPhase
from cordwood.ports import Instant
from cordwood.wire.messages import SyncGroupRequest, SyncGroupResponse

from .creation import write_failure
from .group import ClassicGroup
from .member import Member
from .rebalance import start_over
from .states import State
from .turn import Turn

# Looking up a member of an enumeration takes a while.
_STABLE: Final = State.STABLE
_COMPLETING: Final = State.COMPLETING
_BY_KEY: Final = Gathers.BY_KEY


def sync(state: GroupState, request: SyncGroupRequest, caller: Caller, now: Instant) -> Outcome:
    if caller.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return _refuse(caller, Error.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return _refuse(caller, Error.INVALID_GROUP_ID)
    group = state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return _refuse(caller, Error.UNKNOWN_MEMBER_ID)
    try:
        member = group.check_member(request.member_id, request.group_instance_id)
        _check_generation(group, request)
        return _sync(state, group, member, request, caller, now)
    except Refused as refusal:
        return _refuse(caller, refusal.error)


def _refuse(caller: Caller, error: Error) -> Outcome:
    return answer(caller, SyncGroupResponse(error_code=error))


def _sync(
    state: GroupState, group: ClassicGroup, member: Member, request: SyncGroupRequest, caller: Caller, now: Instant
) -> Outcome:
    if group.state is _STABLE:
        _has_asked(state, group, member)
        # Hundreds of members ask at the same time when a generation is assigned. Their answers are gathered and sent
        # together: reading all requests first and then writing all answers takes half as long as alternating.
        return Outcome([], [(caller, group.answers.synced(caller.api_version, member.assignment))], None, _BY_KEY)
    if group.state is not _COMPLETING:
        raise Refused(Error.REBALANCE_IN_PROGRESS)
    turn = Turn(state, group, now)
    _park(turn, member, caller)
    if member.id == group.roster.leader:
        _assign(turn, {given.member_id: given.assignment for given in request.assignments})
    return turn.outcome


def _check_generation(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if request.generation_id != group.generation:
        raise Refused(Error.ILLEGAL_GENERATION)
    is_other_type = request.protocol_type is not None and request.protocol_type != group.protocol_type
    if is_other_type or (request.protocol_name is not None and request.protocol_name != group.protocol):
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)


def _park(turn: Turn, member: Member, caller: Caller) -> None:
    if member.syncing is not None:  # superseded
        turn.reply(member.syncing, SyncGroupResponse(error_code=Error.REBALANCE_IN_PROGRESS))
    member.syncing = caller
    _has_asked(turn.state, turn.group, member)


def _has_asked(state: GroupState, group: ClassicGroup, member: Member) -> None:
    group.pending_sync.pop(member.id, None)
    if not group.pending_sync:
        state.deadlines.cancel(SyncPhase(group.id))


def _assign(turn: Turn, assignments: dict[str, bytes]) -> None:
    """Members that the leader left out get nothing to do; assignments for unknown members are ignored."""
    group = turn.group
    group.move(State.STABLE, turn.now)
    answers = group.answers
    for member in group.roster.members.values():
        member.assignment = assignments.get(member.id, b"")
        turn.state.memory.add(len(member.assignment))
        if member.syncing is not None:
            turn.reply(member.syncing, answers.synced(member.syncing.api_version, member.assignment))
            member.syncing = None
            turn.expect_life(member)
    record = group.propose()
    turn.outcome.records.append(record)
    turn.outcome.failed = partial(_undo, turn, record)


def _undo(turn: Turn, record: StateRecord, refusal: Refused) -> None:
    """No member has been told of the assignments, and none will be: all must rejoin."""
    group = turn.group
    waiting, turn.outcome = turn.outcome.replies, Outcome()
    if group.withdraw(record):
        for member in group.roster.members.values():
            member.assignment = b""
        start_over(turn, f"its assignments could not be written: {refusal}")
        assert not turn.outcome.records
        assert not turn.outcome.replies
    for caller, _ in waiting:
        caller.refuse(write_failure(refusal))
