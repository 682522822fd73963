"""From one generation to the next.

``prepare`` begins a rebalance, and ``complete_join`` ends its first phase: then all members that joined are told the
new generation, and the sync phase begins. Each phase has a deadline, so nobody waits for ever for a member that is
gone.
"""

from typing import Final

from cordwood.coordinator.outcome import Outcome
from cordwood.errors import Error
from cordwood.group.state import GroupState
from cordwood.group.timers import JoinPhase, SyncPhase
from cordwood.ports import Instant
from cordwood.wire.messages import SyncGroupResponse

from .group import ClassicGroup, InitialDelay
from .states import State
from .turn import Turn, joined_answer

REST_MS: Final = 500
"""For how long no other generation begins if assignments could not be written, however soon members rejoin."""

WAIT_MS_LEAST: Final = 1000
"""How soon to look again for a static member, whose own timeout may be zero or less."""


def rebalance_or_complete(turn: Turn, reason: str) -> None:
    """The group has changed: begin a rebalance, or see whether the current one now has everybody."""
    if turn.group.can_rebalance:
        prepare(turn, reason)
    else:
        complete_if_all_joined(turn)


def prepare(turn: Turn, reason: str) -> None:
    """Begin a rebalance. *reason* is for the log."""
    group = turn.group
    if group.state is State.COMPLETING:
        fail_syncs(turn, Error.REBALANCE_IN_PROGRESS)
    turn.end_sync_phase()
    group.move(State.PREPARING, turn.now)
    turn.state.logger.info(
        "group %.200r prepares a rebalance after generation %d: %.400r", group.id, group.generation, reason
    )
    if group.is_initial:
        _delay(turn)
    elif group.all_joined:
        complete_or_rest(turn)
    else:
        turn.wait_for_joins(group.roster.rebalance_timeout_ms)


def fail_syncs(turn: Turn, error: Error) -> None:
    """There will be no assignments for this generation: tell the members that wait for one."""
    for member in turn.group.roster.members.values():
        member.assignment = b""
        if member.syncing is not None:
            turn.reply(member.syncing, SyncGroupResponse(error_code=error))
            member.syncing = None
            turn.expect_life(member)


# ---------------------------------------------------------------------- joining


def _delay(turn: Turn) -> None:
    """More members are probably on their way to a new group; otherwise each arrival would start a rebalance."""
    delay_ms = turn.state.config.group_initial_rebalance_delay_ms
    left_ms = max(turn.group.roster.rebalance_timeout_ms - delay_ms, 0)
    turn.group.delay = InitialDelay(delay_ms, left_ms)
    turn.wait_for_joins(delay_ms)


def _delayed(turn: Turn, delay: InitialDelay) -> None:
    """The delay is over; another one begins if members have joined during it and there is time left."""
    if not delay.has_grown or not delay.left_ms:
        complete_join(turn)
        return
    delay_ms = min(turn.state.config.group_initial_rebalance_delay_ms, delay.left_ms)
    turn.group.delay = InitialDelay(delay_ms, max(delay.left_ms - delay.delay_ms, 0))
    turn.wait_for_joins(delay_ms)


def complete_if_all_joined(turn: Turn) -> None:
    """Complete the join phase if all have joined; but if the group was empty, not before the end of its delay."""
    group = turn.group
    if group.state is State.PREPARING and not group.is_initial and group.all_joined:
        complete_or_rest(turn)


def complete_or_rest(turn: Turn) -> None:
    """All have joined: go on, but not too soon after a generation that could not be written.

    If no members are left, nobody can rejoin too soon.
    """
    left_ms = turn.group.rests_until_ms - turn.now.mono_ms
    if left_ms > 0 and turn.group.roster.members:
        turn.wait_for_joins(left_ms)
    else:
        complete_join(turn)


def start_over(turn: Turn, reason: str) -> None:
    """The assignments of this generation could not be written: all members must rejoin.

    The next generation may fail as well, and clients differ in how long they wait before they rejoin.
    """
    turn.group.rests_until_ms = turn.now.mono_ms + REST_MS
    prepare(turn, reason)


def complete_join(turn: Turn) -> None:
    """Continue with the members that have joined. If there are none, wait until they do or their sessions time out."""
    group = turn.group
    group.delay = None
    turn.state.deadlines.cancel(JoinPhase(group.id))
    _drop_absent(turn)
    if group.roster.members and not group.roster.choose_leader():
        turn.wait_for_joins(max(group.roster.rebalance_timeout_ms, WAIT_MS_LEAST))
        return
    group.begin_generation(turn.now)
    if group.state is State.EMPTY:
        turn.state.logger.info("group %.200r is empty in generation %d", group.id, group.generation)
        turn.outcome.records.append(group.propose())
    else:
        _begin_sync_phase(turn)


def _drop_absent(turn: Turn) -> None:
    """Static members are awaited for as long as their sessions last."""
    members = turn.group.roster.members.values()
    for member_id in [member.id for member in members if member.joining is None and not member.is_static]:
        turn.drop(member_id)


def _begin_sync_phase(turn: Turn) -> None:
    group, roster = turn.group, turn.group.roster
    turn.state.logger.info(
        "group %.200r has %d members in generation %d", group.id, len(roster.members), group.generation
    )
    for member in roster.members.values():
        parked = roster.park_join(member, None)
        if parked is not None:
            turn.reply(parked, joined_answer(group, member.id, parked.api_version))
        turn.expect_life(member)
        member.is_new = False
        group.pending_sync[member.id] = None
    turn.wait_for_syncs(roster.rebalance_timeout_ms)


# ---------------------------------------------------------------------- deadlines


def join_phase_over(state: GroupState, key: JoinPhase, now: Instant) -> Outcome:
    group = state.groups.get(key.group_id)
    if not isinstance(group, ClassicGroup) or group.state is not State.PREPARING:
        return Outcome()
    turn = Turn(state, group, now)
    if group.delay is not None:
        _delayed(turn, group.delay)
    else:
        complete_join(turn)
    return turn.outcome


def sync_phase_over(state: GroupState, key: SyncPhase, now: Instant) -> Outcome:
    """Members that have not asked for their assignments in time are dropped."""
    group = state.groups.get(key.group_id)
    if not isinstance(group, ClassicGroup) or not group.pending_sync:
        return Outcome()
    turn = Turn(state, group, now)
    missing = list(group.pending_sync)
    for member_id in missing:
        turn.drop(member_id)
    prepare(turn, f"{len(missing)} members did not ask for their assignments")
    return turn.outcome
