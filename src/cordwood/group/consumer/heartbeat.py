"""ConsumerGroupHeartbeat, versions 0 and 1: joining, staying, leaving, and all that a member is told by its group.

Version 0: the broker gives a member its id. Version 1: the member chooses it, and may subscribe by regular expression.

Almost every heartbeat says "I am still here" and is answered with "nothing has changed": that path is short. Every
other one takes these steps, each depending on those before it (see ``draft``):

1. The member is found or created, or takes its predecessor's place. What it says about itself is written if it is new.
2. If that, or the topics' metadata, changes what is to be assigned, the group gets its next epoch.
3. If the group is ahead of its target assignment, and the last one is old enough, a new one is made.
4. The member takes its next step towards its target.
"""

from dataclasses import replace
from typing import Final

from cordwood.coordinator.outcome import Caller, Gathers, Outcome
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.group.timers import SessionTimeout
from cordwood.ports import Instant
from cordwood.wire.compiler import maker
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopic,
)

from . import migration
from .draft import Draft, DraftAhead
from .group import ConsumerGroup
from .joining import check_room, find_member, new_member_id
from .leaving import leave
from .member import JOINING, Description, Held, Member, MemberState, in_order
from .patterns import is_refresh_due
from .reconcile import Owned
from .request import check_request, is_full
from .steps import advance, assign_if_due, describe, find_room
from .target import is_due

_made_response: Final = maker(ConsumerGroupHeartbeatResponse)

WAITING_PART: Final = 10
"""How many times as often members that wait send heartbeats. In Kafka they wait as long as all others."""


def heartbeat(state: GroupState, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    """The outcome is gathered if the group exists already. Members that leave are handled by ``goodbye``."""
    decided = state.ahead.get(request.group_id)
    group = state.groups.get(request.group_id) if decided is None else decided.group
    if isinstance(group, ConsumerGroup):
        member = group.members.get(request.member_id)
        if (
            member is not None
            and _says_nothing_new(request, caller, member)
            and _has_no_news(state, group, member, now)
        ):
            replies: list[tuple[Caller, object]] = [(caller, _response(state, group, member, now))]
            return Outcome([], replies, None, None if decided is None else Gathers.AHEAD)
    check_request(request, caller.api_version, state.config.group_consumer_assignors)
    assert request.member_epoch >= JOINING
    draft = _open(state, request, now)
    try:
        return _heartbeat(draft, state, request, caller, now)
    except Refused:
        if isinstance(draft, DraftAhead):
            draft.abandon()
        raise


def goodbye(state: GroupState, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    """A heartbeat with an epoch below zero."""
    check_request(request, caller.api_version, state.config.group_consumer_assignors)
    return leave(state, request, caller, now)


def _says_nothing_new(request: ConsumerGroupHeartbeatRequest, caller: Caller, member: Member) -> bool:
    return request.member_epoch == member.current.epoch > JOINING and _describes_nothing_new(
        request, caller, member.description
    )


def _describes_nothing_new(request: ConsumerGroupHeartbeatRequest, caller: Caller, description: Description) -> bool:
    return (
        request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.instance_id == description.instance_id
        and (request.rack_id is None or request.rack_id == description.rack_id)
        and request.rebalance_timeout_ms in (-1, description.rebalance_timeout_ms)
        and caller.client_id == description.client_id
        and caller.client_host == description.client_host
        and description.classic is None
    )


def _has_no_news(state: GroupState, group: ConsumerGroup, member: Member, now: Instant) -> bool:
    return (
        not group.topics_changed
        and member.current.is_reconciled_to(group.assignment_epoch)
        and not is_due(group, state.settings_of(group.id).consumer_assignment_interval_ms, now.wall_ms)
        and not is_refresh_due(group, state.config.group_consumer_regex_refresh_interval_ms, now.wall_ms)
    )


def _heartbeat(
    draft: Draft, state: GroupState, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Instant
) -> Outcome:
    check_room(draft.group, request.member_id, state)
    member_id = request.member_id or new_member_id(state)
    before = find_member(draft, member_id, request)
    changed = describe(draft, before, _described(before.description, request, caller), state, now)
    assign_if_due(draft, state, now)
    member = advance(draft, member_id, state, now, _owned(request), subscription_changed=changed)
    find_room(draft, member_id, state, now)

    response = _response(state, draft.group, member, now)
    if request.member_epoch == JOINING or is_full(request) or member.current.assigned != before.current.assigned:
        response.assignment = _assignment(member.current.assigned)
    return draft.outcome((caller, response))


def _open(state: GroupState, request: ConsumerGroupHeartbeatRequest, now: Instant) -> Draft:
    """The group of a heartbeat, which is created with its first member."""
    group = state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return DraftAhead(state, group)
    if request.member_epoch != JOINING:
        raise Refused(Error.GROUP_ID_NOT_FOUND, f"There is no consumer group {request.group_id}.")
    return Draft(ConsumerGroup(request.group_id)) if group is None else migration.upgraded(state, group, now)


def _described(known: Description, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Description:
    if _describes_nothing_new(request, caller, known):
        return known
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    return replace(
        known,
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        topics=known.topics if names is None else frozenset(names),
        pattern=known.pattern if pattern is None else pattern,
        rebalance_timeout_ms=(
            known.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        server_assignor=known.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    topics = request.topic_partitions
    return None if topics is None else {topic.topic_id: topic.partitions for topic in topics}


def _response(state: GroupState, group: ConsumerGroup, member: Member, now: Instant) -> ConsumerGroupHeartbeatResponse:
    """A member that is answered is alive."""
    settings = state.settings_of(group.id)
    state.deadlines.set(SessionTimeout(group.id, member.id), now.mono_ms + settings.consumer_session_timeout_ms)
    return _made_response(
        member_id=member.id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=_interval_ms(group, member, settings.consumer_heartbeat_interval_ms),
    )


def _interval_ms(group: ConsumerGroup, member: Member, usual_ms: int) -> int:
    """A member that waits, for partitions of others or for the next assignment, asks again soon."""
    waits = member.current.state is MemberState.UNRELEASED_PARTITIONS or group.epoch > group.assignment_epoch
    return max(usual_ms // WAITING_PART, 1) if waits else usual_ms


def _assignment(held: Held) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopic(topic_id=topic_id, partitions=sorted(held[topic_id]))
            for topic_id in in_order(held)
        ]
    )
