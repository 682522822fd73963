"""Changes whose answer was lost, and what became of them.

The record that a change leaves in the feed carries a mark of its maker's. When the connection is back, the feed says
whether the change was done; until then, or for so long as anybody has patience, nothing is said of it.
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
"""So long nothing is said of a change whose answer was lost. No client's patience lasts longer."""

Decisions = dict["InDoubt", StorageError | None]
"""What to say of each; None is that it was done."""


class InDoubt(PerhapsDone):
    """A change whose answer was lost, and how to find out."""

    def __init__(self, error: StorageError, mark: str, *, after: int, client: ZooKeeperClient, torn: bool) -> None:
        """
        Args:
            mark: what its record in the feed carries.
            after: the last change before it that was seen.
            client: whose session it was sent in.
            torn: was something deleted for it beforehand?
        """
        super().__init__(f"{error}; whether the metadata was changed is not known yet")
        self.mark = mark
        self.after = after
        self.client = client
        self.torn = torn
        self.until_s = time.monotonic() + DOUBT_S_MAX


class Doubts:
    """All changes in doubt, with those who wait for the outcome."""

    def __init__(self) -> None:
        self._waiting: list[tuple[InDoubt, Future[Any]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def due_s(self) -> float:
        """When the first of them is given up."""
        return min((doubt.until_s for doubt, _ in self._waiting), default=float("inf"))

    def add(self, doubt: InDoubt, answer: "Future[Any]") -> None:
        self._waiting.append((doubt, answer))

    def decide(self, client: ZooKeeperClient, numbers: Sequence[int]) -> Decisions:
        """What to say of them. *numbers*: of all changes in the feed, seen after something was written with *client*.

        That must come first: an answer of a server that lags behind would be older than the change. In the same session
        nothing of what was sent before can happen afterwards.
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
        """ZooKeeper stays away: whoever has waited for so long is told what is known."""
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
