"""Static members that come back (KIP-345): same instance id, new member id, without disturbing the rest of the group.

In a stable group whose protocol stays the same, the new member takes over the place and the assignment of the one it
replaces, and that is written. In all other states it joins the current rebalance, or starts one.
"""

from dataclasses import replace

from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.timers import ClassicSession
from cordwood.wire.messages import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

from .creation import write_failure
from .group import ClassicGroup
from .joiner import Joiner
from .member import Member
from .rebalance import complete_if_all_joined, prepare
from .states import State
from .turn import Turn


def return_as(turn: Turn, joiner: Joiner, member: Member, member_id: str) -> None:
    """*member* has the id *member_id* from now on. If its old self still waits for something, that is fenced."""
    group, before, led_by = turn.group, replace(member), turn.group.roster.leader
    _fence(turn, member)
    _rename(turn, member, member_id)
    group.roster.update(member, joiner.protocols, joiner.rebalance_timeout_ms, joiner.session_timeout_ms)
    turn.expect_life(member)
    if group.state is State.STABLE and group.roster.choose_protocol() == group.protocol:
        _keep_generation(turn, joiner, member, before, led_by or "")
        return
    group.roster.park_join(member, joiner.caller)
    if group.can_rebalance:
        prepare(turn, f"{member.instance_id} is back as {member_id}; it says: {joiner.reason}")
    else:
        complete_if_all_joined(turn)


def _fence(turn: Turn, member: Member) -> None:
    error = Error.FENCED_INSTANCE_ID
    turn.refuse_join(turn.group.roster.park_join(member, None), error, member.id)
    turn.reply(member.syncing, SyncGroupResponse(error_code=error))
    member.syncing = None


def _rename(turn: Turn, member: Member, member_id: str) -> None:
    group = turn.group
    turn.state.deadlines.cancel(ClassicSession(group.id, member.id))
    if member.id in group.pending_sync:
        del group.pending_sync[member.id]
        group.pending_sync[member_id] = None
    group.roster.rename(member, member_id)
    member.is_new = False


def _keep_generation(turn: Turn, joiner: Joiner, member: Member, before: Member, led_by: str) -> None:
    """The generation stays as it is. Only its record changes."""
    group = turn.group
    group.look_at_subscriptions()
    record = group.propose()
    turn.outcome.records.append(record)
    turn.outcome.failed = lambda refusal: _undo(turn, record, joiner, member, before, write_failure(refusal))
    response = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        member_id=member.id,
    )
    if joiner.caller.api_version >= 9:
        response.leader = group.roster.leader or ""
        response.skip_assignment = member.id == group.roster.leader
        response.members = _members(group) if response.skip_assignment else []
    else:
        # Old clients would assign now if told that they lead, which is no use to a stable group. So they are told that
        # their old id leads.
        response.leader = led_by
    turn.reply(joiner.caller, response)


def _members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.id, group_instance_id=member.instance_id, metadata=member.metadata(group.protocol)
        )
        for member in group.roster.members.values()
    ]


def _undo(turn: Turn, record: StateRecord, joiner: Joiner, member: Member, before: Member, refusal: Refused) -> None:
    group = turn.group
    if group.withdraw(record):
        _rename(turn, member, before.id)
        group.roster.update(member, before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
        group.look_at_subscriptions()
        turn.expect_life(member)
    joiner.caller.reply(
        JoinGroupResponse(
            error_code=refusal.error,
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.roster.leader or "",
        )
    )
