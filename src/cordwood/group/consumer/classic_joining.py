"""JoinGroup of a member of a consumer group that speaks the classic protocol.

It is answered at once: nobody waits for anybody, and no member leads, since the broker assigns. The member says what it
has, and takes its next step; it learns of its new partitions when it syncs. Its member epoch is its generation.
"""

from dataclasses import replace

from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, ProtocolError, Refused
from cordwood.group.classic.joiner import Joiner
from cordwood.group.state import GroupState
from cordwood.group.timers import ClassicJoin, ClassicSync
from cordwood.ports import Instant
from cordwood.wire.messages import ConsumerProtocolSubscription, JoinGroupRequest, JoinGroupResponse

from .draft import Draft
from .embedded import by_id, decode_subscription
from .group import PROTOCOL_TYPE, ConsumerGroup
from .joining import check_room, checked_static, new_member_id, replace_member
from .loading import set_session_deadline
from .member import Description, Member
from .migration import DISABLED, can_downgrade, classic_metadata, downgrade
from .reconcile import Owned
from .steps import advance, assign_if_due, describe, find_room

COME_AGAIN_FROM_VERSION = 4
"""Since this version, a client that joins without a member id is given one and has to join again with it (KIP-394)."""


def classic_join(state: GroupState, request: JoinGroupRequest, caller: Caller, now: Instant) -> Outcome:
    group = state.groups[request.group_id]
    assert isinstance(group, ConsumerGroup)
    joiner = Joiner.of(request, caller)
    member_id = joiner.member_id or new_member_id(state)
    _check(state, group, member_id, joiner)
    if not joiner.member_id and joiner.instance_id is None and caller.api_version >= COME_AGAIN_FROM_VERSION:
        return answer(caller, _come_again(member_id, caller))

    subscription = _subscription(joiner)
    owned = by_id({each.topic: each.partitions for each in subscription.owned_partitions}, state.image)
    draft = Draft(group)
    holder = group.static_member(joiner.instance_id)
    before = _find(draft, holder, member_id, joiner)
    changed = describe(draft, before, _described(before.description, joiner, subscription), state, now)
    if holder is not None and not holder.is_classic and can_downgrade(state, draft.group.members.values()):
        return _join_and_downgrade(state, draft, member_id, owned, caller, now)
    assign_if_due(draft, state, now)
    member = advance(draft, member_id, state, now, owned, subscription_changed=changed)
    find_room(draft, member_id, state, now)
    _set_deadlines(state, group.id, member, now)
    return draft.outcome((caller, _joined(member)))


def _check(state: GroupState, group: ConsumerGroup, member_id: str, joiner: Joiner) -> None:
    config = state.config
    if not config.group_min_session_timeout_ms <= joiner.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise Refused(Error.INVALID_SESSION_TIMEOUT)
    if config.group_consumer_migration_policy == DISABLED:
        raise _inconsistent(f"Group {group.id} is a consumer group, and its protocol may not be changed.")
    check_room(group, member_id, state)
    known = group.subscriptions
    supported = any(known.classic_protocols.get(name, 0) == known.classic_members for name in joiner.protocols)
    if joiner.protocol_type != PROTOCOL_TYPE or not supported:
        raise _inconsistent("The group's other members do not know any of these protocols.")


def _come_again(member_id: str, caller: Caller) -> JoinGroupResponse:
    name = None if caller.api_version >= 7 else ""
    return JoinGroupResponse(error_code=Error.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=name)


def _subscription(joiner: Joiner) -> ConsumerProtocolSubscription:
    """Consumers send the same subscription with each of their protocols."""
    try:
        return decode_subscription(next(iter(joiner.protocols.values())))
    except ProtocolError as error:
        raise _inconsistent(f"What the member says makes no sense: {error}") from None


def _inconsistent(message: str) -> Refused:
    return Refused(Error.INCONSISTENT_GROUP_PROTOCOL, message)


def _find(draft: Draft, holder: Member | None, member_id: str, joiner: Joiner) -> Member:
    """*holder* is the member that has the joining one's instance id."""
    if joiner.instance_id is not None and joiner.member_id:
        return checked_static(draft.group, member_id, joiner.instance_id)
    if holder is not None:
        return replace_member(draft, holder, member_id)
    return draft.group.members.get(member_id) or Member(member_id)


def _described(known: Description, joiner: Joiner, subscription: ConsumerProtocolSubscription) -> Description:
    return replace(
        known,
        instance_id=known.instance_id if joiner.instance_id is None else joiner.instance_id,
        rack_id=subscription.rack_id or known.rack_id,
        client_id=joiner.caller.client_id,
        client_host=joiner.caller.client_host,
        topics=frozenset(subscription.topics),
        pattern="",
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
        classic=classic_metadata(joiner.session_timeout_ms, joiner.protocols),
    )


def _join_and_downgrade(
    state: GroupState, draft: Draft, member_id: str, owned: Owned, caller: Caller, now: Instant
) -> Outcome:
    """The joining member replaces the last one that spoke the consumer protocol.

    If it has the same subscription, and all members have what they should, nothing else changes.
    """
    if draft.group.assignment_epoch >= draft.group.epoch:
        advance(draft, member_id, state, now, owned, subscription_changed=False)
    member = draft.group.members[member_id]
    find_room(draft, member_id, state, now)
    rebalance = draft.group.state_name != "Stable"
    return downgrade(state, draft, now, (caller, _joined(member)), rebalance=rebalance)


def _set_deadlines(state: GroupState, group_id: str, member: Member, now: Instant) -> None:
    state.deadlines.cancel(ClassicJoin(group_id, member.id))
    state.deadlines.set(ClassicSync(group_id, member.id), now.mono_ms + member.description.rebalance_timeout_ms)
    set_session_deadline(state, group_id, member, now)


def _joined(member: Member) -> JoinGroupResponse:
    assert member.description.classic is not None
    return JoinGroupResponse(
        generation_id=member.current.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.description.classic.supported_protocols[0].name,
        member_id=member.id,
    )
