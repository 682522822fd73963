"""The steps of a heartbeat that members of both protocols take: describing themselves, assigning, and reconciling."""

from functools import partial

from cordwood.errors import Error, Refused
from cordwood.group.memory import GROUP_BYTES
from cordwood.group.state import GroupState
from cordwood.group.timers import RebalanceTimeout
from cordwood.ports import Instant

from .draft import Draft
from .member import Description, Member, MemberState
from .patterns import change_pattern, is_refresh_due, refresh
from .reconcile import Goal, Owned, reconcile
from .records import description_record, epoch_record
from .subscriptions import NAMES_MAX
from .target import assign, is_due
from .topics import metadata_hash, topic_ids


def describe(draft: Draft, before: Member, description: Description, state: GroupState, now: Instant) -> bool:
    """Write what a member says about itself, and a new epoch of the group if that changes what is to be assigned.

    Returns whether the member has changed its subscription.
    """
    old = before.description
    if description is old and before.id in draft.group.members:
        _look_at_topics(draft, state, now, bump=draft.is_unsettled)
        return False
    if before.id not in draft.group.members or description != old:
        draft.write(description_record(draft.group.id, before.id, description))
        _check_names(draft)
    changed = description.topics != old.topics or description.pattern != old.pattern
    if description.pattern != old.pattern:
        change_pattern(draft, old.pattern, description.pattern, state.image, now.wall_ms)
    _look_at_topics(draft, state, now, bump=changed or draft.is_unsettled)
    return changed


def find_room(draft: Draft, member_id: str, state: GroupState, now: Instant) -> None:
    """Raises ``Refused`` if there is no memory for what a new member brings, or a known one says anew.

    Partitions given to members that have said nothing new are theirs in any case.
    """
    group_bytes = GROUP_BYTES + 4 * len(draft.group.id) if draft.was_empty else 0
    growth_bytes = group_bytes + draft.group.weight_bytes - draft.weight_bytes_before
    if growth_bytes <= 0:
        return
    if draft.describes(member_id):
        state.memory.admit(growth_bytes, now)
    else:
        state.memory.add(growth_bytes)


def _check_names(draft: Draft) -> None:
    if draft.group.subscriptions.name_count > NAMES_MAX:
        raise Refused(Error.INVALID_REQUEST, f"The group would subscribe to more than {NAMES_MAX} topics.")


def _look_at_topics(draft: Draft, state: GroupState, now: Instant, *, bump: bool) -> None:
    """Take in changes of the topics' metadata, if there may be any."""
    if is_refresh_due(draft.group, state.config.group_consumer_regex_refresh_interval_ms, now.wall_ms):
        bump |= refresh(draft, state.image, now.wall_ms)
    if bump or draft.marked.topics_changed:
        draft.looked_at_topics()
        next_epoch_if(draft, state, bump)


def next_epoch_if(draft: Draft, state: GroupState, condition: bool) -> None:
    """Begin the group's next epoch, if *condition* is true or the topics' metadata has changed."""
    group = draft.group
    new_hash = metadata_hash(state.image, group.topics)
    if condition or new_hash != group.metadata_hash:
        draft.write(epoch_record(group.id, group.epoch + 1, new_hash))


def assign_if_due(draft: Draft, state: GroupState, now: Instant) -> None:
    interval_ms = state.settings_of(draft.group.id).consumer_assignment_interval_ms
    if is_due(draft.group, interval_ms, now.wall_ms):
        assign(draft, state.image, state.config.group_consumer_assignors, now.wall_ms)


def advance(
    draft: Draft, member_id: str, state: GroupState, now: Instant, owned: Owned | None, *, subscription_changed: bool
) -> Member:
    """The member, after its next step towards its target."""
    group = draft.group
    member = group.members[member_id]
    if not subscription_changed and member.current.is_reconciled_to(group.assignment_epoch):
        return member
    subscribed = topic_ids(state.image, group.topics_of(member.description))
    goal = Goal(group.assignment_epoch, group.target(member_id), subscribed, subscription_changed)
    following = reconcile(member.current, goal, owned, group.owners.is_free)
    if following is member.current:
        return member
    must_give_up = MemberState.UNREVOKED_PARTITIONS
    if member.current.state is must_give_up or following.state is must_give_up:
        draft.when_decided(partial(_set_rebalance_deadline, state, draft, member_id, now))
    draft.write_current(member_id, following)
    return draft.group.members[member_id]


def _set_rebalance_deadline(state: GroupState, draft: Draft, member_id: str, now: Instant) -> None:
    set_rebalance_deadline(state, draft.group.id, draft.group.members[member_id], now)


def set_rebalance_deadline(state: GroupState, group_id: str, member: Member, now: Instant) -> None:
    """How long a member may take to give up partitions. Classic members have other deadlines for that."""
    key = RebalanceTimeout(group_id, member.id)
    if member.current.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
        state.deadlines.set(key, now.mono_ms + member.description.rebalance_timeout_ms)
    else:
        state.deadlines.cancel(key)
