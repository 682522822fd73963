"""What is not stored of consumer groups: deadlines, and marks that the topics' metadata has changed."""

from collections.abc import Iterable, Iterator

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.group.timers import ClassicJoin, ClassicSync, RebalanceTimeout, SessionTimeout
from cordwood.ids import TopicName
from cordwood.ports import Instant

from .group import ConsumerGroup
from .member import Member
from .steps import set_rebalance_deadline


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Members get their full timeouts again, and topics may have changed in the meantime."""
    for group in _consumer_groups(state):
        group.topics_changed = True
        group.new_topics = True
        start_deadlines(state, group, now)
    return Outcome()


def topics_changed(state: GroupState, names: Iterable[TopicName], now: Instant) -> Outcome:
    """Topics were created, got partitions, or were deleted. Each group looks at them at its next heartbeat."""
    changed = frozenset(names)
    created = any(name in state.image.topics for name in changed)
    for group in _consumer_groups(state):
        if created and group.subscriptions.patterns:
            group.new_topics = True
        if not (group.subscriptions.names.keys().isdisjoint(changed) and group.matched.keys().isdisjoint(changed)):
            group.topics_changed = True
    return Outcome()


def set_session_deadline(state: GroupState, group_id: str, member: Member, now: Instant) -> None:
    classic = member.description.classic
    own_ms = state.settings_of(group_id).consumer_session_timeout_ms
    timeout_ms = own_ms if classic is None else classic.session_timeout_ms
    state.deadlines.set(SessionTimeout(group_id, member.id), now.mono_ms + timeout_ms)


def start_deadlines(state: GroupState, group: ConsumerGroup, now: Instant) -> None:
    """All members get their full timeouts again."""
    for member in group.members.values():
        set_session_deadline(state, group.id, member, now)
        set_rebalance_deadline(state, group.id, member, now)


def cancel_deadlines(state: GroupState, group_id: str, member_id: str) -> None:
    for key in (SessionTimeout, RebalanceTimeout, ClassicJoin, ClassicSync):
        state.deadlines.cancel(key(group_id, member_id))


def _consumer_groups(state: GroupState) -> Iterator[ConsumerGroup]:
    return (group for group in state.groups.values() if isinstance(group, ConsumerGroup))
