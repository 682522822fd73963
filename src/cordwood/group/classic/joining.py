"""JoinGroup: how members join a group, and rejoin for each new generation.

A new dynamic member is given an id and must join again with it (KIP-394, version 4 and later; before that it is
admitted at once). A static member that joins without an id takes the place of the one that had its instance id
(``returning``). The differences from Kafka are in how state is dropped: a call that is superseded by another of the
same member is answered, a refused join does not leave an empty group behind, and the ids and metadata that are kept are
bounded.
"""

from functools import partial
from typing import Final

from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group.groups import Group
from cordwood.group.memory import GROUP_BYTES
from cordwood.group.state import GroupState
from cordwood.group.timers import PendingMember
from cordwood.ports import Instant
from cordwood.wire.messages import JoinGroupRequest

from .creation import create
from .group import ClassicGroup
from .joiner import Joiner
from .member import Member, member_bytes, protocols_bytes
from .rebalance import complete_if_all_joined, rebalance_or_complete
from .returning import return_as
from .states import State
from .turn import Turn, joined_answer, not_joined

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member's call is kept. It cannot send heartbeats yet, and its client may have given up."""

NAME_BYTES_MAX: Final = 1000
"""How much of a client's name goes into its member id, which must fit where strings of 32 kB do."""

PENDING_MAX: Final = 10_000
"""Ids that were given out and may still be used to join. The oldest are dropped first; their clients ask again."""

BATCHES_MAX: Final = 16
"""How many times the size of a batch the members of a group, with their metadata, may take: 16 MB by default.

The metadata for one protocol, and the assignments, must fit into a single batch anyway, or no generation can be
written.
"""


def join(state: GroupState, request: JoinGroupRequest, caller: Caller, now: Instant) -> Outcome:
    joiner = Joiner.of(request, caller)
    config = state.config
    if not request.group_id:
        return _refuse(joiner, Error.INVALID_GROUP_ID, joiner.member_id)
    if not config.group_min_session_timeout_ms <= joiner.session_timeout_ms <= config.group_max_session_timeout_ms:
        return _refuse(joiner, Error.INVALID_SESSION_TIMEOUT, joiner.member_id)
    found = state.groups.get(request.group_id)
    state.memory.admit(_growth_bytes(found, request.group_id, joiner), now)
    if isinstance(found, ClassicGroup):
        turn = Turn(state, found, now)
        _join(turn, joiner)
        return turn.outcome
    if found is not None and not found.is_empty:
        return _refuse(joiner, Error.INCONSISTENT_GROUP_PROTOCOL)
    if joiner.member_id:
        return _refuse(joiner, Error.UNKNOWN_MEMBER_ID, joiner.member_id)
    return _join_new_group(state, request.group_id, joiner, now)


def _growth_bytes(found: Group | None, group_id: str, joiner: Joiner) -> int:
    """How much more memory the groups would take."""
    member = found.roster.members.get(joiner.member_id) if isinstance(found, ClassicGroup) else None
    known_bytes = member.weight_bytes if member is not None else 0
    group_bytes = GROUP_BYTES + 4 * len(group_id) if found is None else 0
    joiner_bytes = member_bytes(joiner.caller.client_id, joiner.instance_id, joiner.protocols)
    return max(group_bytes + joiner_bytes - known_bytes, 0)


def _join_new_group(state: GroupState, group_id: str, joiner: Joiner, now: Instant) -> Outcome:
    group = ClassicGroup(group_id)
    if not group.supports(joiner.protocol_type, joiner.protocols):
        return _refuse(joiner, Error.INCONSISTENT_GROUP_PROTOCOL)
    return create(state, group, now, partial(_join_as, joiner))


def _join_as(joiner: Joiner, turn: Turn) -> None:
    _join(turn, joiner)


def _refuse(joiner: Joiner, error: Error, member_id: str = "") -> Outcome:
    return answer(joiner.caller, not_joined(joiner.caller, error, member_id))


def _join(turn: Turn, joiner: Joiner) -> None:
    group, member_id = turn.group, joiner.member_id
    if not _has_room(turn, joiner):
        turn.refuse_join(joiner.caller, Error.GROUP_MAX_SIZE_REACHED)
        _expel(turn, member_id)
    elif not group.supports(joiner.protocol_type, joiner.protocols):
        turn.refuse_join(joiner.caller, Error.INCONSISTENT_GROUP_PROTOCOL, member_id)
    elif not member_id:
        _join_anew(turn, joiner)
    elif member_id in group.pending:
        _join_pending(turn, joiner)
    else:
        _join_again(turn, joiner)


# ---------------------------------------------------------------------- room for members


def _has_room(turn: Turn, joiner: Joiner) -> bool:
    """A group that has become too large (the setting may have changed) shrinks as its members rejoin."""
    roster, size_max = turn.group.roster, turn.state.config.group_max_size
    member = roster.members.get(joiner.member_id)
    added_bytes = protocols_bytes(joiner.protocols) - (0 if member is None else protocols_bytes(member.protocols))
    if roster.weight_bytes + added_bytes > BATCHES_MAX * turn.state.batch_bytes_max:
        return False
    match turn.group.state:
        case State.PREPARING:
            return (member is not None and member.joining is not None) or roster.joining_count < size_max
        case State.COMPLETING | State.STABLE:
            return member is not None or len(roster) < size_max
    return True


def _expel(turn: Turn, member_id: str) -> None:
    """There is no room for this member, which may have been in the group until now. The others need not wait for it."""
    turn.drop_pending(member_id)
    if turn.group.state is State.PREPARING and member_id in turn.group.roster.members:
        turn.drop(member_id)
        complete_if_all_joined(turn)


# ---------------------------------------------------------------------- new members


def _join_anew(turn: Turn, joiner: Joiner) -> None:
    member_id = _new_member_id(turn.state, joiner)
    if joiner.instance_id is not None:
        known_id = turn.group.roster.static_member_id(joiner.instance_id)
        if known_id is not None:
            return_as(turn, joiner, turn.group.roster.members[known_id], member_id)
            return
    elif joiner.caller.api_version >= 4:
        _give_id(turn, joiner, member_id)
        return
    _add(turn, joiner, member_id)


def _new_member_id(state: GroupState, joiner: Joiner) -> str:
    """A unique id that begins with a name that people recognise."""
    ending = f"-{state.new_uuid()}"
    name = joiner.caller.client_id if joiner.instance_id is None else joiner.instance_id
    return name.encode()[:NAME_BYTES_MAX].decode(errors="ignore") + ending


def _give_id(turn: Turn, joiner: Joiner, member_id: str) -> None:
    pending = turn.group.pending
    pending[member_id] = None
    turn.state.deadlines.set(PendingMember(turn.group.id, member_id), turn.now.mono_ms + joiner.session_timeout_ms)
    turn.refuse_join(joiner.caller, Error.MEMBER_ID_REQUIRED, member_id)
    if len(pending) > PENDING_MAX:
        turn.drop_pending(next(iter(pending)))


def _join_pending(turn: Turn, joiner: Joiner) -> None:
    """A member joins with the id that it was given."""
    if joiner.instance_id is not None:
        # Static members need no id beforehand. Kafka refuses with this error as well.
        turn.refuse_join(joiner.caller, Error.UNKNOWN_SERVER_ERROR)
        return
    turn.drop_pending(joiner.member_id)
    _add(turn, joiner, joiner.member_id)


def _add(turn: Turn, joiner: Joiner, member_id: str) -> None:
    group = turn.group
    if not group.roster.members:
        group.protocol_type = joiner.protocol_type
    member = Member(
        id=member_id,
        instance_id=joiner.instance_id,
        client_id=joiner.caller.client_id,
        client_host=joiner.caller.client_host,
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
        session_timeout_ms=joiner.session_timeout_ms,
        protocols=joiner.protocols,
        is_new=True,
        joining=joiner.caller,
    )
    group.roster.add(member)
    if group.delay is not None:
        group.delay.has_grown = True
    turn.expect_life(member, NEW_MEMBER_TIMEOUT_MS)
    rebalance_or_complete(turn, f"{member_id} is new; it says: {joiner.reason}")


# ---------------------------------------------------------------------- members


def _join_again(turn: Turn, joiner: Joiner) -> None:
    group = turn.group
    try:
        member = group.check_member(joiner.member_id, joiner.instance_id)
    except Refused as refusal:
        turn.refuse_join(joiner.caller, refusal.error, joiner.member_id)
        return
    if group.state is State.PREPARING or _wants_change(group, member, joiner):
        _rejoin(turn, member, joiner)
    else:
        # It missed the answer to an earlier call, or has lost track: tell it the generation that it is in.
        turn.reply(joiner.caller, joined_answer(group, member.id, joiner.caller.api_version))


def _wants_change(group: ClassicGroup, member: Member, joiner: Joiner) -> bool:
    """A leader that rejoins a stable group wants to assign anew, for reasons of its own (such as new partitions)."""
    is_leader = member.id == group.roster.leader
    return (group.state is State.STABLE and is_leader) or not member.says(joiner.protocols)


def _rejoin(turn: Turn, member: Member, joiner: Joiner) -> None:
    roster = turn.group.roster
    roster.update(member, joiner.protocols, joiner.rebalance_timeout_ms, joiner.session_timeout_ms)
    turn.refuse_join(roster.park_join(member, joiner.caller), Error.REBALANCE_IN_PROGRESS, member.id)
    rebalance_or_complete(turn, f"{member.id} joins again; it says: {joiner.reason}")
