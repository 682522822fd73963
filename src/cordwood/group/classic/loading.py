"""How records become groups, and what happens to groups when their shard starts and stops serving."""

from cordwood.coordinator.outcome import Outcome
from cordwood.errors import Error
from cordwood.group.state import GroupState
from cordwood.group.stored import GroupMetadataKey, GroupMetadataValue
from cordwood.ports import Instant

from .group import ClassicGroup
from .rebalance import prepare
from .turn import Turn


def apply_metadata(state: GroupState, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """A group's own proposal confirms it; any other record replaces it; a record without a value removes it."""
    group = state.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            del state.groups[key.group]
    elif isinstance(group, ClassicGroup) and group.proposed is value:
        group.confirm()
    else:
        state.groups[key.group] = ClassicGroup.from_stored(key.group, value)


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Members get a full session timeout to be heard of. Groups that have become too large must rebalance."""
    size_max = state.config.group_max_size
    for group in state.groups.values():
        if isinstance(group, ClassicGroup) and group.roster.members:
            turn = Turn(state, group, now)
            start_sessions(turn)
            if len(group.roster) > size_max:
                prepare(turn, f"it has more members than {size_max}")
    return Outcome()


def start_sessions(turn: Turn) -> None:
    for member in turn.group.roster.members.values():
        turn.expect_life(member)


def unloaded(state: GroupState) -> Outcome:
    """The shard is over: callers that wait here must ask elsewhere."""
    outcome = Outcome()
    for group in state.groups.values():
        if isinstance(group, ClassicGroup):
            turn = Turn(state, group, Instant(0, 0), outcome)
            turn.release(Error.NOT_COORDINATOR)
    return outcome
