"""The consumer group protocol (KIP-848): the broker assigns, members follow step by step, nobody stops."""

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.group.tables import Apply, Expired
from cordwood.ports import Instant

APPLY: Apply = {}
EXPIRED: Expired = {}


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Set the deadlines of what was found."""
    return Outcome()
