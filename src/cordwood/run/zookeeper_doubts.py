"""Changes whose answer was lost, and how to find out whether they were made.

The record that a change leaves in the feed carries a mark chosen by its maker. When the connection is back, the feed
shows whether the change was made; until then, or until patience runs out, its outcome is not reported.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

from cordwood.errors import PerhapsDone, StorageError, StoreAway
from cordwood.ports import MetadataChange

from .zookeeper_client import ZooKeeperClient
from .zookeeper_feed import change_path, mark_of, news

DOUBT_S_MAX: Final = 5.0
"""How long the outcome of a change whose answer was lost is held back. No client waits longer than that."""

Decisions = dict["InDoubt", StorageError | None]
"""What to report for each; None if it was done."""


class InDoubt(PerhapsDone):
    """A change whose answer was lost, and how to find out."""

    def __init__(self, error: StorageError, mark: str, *, after: int, client: ZooKeeperClient, torn: bool) -> None:
        """
        Args:
            mark: the mark in its record in the feed.
            after: the number of the last change seen before it.
            client: the client in whose session it was sent.
            torn: was something deleted for it in advance?
        """
        super().__init__(f"{error}; whether the metadata was changed is not known yet")
        self.mark = mark
        self.after = after
        self.client = client
        self.torn = torn
        self.until_s = time.monotonic() + DOUBT_S_MAX


class Doubts:
    """All changes in doubt, and the callers waiting for their outcome."""

    def __init__(self) -> None:
        self._waiting: list[tuple[InDoubt, Future[Any]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def due_s(self) -> float:
        """When to give up on the first of them."""
        return min((doubt.until_s for doubt, _ in self._waiting), default=float("inf"))

    def add(self, doubt: InDoubt, answer: "Future[Any]") -> None:
        self._waiting.append((doubt, answer))

    def decide(self, client: ZooKeeperClient, numbers: Sequence[int]) -> Decisions:
        """What to report for each. *numbers* are those of all changes in the feed, read after a write with *client*.

        The write must come first: a server that lags behind might answer with a state older than the change. And within
        a session, nothing sent before the write can happen after it.
        """
        return {doubt: _find(doubt, client, numbers) for doubt, _ in self._waiting}

    def tell(self, decided: Decisions) -> None:
        for doubt, answer in self._waiting:
            error = decided[doubt]
            if error is None:
                answer.set_result(MetadataChange([], []))
            else:
                answer.set_exception(error)
        self._waiting = []

    def give_up(self, now_s: float) -> None:
        """ZooKeeper has not come back: those who have waited long enough are told that the outcome is unknown."""
        for doubt, answer in self._waiting:
            if doubt.until_s <= now_s:
                answer.set_exception(doubt)
        self._waiting = [entry for entry in self._waiting if entry[0].until_s > now_s]


def _find(doubt: InDoubt, client: ZooKeeperClient, numbers: Sequence[int]) -> StorageError | None:
    since = news(numbers, doubt.after)
    if since is None:
        return doubt
    nodes = client.read([change_path(number) for number in since])
    if any(node is not None and mark_of(node.data) == doubt.mark for node in nodes):
        return None
    if None in nodes or doubt.torn or doubt.client is not client:
        return doubt
    return StoreAway("the connection to ZooKeeper was lost; nothing was changed")
