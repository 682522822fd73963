"""New partitions that still have no log: a few are made at a time, so that nobody waits for thousands.

A log is a directory and several files, a third of a millisecond. What the metadata says at once, one request can bring:
ten thousand of them. Until a partition has its log it is not served, like one that this broker has not heard of yet;
whoever asked for it is answered when all have theirs.
"""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from cordwood.ids import TopicName, TopicPartition

AT_ONCE: Final = 64
PAUSE_MS: Final = 1
"""Between some and the next: clients are heard."""


class Additions:
    """Which partitions wait for their logs, and who waits for them."""

    __slots__ = ("_actions", "_allowed", "_waiting", "is_scheduled")

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, None] = {}
        self._actions: list[tuple[frozenset[TopicName], Callable[[], None]]] = []
        self._allowed = 0
        self.is_scheduled = False
        """Will somebody come for the next ones?"""

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self) -> None:
        """A turn in which some may be added."""
        self._allowed = AT_ONCE

    def may_add(self, name: TopicPartition) -> bool:
        """Is it this one's turn? If not, it waits."""
        if self._allowed == 0:
            self._waiting[name] = None
            return False
        self._allowed -= 1
        self._waiting.pop(name, None)
        return True

    def take(self) -> list[TopicPartition]:
        """The next ones, which wait no more."""
        names = list(islice(self._waiting, AT_ONCE))
        for name in names:
            del self._waiting[name]
        return names

    def forget(self, topic: TopicName) -> bool:
        """A topic was deleted. Did any partition of it wait?"""
        gone = [name for name in self._waiting if name.topic == topic]
        for name in gone:
            del self._waiting[name]
        return bool(gone)

    def when_added(self, topics: Collection[str], action: Callable[[], None]) -> None:
        """Do something when no partition of these topics waits: now, or after a ``settle``."""
        self._actions.append((frozenset(map(TopicName, topics)), action))
        self.settle()

    def settle(self) -> None:
        """Do what waited for partitions that have come, or will not come any more."""
        if not self._actions:
            return
        lacking = {name.topic for name in self._waiting}
        actions, self._actions = self._actions, []
        for topics, action in actions:
            if topics.isdisjoint(lacking):
                action()
            else:
                self._actions.append((topics, action))

    def check(self) -> None:
        assert self.is_scheduled or not (self._waiting or self._actions), "nobody comes for what waits"
