"""The ways out of a consumer group: leaving, leaving for a while, and being silent or slow for too long."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.group.tables import Expired
from cordwood.group.timers import ClassicJoin, ClassicSync, RebalanceTimeout, SessionTimeout
from cordwood.ports import Instant
from cordwood.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

from .draft import Draft
from .group import ConsumerGroup
from .joining import checked_static
from .loading import cancel_deadlines, set_session_deadline
from .member import LEFT, LEFT_FOR_A_WHILE, Member, MemberState
from .migration import can_downgrade, downgrade
from .patterns import forget_unused
from .records import current_record, no_member_records
from .steps import next_epoch_if, set_rebalance_deadline

RETRY_MS = 500
"""When to retry the removal of a member that could not be written. Kafka waits as long."""

Failed = Callable[[Refused], None]
MemberTimer = SessionTimeout | RebalanceTimeout | ClassicJoin | ClassicSync


def leave(state: GroupState, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    """A heartbeat that says goodbye."""
    group = state.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"There is no consumer group {request.group_id}.")
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = checked_static(group, request.member_id, request.instance_id)
    epoch = LEFT_FOR_A_WHILE if request.member_epoch == LEFT_FOR_A_WHILE else LEFT
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    if epoch == LEFT_FOR_A_WHILE:
        return _leave_for_a_while(state, group, member).outcome((caller, response))
    return remove(state, group, [member], now, (caller, response))


def _leave_for_a_while(state: GroupState, group: ConsumerGroup, member: Member) -> Draft:
    """It keeps its partitions, and is removed like any other if it is not back before its session times out.

    The epochs since which it has had them mean nothing to its successor, whose epochs begin anew.
    """
    draft = Draft(group)
    kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.current.assigned.items()}
    away = replace(member.current, epoch=LEFT_FOR_A_WHILE, assigned=kept, revoking={})
    draft.write(current_record(group.id, member.id, away))
    state.deadlines.cancel(RebalanceTimeout(group.id, member.id))
    return draft


def remove(
    state: GroupState, group: ConsumerGroup, members: list[Member], now: Instant, *replies: tuple[Caller, object]
) -> Outcome:
    """Members are gone, voluntarily or not. What they had is free."""
    draft = Draft(group)
    for member in members:
        draft.write(*no_member_records(group.id, member.id))
    for pattern in sorted({member.description.pattern for member in members}):
        forget_unused(draft, pattern)
    if can_downgrade(state, draft.group.members.values()):
        return downgrade(state, draft, now, *replies, rebalance=True)
    next_epoch_if(draft, state, condition=True)
    for member in members:
        cancel_deadlines(state, group.id, member.id)
    outcome = draft.outcome(*replies)
    outcome.failed = partial(_stay, outcome.failed, state, group, members, now)
    return outcome


def _stay(
    failed: Failed | None,
    state: GroupState,
    group: ConsumerGroup,
    members: list[Member],
    now: Instant,
    refusal: Refused,
) -> None:
    """They could not be removed after all, and must send heartbeats again."""
    for member in members:
        set_session_deadline(state, group.id, member, now)
        set_rebalance_deadline(state, group.id, member, now)
    if failed is not None:
        failed(refusal)


def _timed_out(state: GroupState, key: MemberTimer, now: Instant) -> Outcome:
    """A member, which may be gone already, was silent or slow for too long."""
    group = state.groups.get(key.group_id)
    member = group.members.get(key.member_id) if isinstance(group, ConsumerGroup) else None
    if member is None:
        return Outcome()
    assert isinstance(group, ConsumerGroup)
    if not _is_meant(key, member):
        return Outcome()
    state.logger.info("group %.200r: member %.200r is removed: %s", group.id, member.id, _REASONS[type(key)])
    outcome = remove(state, group, [member], now)
    outcome.failed = partial(_try_again, outcome.failed, state, key, now)
    return outcome


def _try_again(failed: Failed | None, state: GroupState, key: MemberTimer, now: Instant, refusal: Refused) -> None:
    """The member's removal could not be written, and nothing else may ever notice that it is silent or slow."""
    if failed is not None:
        failed(refusal)
    state.deadlines.set(key, now.mono_ms + RETRY_MS)


def _is_meant(key: MemberTimer, member: Member) -> bool:
    """Deadlines mean nothing for members that have changed their protocol meanwhile, or done what they should."""
    match key:
        case RebalanceTimeout():
            return member.current.state is MemberState.UNREVOKED_PARTITIONS
        case ClassicJoin() | ClassicSync():
            return member.is_classic
        case _:
            return True


_REASONS = {
    SessionTimeout: "its session timed out",
    RebalanceTimeout: "it did not give up its partitions in time",
    ClassicJoin: "it did not join again in time",
    ClassicSync: "it did not ask for its assignment in time",
}

EXPIRED: Expired = {
    SessionTimeout: _timed_out,
    RebalanceTimeout: _timed_out,
    ClassicJoin: _timed_out,
    ClassicSync: _timed_out,
}
