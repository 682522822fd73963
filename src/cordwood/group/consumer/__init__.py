"""The consumer group protocol (KIP-848): the broker assigns, members follow step by step, nobody stops."""

from collections.abc import Sequence

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.group.tables import Apply, Expired
from cordwood.ids import TopicName
from cordwood.ports import Instant

APPLY: Apply = {}
EXPIRED: Expired = {}


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Set the deadlines of what was found."""
    return Outcome()


def topics_changed(state: GroupState, names: Sequence[TopicName], now: Instant) -> Outcome:
    """Groups that are subscribed to one of these topics look again."""
    return Outcome()
