"""New partitions whose logs do not exist yet. A few are created at a time, so that nobody has to wait for thousands.

A log is a directory and several files, and takes a third of a millisecond to create. A single request can add ten
thousand partitions to the metadata at once. Until its log exists, a partition is not served, as if this broker had not
heard of it yet; the request that created the partitions is answered when all of them have their logs.
"""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from cordwood.ids import TopicName, TopicPartition

AT_ONCE: Final = 64
PAUSE_MS: Final = 1
"""The pause between two rounds, so that clients are served."""


class Additions:
    """Which partitions wait for their logs, and who waits for them."""

    __slots__ = ("_actions", "_allowed", "_waiting", "is_scheduled")

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, None] = {}
        self._actions: list[tuple[frozenset[TopicName], Callable[[], None]]] = []
        self._allowed = 0
        self.is_scheduled = False
        """Is the next round of additions scheduled?"""

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self) -> None:
        """Begin a round, in which a few may be added."""
        self._allowed = AT_ONCE

    def may_add(self, name: TopicPartition) -> bool:
        """May this one be added in this round? If not, it waits."""
        if self._allowed == 0:
            self._waiting[name] = None
            return False
        self._allowed -= 1
        self._waiting.pop(name, None)
        return True

    def take(self) -> list[TopicPartition]:
        """Take the next ones off the waiting list."""
        names = list(islice(self._waiting, AT_ONCE))
        for name in names:
            del self._waiting[name]
        return names

    def forget(self, topic: TopicName) -> bool:
        """A topic was deleted. Was any partition of it waiting?"""
        gone = [name for name in self._waiting if name.topic == topic]
        for name in gone:
            del self._waiting[name]
        return bool(gone)

    def when_added(self, topics: Collection[str], action: Callable[[], None]) -> None:
        """Run *action* once no partition of these topics is waiting: now, or after a later ``settle``."""
        self._actions.append((frozenset(map(TopicName, topics)), action))
        self.settle()

    def settle(self) -> None:
        """Run the actions whose partitions have all been added, or never will be."""
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
