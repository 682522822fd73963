"""A group as it will be when the records that a handler writes are applied.

A handler decides step by step, and each step depends on those before it. None of them has taken effect yet, and none
will if the handler refuses in the end, or the records cannot be written: so they are applied to a copy. What is not
stored (deadlines, marks, waiting calls) is changed when everything is decided.

In a rebalance, all members report at once. So their heartbeats share a copy, which each of them finds as the one before
has left it (``DraftAhead``), until everything is written at the end of the turn and the copy replaces the group.
"""

from collections.abc import Callable, Iterable
from functools import partial

from cordwood.coordinator.outcome import Caller, Gathers, Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Refused
from cordwood.group.classic.creation import write_failure
from cordwood.group.groups import Decided
from cordwood.group.state import GroupState
from cordwood.group.stored import ConsumerGroupMemberMetadataKey

from .apply import change
from .group import ConsumerGroup
from .member import Current
from .records import current_record


class Draft:
    """A group to read, records for it, and answers to those who wait. *before* are records that make room for it."""

    __slots__ = (
        "_looked",
        "_when_decided",
        "group",
        "is_unsettled",
        "marked",
        "original",
        "records",
        "replies",
        "was_empty",
        "weight_bytes_before",
    )

    def __init__(self, original: ConsumerGroup, before: Iterable[StateRecord] = ()) -> None:
        self.original = original
        self.group = original
        self.marked = original
        """The group that has the marks."""
        self.was_empty = not original.members
        self.weight_bytes_before = original.weight_bytes
        self.records = list(before)
        self.replies: list[tuple[Caller, object]] = []
        self.is_unsettled = False
        """No assignor made the current distribution: there must be a new assignment, whatever else changes."""
        self._looked = False
        self._when_decided: list[Callable[[], None]] = []

    def write(self, *records: StateRecord) -> None:
        group = self._own_group()
        for record in records:
            change(group, record)
        self.records += records

    def write_current(self, member_id: str, current: Current) -> None:
        """Like ``write``, without decoding the record: in every rebalance there is one for every member."""
        group = self._own_group()
        self.records.append(current_record(group.id, member_id, current))
        group.hold(member_id, current)

    def _own_group(self) -> ConsumerGroup:
        if self.group is self.original:
            self.group = self.original.copy()
        return self.group

    def describes(self, member_id: str) -> bool:
        """Does this member say anything new about itself?"""
        keys = (record.key for record in self.records)
        return any(isinstance(key, ConsumerGroupMemberMetadataKey) and key.member_id == member_id for key in keys)

    def when_decided(self, step: Callable[[], None]) -> None:
        """Call *step* if nothing that follows is refused."""
        self._when_decided.append(step)

    def looked_at_topics(self) -> None:
        self._looked = True
        self.when_decided(self._forget_change)

    def _forget_change(self) -> None:
        self.marked.topics_changed = False

    def next_patterns(self, count: int) -> list[str]:
        """All patterns are looked at, one after another, in this heartbeat and the next ones."""
        begun = self.marked.patterns_to_refresh
        waiting = begun or list(self.group.subscriptions.patterns)
        cut = max(len(waiting) - count, 0)
        self._looked = True
        self.when_decided(partial(self._remember_patterns, waiting[:cut], begun_now=not begun))
        return waiting[cut:]

    def _remember_patterns(self, waiting: list[str], *, begun_now: bool) -> None:
        self.marked.patterns_to_refresh = waiting
        if begun_now:
            self.marked.new_topics = False

    def outcome(self, *replies: tuple[Caller, object]) -> Outcome:
        for step in self._when_decided:
            step()
        outcome = Outcome(self.records, [*self.replies, *replies])
        outcome.failed = partial(self._undo, outcome.replies)
        return outcome

    def _undo(self, replies: Iterable[tuple[Caller, object]], refusal: Refused) -> None:
        """If anything was seen in the metadata, it did not get into the group: look again."""
        self.original.topics_changed |= self._looked
        self.original.new_topics |= self._looked
        if self._looked:
            self.original.patterns_to_refresh.clear()
        _refuse_write(replies, refusal)


class DraftAhead(Draft):
    """One of several drafts, in one turn, of an existing group on one copy of it. The copy has the marks."""

    __slots__ = ("_state",)

    def __init__(self, state: GroupState, original: ConsumerGroup) -> None:
        decided = state.ahead.get(original.id)
        newest = original if decided is None else decided.group
        assert isinstance(newest, ConsumerGroup)
        super().__init__(newest)
        self._state = state
        self.original = original

    def _own_group(self) -> ConsumerGroup:
        if self.group is self.original:
            self.group = self.marked = self.original.copy()
            self._state.ahead[self.original.id] = Decided(self.group, [])
        return self.group

    def abandon(self) -> None:
        """The request was refused: if it has already changed the copy, make a new one from what was decided before."""
        if not self.records:
            return
        records = self._state.ahead.pop(self.original.id).records
        if records:
            group = self.original.copy()
            for record in records:
                change(group, record)
            group.take_marks(self.group)
            self._state.ahead[group.id] = Decided(group, records)

    def outcome(self, *replies: tuple[Caller, object]) -> Outcome:
        """If it cannot be written, the group stays as it was, including its marks."""
        for step in self._when_decided:
            step()
        decided = self._state.ahead.get(self.original.id)
        if decided is None:
            return Outcome([], list(replies))
        decided.records.extend(self.records)
        return Outcome(self.records, list(replies), partial(_refuse_write, replies), Gathers.AHEAD)


def _refuse_write(replies: Iterable[tuple[Caller, object]], refusal: Refused) -> None:
    for caller, _ in replies:
        caller.refuse(write_failure(refusal))
