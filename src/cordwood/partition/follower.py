"""Another replica of a partition, as the leader knows it: from its fetches, and from nothing else.

*Caught up* is a time, not a distance: the last moment at which the follower had all that the leader had then. A
follower whose every fetch asks for what came since its last one is caught up, though it never has the newest record.
"""

from typing import Final

from cordwood.ids import NodeId

NEVER_MS: Final = -(1 << 62)
UNKNOWN: Final = -1


class Follower:
    """How far one follower is."""

    __slots__ = (
        "caught_up_ms",
        "counts",
        "eligible",
        "end_offset",
        "epoch",
        "fetch_ms",
        "fetched_end",
        "joining",
        "node",
        "start_offset",
    )

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.epoch = UNKNOWN
        """The broker epoch under which it fetched last: it tells its lives apart."""
        self.end_offset = UNKNOWN
        self.start_offset = UNKNOWN
        self.caught_up_ms = NEVER_MS
        self.fetch_ms = NEVER_MS
        self.fetched_end = UNKNOWN
        """Where the leader's log ended at the last fetch."""
        self.counts = False
        """Is nothing committed without it? So it is for the in-sync replicas, and for those about to become one."""
        self.joining = False
        """It was proposed as an in-sync replica, and nobody knows yet what came of it."""
        self.eligible = False
        """Is it registered in the life in which it last fetched, so that it may become an in-sync replica?"""

    def fetched(self, offset: int, start_offset: int, *, epoch: int, leader_end: int, now_ms: int) -> None:
        """It has all before *offset*, by its own word."""
        self.epoch = epoch
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif offset >= self.fetched_end and self.fetch_ms > self.caught_up_ms:
            self.caught_up_ms = self.fetch_ms
        self.end_offset = offset
        self.start_offset = start_offset
        self.fetch_ms = now_ms
        self.fetched_end = leader_end

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms

    def begin_epoch(self, *, in_sync: bool, leader_end: int, now_ms: int) -> None:
        """The leader was elected again. Whoever is in sync has until ``lag_max_ms`` to say so."""
        self.fetched_end = leader_end
        self.caught_up_ms = self.fetch_ms = now_ms if in_sync else NEVER_MS

    def forget(self) -> None:
        """It is gone, or it is another life of it: what it had it may not have now."""
        self.epoch = self.end_offset = self.start_offset = self.fetched_end = UNKNOWN
        self.fetch_ms = NEVER_MS
        self.eligible = False
