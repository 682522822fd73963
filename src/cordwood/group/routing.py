"""Requests of the classic protocol, for whichever kind of group they are meant.

A group of the consumer protocol may have members that still speak the classic one (KIP-848's online migration). If it
has no members at all, the next one that joins decides what the group is.
"""

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error, Refused
from cordwood.group import classic, consumer
from cordwood.group.consumer import ConsumerGroup
from cordwood.group.state import GroupState
from cordwood.ports import Instant
from cordwood.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)


def join(state: GroupState, request: JoinGroupRequest, caller: Caller, now: Instant) -> Outcome:
    group = _named(state, request.group_id)
    if not isinstance(group, ConsumerGroup):
        return classic.join(state, request, caller, now)
    if not group.is_empty:
        return consumer.classic_join(state, request, caller, now)
    outcome = classic.join(state, request, caller, now)
    if state.groups[group.id] is not group:  # otherwise the join was refused
        outcome.records[:0] = group.tombstones()
    return outcome


def sync(state: GroupState, request: SyncGroupRequest, caller: Caller, now: Instant) -> Outcome:
    part = consumer.classic_sync if isinstance(_named(state, request.group_id), ConsumerGroup) else classic.sync
    return part(state, request, caller, now)


def heartbeat(state: GroupState, request: HeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    is_consumer = isinstance(_named(state, request.group_id), ConsumerGroup)
    return (consumer.classic_heartbeat if is_consumer else classic.heartbeat)(state, request, caller, now)


def leave(state: GroupState, request: LeaveGroupRequest, caller: Caller, now: Instant) -> Outcome:
    part = consumer.classic_leave if isinstance(_named(state, request.group_id), ConsumerGroup) else classic.leave
    return part(state, request, caller, now)


def _named(state: GroupState, group_id: str) -> object:
    if not group_id:
        raise Refused(Error.INVALID_GROUP_ID, "A group has a name of at least one character.")
    return state.groups.get(group_id)
