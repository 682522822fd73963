"""A replica of one partition on this broker.

The high watermark is where committed records end: readers see nothing beyond it. With this broker as the only in-sync
replica a record is committed when it is in the log, or, where the topic asks for a sync (``flush.messages``), when the
sync is done.

Invariants (``check``): log start ≤ high watermark ≤ log end.
"""

from typing import Protocol

from cordwood.cluster.image import INTERNAL_TOPICS, NO_LEADER
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicId, TopicPartition
from cordwood.log.log import AppendResult, Log
from cordwood.ports import Instant


class Watcher(Protocol):
    """Somebody who wants to know when a partition has something new."""

    def advanced(self, size: int, /) -> None:
        """*size* more bytes can be read; 0 means that something else changed, and waiting may be in vain."""


class Partition:
    """One replica: appends, reads and what they may see."""

    __slots__ = (
        "_uncommitted_bytes",
        "gone",
        "high_watermark",
        "internal",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "name",
        "node",
        "topic_id",
        "watchers",
    )

    def __init__(self, name: TopicPartition, topic_id: TopicId, log: Log, node: NodeId) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.node = node
        self.internal = name.topic in INTERNAL_TOPICS
        self.leader: NodeId = NO_LEADER
        self.leader_epoch = -1
        self.isr: tuple[NodeId, ...] = ()
        self.high_watermark = log.end_offset
        self._uncommitted_bytes = 0
        self.watchers: dict[Watcher, None] = {}
        self.gone = False
        """Deleted; whoever still holds this object must look the partition up again."""

    def become(self, *, leader: NodeId, epoch: int, isr: tuple[NodeId, ...]) -> None:
        """Take the role that the metadata gives this replica."""
        self.leader, self.leader_epoch, self.isr = leader, epoch, isr
        if leader == self.node:
            self.log.begin_epoch(epoch)

    def check_leader(self, claimed_epoch: int = -1) -> None:
        """Refuse what only the leader may do, or what a client with older or newer metadata asks."""
        if self.leader != self.node:
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER)
        if claimed_epoch != -1 and claimed_epoch != self.leader_epoch:
            raise Refused(
                Error.FENCED_LEADER_EPOCH if claimed_epoch < self.leader_epoch else Error.UNKNOWN_LEADER_EPOCH
            )

    def append(self, batch: memoryview, *, required_acks: int, now: Instant) -> AppendResult:
        """Add what a client sent, as the leader. It is readable at once unless the topic wants it synced first."""
        if self.leader != self.node:
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        if required_acks == -1 and len(self.isr) < log.config.min_insync_replicas:
            raise Refused(Error.NOT_ENOUGH_REPLICAS)
        result = log.append(batch, leader_epoch=self.leader_epoch, now=now)
        if not result.duplicate:
            self._uncommitted_bytes += len(batch)
            if not self.sync_due():
                self.commit(log.end_offset)
        return result

    def append_own(self, batch: memoryview, now: Instant) -> AppendResult:
        """Add what this broker itself has to say (its coordinators' records), to be held by all replicas in sync."""
        self.check_leader()
        log = self.log
        if len(self.isr) < log.config.min_insync_replicas:
            raise Refused(Error.NOT_ENOUGH_REPLICAS)
        if len(batch) > log.config.max_message_bytes:
            raise Refused(Error.MESSAGE_TOO_LARGE, f"{len(batch)} bytes are more than max.message.bytes allows.")
        result = log.append_own(batch, leader_epoch=self.leader_epoch, now=now)
        self._uncommitted_bytes += len(batch)
        if not self.sync_due():
            self.commit(log.end_offset)
        return result

    def sync_due(self) -> bool:
        """Must what was appended be synced before anybody reads it?"""
        log = self.log
        return log.end_offset - log.recovery_point >= log.config.flush_messages

    def commit(self, offset: int) -> None:
        """Move the high watermark, and tell those who wait for it."""
        self.high_watermark = offset
        size, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.advanced(size)

    def changed(self) -> None:
        """Something other than new records happened: readers should look again."""
        for watcher in list(self.watchers):
            watcher.advanced(0)

    def readable_end(self, isolation_level: int) -> int:
        """Where reading must stop for a reader of this isolation level: the last stable offset is the same for now."""
        return self.high_watermark

    def check(self) -> None:
        self.log.check()
        assert self.log.log_start_offset <= self.high_watermark <= self.log.end_offset
