"""Committing, fetching, deleting and forgetting offsets; listing and deleting groups."""

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.group.tables import Apply, Expired
from cordwood.ports import Instant

APPLY: Apply = {}
EXPIRED: Expired = {}


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Set the deadlines of what was found."""
    return Outcome()
