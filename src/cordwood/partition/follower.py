"""Another replica of a partition, as the leader knows it: from its fetches alone.

*Caught up* is a time, not a distance: the last moment at which the follower had everything that the leader had then. A
follower whose every fetch asks for what has arrived since its previous one is caught up, even if it never has the
newest record.
"""

from typing import Final

from cordwood.ids import NodeId

NEVER_MS: Final = -(1 << 62)
UNKNOWN: Final = -1


class Follower:
    """How far one follower has got."""

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
        """The broker epoch of its last fetch, by which restarts of the follower are noticed."""
        self.end_offset = UNKNOWN
        self.start_offset = UNKNOWN
        self.caught_up_ms = NEVER_MS
        self.fetch_ms = NEVER_MS
        self.fetched_end = UNKNOWN
        """Where the leader's log ended at the last fetch."""
        self.counts = False
        """Is nothing committed until it has it? True for in-sync replicas, and for those about to become one."""
        self.joining = False
        """Has it been proposed as an in-sync replica, with the outcome still unknown?"""
        self.eligible = False
        """Is it registered under the broker epoch of its last fetch, so that it may become an in-sync replica?"""

    def fetched(self, offset: int, start_offset: int, *, epoch: int, leader_end: int, now_ms: int) -> None:
        """Its fetch says that it has everything before *offset*."""
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
        """A new leader epoch has begun. A replica that is in sync has ``lag_max_ms`` to show it."""
        self.fetched_end = leader_end
        self.caught_up_ms = self.fetch_ms = now_ms if in_sync else NEVER_MS

    def forget(self) -> None:
        """It is gone, or has restarted: it may not have what it had before."""
        self.epoch = self.end_offset = self.start_offset = self.fetched_end = UNKNOWN
        self.fetch_ms = NEVER_MS
        self.eligible = False
