"""Committing, fetching, deleting and forgetting offsets; listing and deleting groups."""

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


def topics_deleted(state: GroupState, names: Sequence[TopicName], now: Instant) -> Outcome:
    """Forget the offsets of topics that are no more."""
    return Outcome()
