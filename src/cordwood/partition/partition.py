"""A replica of one partition on this broker.

It leads or follows, as the metadata says, one leader epoch after the other; a state with an older epoch is ignored.

The high watermark is where committed records end: readers see nothing beyond it. The leader advances it, never back, to
the offset that all in-sync replicas have reached. These include replicas that have been proposed as in-sync replicas,
and those that are caught up and may be proposed next; a proposal to remove one counts only once it is confirmed. For
the leader itself, the offset is the end of its log or, if the topic demands syncs (``flush.messages``), the end of what
is synced. While fewer replicas are in sync than ``min.insync.replicas`` demands, nothing is committed. A follower takes
over the leader's high watermark, as far as its own log reaches.

A *fenced* broker leads nothing, because nobody may rely on what it would accept.

Invariants (``check``): log start ≤ high watermark ≤ log end; only a leader has followers; whoever waits for a commit
waits for an offset beyond the high watermark.
"""

from collections import deque
from collections.abc import Container
from typing import Final, Protocol

from cordwood.cluster.image import INTERNAL_TOPICS, NO_LEADER
from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NodeId, TopicId, TopicPartition
from cordwood.log.epochs import EpochEnd
from cordwood.log.log import AppendResult, Log
from cordwood.partition.follower import Follower
from cordwood.partition.truncation import truncation_offset
from cordwood.ports import Instant
from cordwood.record.batch import header_at

LAG_MAX_MS: Final = 30_000


class Watcher(Protocol):
    """A reader that wants to know when a partition has something new."""

    def advanced(self, size: int, /) -> None:
        """*size* more bytes can be read; 0 means that something else has changed, and waiting may be pointless."""


class EndWatcher(Protocol):
    """A follower's fetch, which wants to know of every append."""

    def appended(self, size: int, /) -> None: ...


class StartWatcher(Protocol):
    """A request that waits until no replica has certain records any more."""

    def start_moved(self) -> None: ...


class Acknowledgement(Protocol):
    """A request that waits until a record is committed."""

    done: bool
    """Has it stopped waiting?"""

    def settled(self, error: Error, /) -> None:
        """The record is committed (``NONE``), or will not be as far as this broker knows."""


class Partition:
    """One replica: appends, and what readers may see."""

    __slots__ = (
        "_uncommitted_bytes",
        "_waiting",
        "end_watchers",
        "epoch_start",
        "fenced",
        "followers",
        "former_epoch",
        "gone",
        "high_watermark",
        "internal",
        "isr",
        "lag_max_ms",
        "leader",
        "leader_epoch",
        "leading",
        "log",
        "name",
        "node",
        "proposing",
        "replicas",
        "start_watchers",
        "topic_id",
        "version",
        "watchers",
    )

    def __init__(
        self, name: TopicPartition, topic_id: TopicId, log: Log, node: NodeId, *, high_watermark: int | None = None
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.node = node
        self.internal = name.topic in INTERNAL_TOPICS
        self.leader: NodeId = NO_LEADER
        self.leader_epoch = -1
        self.isr: tuple[NodeId, ...] = ()
        self.replicas: tuple[NodeId, ...] = ()
        self.version = -1
        """The version of the metadata that gave this replica its role."""
        self.leading = False
        self.fenced = False
        self.former_epoch = -1
        """If this broker leads in an epoch up to this one, that dates from before it registered."""
        self.followers: dict[NodeId, Follower] = {}
        self.epoch_start = 0
        """Where the log ended when this broker became its leader."""
        self.lag_max_ms = LAG_MAX_MS
        self.proposing = False
        """Is a change of the in-sync replicas on its way to the metadata?"""
        self.high_watermark = log.end_offset
        if high_watermark is not None:
            self.high_watermark = min(max(high_watermark, log.log_start_offset), log.end_offset)
        self._uncommitted_bytes = 0
        self._waiting: deque[tuple[int, Acknowledgement]] | None = None
        self.watchers: dict[Watcher, None] = {}
        self.end_watchers: dict[EndWatcher, None] = {}
        self.start_watchers: dict[StartWatcher, None] = {}
        self.gone = False
        """Has this replica been removed? Whoever still holds this object must look the partition up again."""

    # ------------------------------------------------------------------ role

    def become(
        self,
        *,
        leader: NodeId,
        epoch: int,
        isr: tuple[NodeId, ...],
        replicas: tuple[NodeId, ...] = (),
        version: int = -1,
        now_ms: int = 0,
    ) -> bool:
        """Take the role that the metadata gives this replica. Is it a new one?"""
        if epoch < self.leader_epoch:
            return False
        if leader == self.node and (epoch <= self.former_epoch or epoch < self.log.latest_epoch):
            leader = NO_LEADER
        is_new = epoch > self.leader_epoch or leader != self.leader
        was_leader = self.leader == self.node
        if epoch > self.leader_epoch + 1:
            self.followers = {}  # others may have led in the meantime, and followers may have truncated their logs
        self.leader, self.leader_epoch, self.isr = leader, epoch, isr
        self.replicas = replicas or isr
        self.leading = leader == self.node and not self.fenced
        is_settled = version != self.version or version < 0
        self.version = version
        if leader == self.node:
            self._know_followers()
            if is_new:
                self._begin_epoch(now_ms)
            self._count_followers(is_settled)
            self.advance(now_ms)
            if not self._enough_in_sync():
                self._settle_all(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        elif is_new:
            self._begin_to_follow()
        if is_new or was_leader != (leader == self.node):
            self.changed()
        return is_new

    @property
    def is_ahead(self) -> bool:
        """Does the log know later leader epochs than the metadata, which must have lost them? Then nobody can lead."""
        return self.leader_epoch < self.log.latest_epoch

    def fence(self, fenced: bool) -> None:
        """This broker may no longer lead, or may lead again."""
        self.fenced = fenced
        self.leading = self.leader == self.node and not fenced
        if fenced:
            self._settle_all(Error.NOT_LEADER_OR_FOLLOWER)
            self.start_moved()

    def leave(self, error: Error) -> None:
        """This replica goes away: its topic is deleted, or the partition was moved to other brokers."""
        self.gone = True
        self.leading = False
        self._settle_all(error)
        self.changed()

    def _know_followers(self) -> None:
        others = [node for node in self.replicas if node != self.node]
        if list(self.followers) != others:
            self.followers = {node: self.followers.get(node) or Follower(node) for node in others}

    def _begin_epoch(self, now_ms: int) -> None:
        self.log.begin_epoch(self.leader_epoch)
        self.epoch_start = self.log.end_offset
        self.proposing = False
        for follower in self.followers.values():
            follower.begin_epoch(in_sync=follower.node in self.isr, leader_end=self.epoch_start, now_ms=now_ms)

    def _count_followers(self, is_settled: bool) -> None:
        """Decide which followers count. A proposal *is settled* once the metadata has changed, whoever changed it."""
        for follower in self.followers.values():
            if is_settled:
                follower.joining = False
            follower.counts = follower.joining or follower.node in self.isr

    def _begin_to_follow(self) -> None:
        self.followers = {}
        self.proposing = False
        self._settle_all(Error.NOT_LEADER_OR_FOLLOWER)

    def check_leader(self, claimed_epoch: int = -1) -> None:
        """Refuse a request unless this broker leads, and the client's metadata is neither older nor newer than ours."""
        self.check_epoch(claimed_epoch)
        if not self.leading:
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER)

    def check_reader(self, claimed_epoch: int = -1) -> None:
        """Like ``check_leader``, for requests that only read: a fenced leader still answers those."""
        self.check_epoch(claimed_epoch)
        if self.leader != self.node:
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER)

    def check_epoch(self, claimed_epoch: int) -> None:
        if claimed_epoch != -1 and claimed_epoch != self.leader_epoch:
            raise Refused(
                Error.FENCED_LEADER_EPOCH if claimed_epoch < self.leader_epoch else Error.UNKNOWN_LEADER_EPOCH
            )

    # ------------------------------------------------------------------ as the leader

    def append(self, batch: memoryview, *, required_acks: int, now: Instant) -> AppendResult:
        """Append a client's batch, as the leader. It becomes readable once it is committed, which may be at once."""
        if not self.leading:
            raise Refused(Error.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        if required_acks == -1 and len(self.isr) < log.min_insync_replicas and not self._enough_in_sync():
            raise Refused(Error.NOT_ENOUGH_REPLICAS)
        result = log.append(batch, leader_epoch=self.leader_epoch, now=now)
        if not result.duplicate:
            self._uncommitted_bytes += len(batch)
            if self.followers:
                self._appended(len(batch), now.mono_ms)
            elif not self.sync_due():
                self.commit(log.end_offset)
        return result

    def append_own(self, batch: memoryview, now: Instant) -> AppendResult:
        """Append this broker's own records (its coordinators'), which all in-sync replicas must have."""
        self.check_leader()
        log = self.log
        if not self._enough_in_sync():
            raise Refused(Error.NOT_ENOUGH_REPLICAS)
        if len(batch) > log.config.max_message_bytes:
            raise Refused(Error.MESSAGE_TOO_LARGE, f"{len(batch)} bytes are more than max.message.bytes allows.")
        result = log.append_own(batch, leader_epoch=self.leader_epoch, now=now)
        self._uncommitted_bytes += len(batch)
        self._appended(len(batch), now.mono_ms)
        return result

    def _appended(self, size: int, now_ms: int) -> None:
        self.advance(now_ms)
        for watcher in list(self.end_watchers):
            watcher.appended(size)

    def _enough_in_sync(self) -> bool:
        """Are enough replicas in sync? As in Kafka, no more are demanded than the partition has."""
        return len(self.isr) >= min(self.log.min_insync_replicas, len(self.followers) + 1)

    def sync_due(self) -> bool:
        """Must appended records be synced before anybody may read them?"""
        log = self.log
        return log.end_offset - log.recovery_point >= log.flush_messages

    def advance(self, now_ms: int) -> None:
        """Commit what all replicas that count have."""
        if self.leader != self.node or not self._enough_in_sync():
            return
        log = self.log
        leader_end = log.end_offset
        end = log.recovery_point if self.sync_due() else leader_end
        for follower in self.followers.values():
            if follower.end_offset < end and (
                follower.counts or (follower.eligible and follower.is_caught_up(leader_end, now_ms, self.lag_max_ms))
            ):
                end = follower.end_offset
        if end > self.high_watermark:
            self.commit(end)

    def fetched_by(
        self, node: NodeId, offset: int, start_offset: int, *, epoch: int, eligible: bool, now_ms: int
    ) -> bool:
        """A follower has everything before *offset*. Should it be proposed as an in-sync replica?"""
        follower = self.followers[node]
        if 0 <= epoch < follower.epoch:
            return False  # a late request: the follower has restarted since it sent this
        follower.fetched(offset, start_offset, epoch=epoch, leader_end=self.log.end_offset, now_ms=now_ms)
        follower.eligible = eligible
        joins = self._joins(follower, now_ms)
        self.advance(now_ms)
        if self.start_watchers:
            self.start_moved()
        return joins

    def let_in(self, now_ms: int) -> bool:
        """Should a follower be proposed as an in-sync replica that could not be when it last fetched?"""
        end = self.log.end_offset
        joined = False
        for follower in self.followers.values():
            if follower.is_caught_up(end, now_ms, self.lag_max_ms) and self._joins(follower, now_ms):
                joined = True
        return joined

    def _joins(self, follower: Follower, now_ms: int) -> bool:
        """May it join the in-sync replicas? Then it counts from now on, and has some time to catch up completely."""
        joins = follower.node not in self.isr and self.leading and not self.proposing and self.may_join(follower)
        if joins:
            follower.joining = follower.counts = True
            follower.caught_up_ms = now_ms
        return joins

    def may_join(self, follower: Follower) -> bool:
        """Does it have everything committed, and everything from earlier leaders, some of which may be committed, too?

        A follower that was proposed earlier may have restarted since then, with fewer records.
        """
        end = follower.end_offset
        return follower.eligible and end >= self.high_watermark and end >= self.epoch_start

    def lagging(self, now_ms: int) -> list[NodeId]:
        """The followers that count but should not, because they have not been caught up for too long.

        A follower that has everything counts as caught up now: where nothing is appended, its fetches have nothing to
        show.
        """
        end = self.log.end_offset
        late = []
        for follower in self.followers.values():
            if follower.end_offset == end:
                follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
            elif follower.counts and not follower.is_caught_up(end, now_ms, self.lag_max_ms):
                late.append(follower.node)
        return late

    def low_watermark(self, alive: Container[NodeId]) -> int:
        """The smallest offset that any replica among those *alive* still has, as far as this broker has been told."""
        starts = [follower.start_offset for follower in self.followers.values() if follower.node in alive]
        return min([self.log.log_start_offset, *starts])

    def start_moved(self) -> None:
        """Log starts have moved, or replicas came or went: whoever waits for that looks again."""
        for watcher in list(self.start_watchers):
            watcher.start_moved()

    # ------------------------------------------------------------------ as a follower

    def append_as_follower(self, data: memoryview, now: Instant) -> list[str]:
        """Append what the leader sent; return the paths of files to be removed, usually none.

        Raises:
            CorruptData: the bytes are damaged, or do not continue this log.
            StorageError: they could not be written.
        """
        log = self.log
        removed: list[str] = []
        first = header_at(data)
        if first.base_offset < log.end_offset <= first.last_offset and log.log_start_offset == log.end_offset:
            # The leader's log starts in the middle of a batch: an empty log may start where that batch does.
            removed = log.restart_at(first.base_offset, now)
            self.high_watermark = min(self.high_watermark, log.end_offset)
        before = log.end_offset
        log.append_as_follower(data, now=now)
        if log.end_offset == before:
            raise CorruptData("the leader sent less than a batch")
        self._uncommitted_bytes += len(data)
        return removed

    def has_already(self, data: memoryview) -> bool:
        """Is what the leader sent already in this log? That happens when the same fetch was sent twice."""
        first = header_at(data)
        return first.last_offset < self.log.end_offset

    def follow(self, high_watermark: int) -> None:
        """The leader's log is committed up to *high_watermark*."""
        end = min(high_watermark, self.log.end_offset)
        if end > self.high_watermark:
            self.commit(end)

    def truncate(self, diverging: EpochEnd, now: Instant) -> list[str]:
        """Give up what the leader does not have; return the paths of files to be removed."""
        return self._cut(truncation_offset(self.log, diverging), now)

    def forget_unknown(self, now: Instant) -> list[str]:
        """Keep only what is committed, if no record has a leader epoch: nobody can say whether the leader has them."""
        if self.log.latest_epoch >= 0 or self.log.end_offset <= self.high_watermark:
            return []
        return self._cut(self.high_watermark, now)

    def _cut(self, offset: int, now: Instant) -> list[str]:
        removed = self.log.truncate(offset, now)
        self._moved()
        return removed

    def restart_at(self, offset: int, now: Instant) -> list[str]:
        """Drop everything and continue at *offset*, as the leader has nothing older; return the paths to be removed."""
        removed = self.log.restart_at(offset, now)
        self._moved()
        return removed

    def _moved(self) -> None:
        log = self.log
        self.high_watermark = min(max(self.high_watermark, log.log_start_offset), log.end_offset)
        self._uncommitted_bytes = 0
        self.changed()

    # ------------------------------------------------------------------ committed

    def commit(self, offset: int) -> None:
        """Advance the high watermark, and tell those who wait for it."""
        left = self.log.end_offset - offset
        if left:
            # Sizes of single batches are not recorded: assume that all uncommitted records are of the same size.
            moved = offset - self.high_watermark
            size = max(self._uncommitted_bytes * moved // (moved + left), 1)
            self._uncommitted_bytes = max(self._uncommitted_bytes - size, 1)
        else:
            size, self._uncommitted_bytes = self._uncommitted_bytes, 0
        self.high_watermark = offset
        if self._waiting:
            self._settle()
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.advanced(size)

    def wait_for(self, offset: int, acknowledgement: Acknowledgement) -> None:
        """Tell *acknowledgement* when everything before *offset* is committed. All are told in order of arrival."""
        assert offset > self.high_watermark, "it is committed already"
        if self._waiting is None:
            self._waiting = deque()
        elif self._waiting:
            offset = max(offset, self._waiting[-1][0])  # it can be less: a retry of a batch that is waiting already
        self._waiting.append((offset, acknowledgement))

    def drop_done(self) -> None:
        """Drop those that have stopped waiting. Most give up in the order in which they came."""
        waiting = self._waiting
        while waiting and waiting[0][1].done:
            waiting.popleft()

    def _settle(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= self.high_watermark:
            waiting.popleft()[1].settled(Error.NONE)

    def _settle_all(self, error: Error) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, None
            for _, acknowledgement in waiting:
                acknowledgement.settled(error)

    def changed(self) -> None:
        """Something other than an append has happened: readers should look again."""
        for watcher in list(self.watchers):
            watcher.advanced(0)
        if self.start_watchers:
            self.start_moved()

    def readable_end(self, isolation_level: int) -> int:
        """Where a reader of this isolation level must stop: for now, the last stable offset is the same."""
        return self.high_watermark

    def check(self) -> None:
        self.log.check()
        assert self.log.log_start_offset <= self.high_watermark <= self.log.end_offset
        assert self.leader == self.node or not self.followers
        assert not self.leading or (self.leader == self.node and not self.fenced)
        assert not self._waiting or self._waiting[-1][0] > self.high_watermark
        for follower in self.followers.values():
            assert follower.counts == (follower.joining or follower.node in self.isr)
