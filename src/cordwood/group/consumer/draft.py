"""A group as it will be when the records that a handler writes are applied.

A handler decides step by step, and each step rests on those before it. None of them has happened yet, and none will if
the records can not be written: so they happen to a copy.
"""

from collections.abc import Iterable

from cordwood.coordinator.outcome import Caller, Outcome, StateRecord
from cordwood.errors import Refused
from cordwood.group.classic.creation import write_failure

from .apply import change
from .group import ConsumerGroup


class Draft:
    """A group to read, records for it, and answers to those who wait. *before* are records that make way for it."""

    __slots__ = ("_looked", "group", "is_unsettled", "original", "records", "replies")

    def __init__(self, original: ConsumerGroup, before: Iterable[StateRecord] = ()) -> None:
        self.original = original
        self.group = original
        self.records = list(before)
        self.replies: list[tuple[Caller, object]] = []
        self.is_unsettled = False
        """What its members have is not what anybody shared out: that has to be done, whatever else is new."""
        self._looked = False

    def write(self, *records: StateRecord) -> None:
        if self.group is self.original:
            self.group = self.original.copy()
        for record in records:
            change(self.group, record)
        self.records += records

    def looked_at_topics(self) -> None:
        self.original.topics_changed = False
        self._looked = True

    def looks_for_topics(self, patterns: Iterable[str]) -> None:
        """All patterns are looked at, one after another, in this heartbeat and the next ones."""
        self.original.new_topics = False
        self.original.patterns_to_refresh[:] = patterns

    def next_patterns(self, count: int) -> list[str]:
        self._looked = True
        waiting = self.original.patterns_to_refresh
        return [waiting.pop() for _ in range(min(count, len(waiting)))]

    def outcome(self, *replies: tuple[Caller, object]) -> Outcome:
        outcome = Outcome(self.records, [*self.replies, *replies])
        outcome.failed = lambda refusal: self._undo(outcome, write_failure(refusal))
        return outcome

    def _undo(self, outcome: Outcome, refusal: Refused) -> None:
        """Should something have been seen in the metadata, it is not in the group: look again."""
        self.original.topics_changed |= self._looked
        self.original.new_topics |= self._looked
        if self._looked:
            self.original.patterns_to_refresh.clear()
        for caller, _ in outcome.replies:
            caller.refuse(refusal)
