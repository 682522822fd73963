"""A group as it will be when the records that a handler writes are applied.

A handler decides step by step, and each step rests on those before it. None of them has happened yet, and none will if
the handler refuses after all, or the records can not be written: so they happen to a copy. What is not stored
(deadlines, marks, calls that wait) is seen to when all is decided.
"""

from collections.abc import Callable, Iterable

from cordwood.coordinator.outcome import Caller, Outcome, StateRecord
from cordwood.errors import Refused
from cordwood.group.classic.creation import write_failure

from .apply import change
from .group import ConsumerGroup


class Draft:
    """A group to read, records for it, and answers to those who wait. *before* are records that make way for it."""

    __slots__ = ("_looked", "_when_decided", "group", "is_unsettled", "original", "records", "replies")

    def __init__(self, original: ConsumerGroup, before: Iterable[StateRecord] = ()) -> None:
        self.original = original
        self.group = original
        self.records = list(before)
        self.replies: list[tuple[Caller, object]] = []
        self.is_unsettled = False
        """What its members have is not what anybody shared out: that has to be done, whatever else is new."""
        self._looked = False
        self._when_decided: list[Callable[[], None]] = []

    def write(self, *records: StateRecord) -> None:
        if self.group is self.original:
            self.group = self.original.copy()
        for record in records:
            change(self.group, record)
        self.records += records

    def when_decided(self, step: Callable[[], None]) -> None:
        """*step* is taken if nothing that follows is refused."""
        self._when_decided.append(step)

    def looked_at_topics(self) -> None:
        self._looked = True
        self.when_decided(self._forget_change)

    def _forget_change(self) -> None:
        self.original.topics_changed = False

    def next_patterns(self, count: int) -> list[str]:
        """All patterns are looked at, one after another, in this heartbeat and the next ones."""
        begun = self.original.patterns_to_refresh
        waiting = begun or list(self.group.subscriptions.patterns)
        cut = max(len(waiting) - count, 0)
        self._looked = True
        self.when_decided(lambda: self._remember_patterns(waiting[:cut], begun_now=not begun))
        return waiting[cut:]

    def _remember_patterns(self, waiting: list[str], *, begun_now: bool) -> None:
        self.original.patterns_to_refresh = waiting
        if begun_now:
            self.original.new_topics = False

    def outcome(self, *replies: tuple[Caller, object]) -> Outcome:
        for step in self._when_decided:
            step()
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
