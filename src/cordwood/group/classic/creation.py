"""How a group is created: it is put in its place at once, with a record, and removed if that cannot be written."""

from collections.abc import Callable

from cordwood.coordinator.outcome import Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.groups import Group
from cordwood.group.state import GroupState
from cordwood.ports import Instant

from .group import ClassicGroup
from .turn import Turn


def create(state: GroupState, group: ClassicGroup, now: Instant, begin: Callable[[Turn], None]) -> Outcome:
    """Create a group, and call *begin* on it. It may replace an empty group of the other protocol."""
    earlier = state.groups.get(group.id)
    state.groups[group.id] = group
    group.state_timestamp = now.wall_ms
    turn = Turn(state, group, now)
    begin(turn)
    record = group.propose_new(now)
    turn.outcome.records.append(record)
    turn.outcome.failed = lambda refusal: _undo(turn, record, earlier, write_failure(refusal))
    return turn.outcome


def _undo(turn: Turn, record: StateRecord, earlier: Group | None, refusal: Refused) -> None:
    group = turn.group
    if group.withdraw(record):
        turn.forget()
        turn.release(refusal.error)
        if earlier is None:
            del turn.state.groups[group.id]
        else:
            turn.state.groups[group.id] = earlier
    for caller, _ in turn.outcome.replies:
        caller.refuse(refusal)


def write_failure(refusal: Refused) -> Refused:
    """Why a group could not be written, as an error that members understand."""
    if refusal.error is Error.RECORD_LIST_TOO_LARGE:
        return Refused(Error.UNKNOWN_SERVER_ERROR, refusal.message)
    return refusal
