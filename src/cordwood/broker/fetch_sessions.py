"""Fetch sessions (KIP-227): what a reader wants is remembered, so that neither side repeats it in every request.

Unlike Kafka's, a session also remembers which of its partitions *may have news* since they were last sent. A partition
puts itself on that list when its high watermark or log start offset moves, a request adds the partitions that it
changes, and only partitions on the list are looked at when a response is built. A reader of 1,000 partitions, two of
them busy, costs two look-ups.

Followers read in the same way, up to the end of the log. Appends wake them up; they learn of commits with the next
records, or when their wait is over.

Invariants (``check``): a session's partitions are registered with the local partitions they read; only partitions of
the session are on its list of news.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.partition.partition import Partition
from cordwood.ports import Entropy

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
_EPOCH_MAX: Final = (1 << 31) - 1

PARTITIONS_MAX: Final = 150_000
"""For all sessions together: a third of a kilobyte each. A reader that finds no room is served without a session."""

WAITING_PARTITIONS_MAX: Final = 200_000
"""For all fetches together that wait without a session, perhaps for weeks: as large as those of sessions."""

TopicKey = TopicId | TopicName


def comparable(topic: TopicKey) -> int | str:
    """An id as a number: hashing or comparing a UUID calls a function that is always interpreted."""
    return topic if isinstance(topic, str) else topic.int


class FetchPartition:
    """One partition as one reader reads it: from which offset, how much at a time, and what it was last told."""

    __slots__ = (
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "local",
        "max_bytes",
        "offset",
        "reader",
        "sent_high_watermark",
        "sent_start_offset",
        "start_offset",
        "told",
        "topic",
    )

    def __init__(self, reader: "Reader", topic: TopicKey, index: int) -> None:
        self.reader = reader
        self.topic = topic
        self.index = index
        self.local: Partition | None = None
        self.offset = 0
        self.max_bytes = 0
        self.leader_epoch = -1
        self.last_fetched_epoch = -1
        self.start_offset = -1
        """Where a follower's own log starts."""
        self.told = False
        """Has the follower said where it is, and this has not been noted yet?"""
        self.sent_high_watermark = -1
        self.sent_start_offset = -1

    def advanced(self, size: int) -> None:
        """The partition has *size* more committed bytes, or (0) something else about it has changed."""
        reader = self.reader
        reader.news[self] = None
        if reader.waiter is not None and (reader.hears_of_commits or size == 0):
            reader.waiter.arrived(size)

    def appended(self, size: int) -> None:
        """The log has *size* more bytes, which only followers may read yet."""
        reader = self.reader
        reader.news[self] = None
        if reader.waiter is not None:
            reader.waiter.arrived(size)

    def attach(self, local: Partition | None) -> None:
        """Read from this replica from now on; None: the partition is not here."""
        if self.local is not local:
            self.unwatch()
            self.local = local

    def watch(self) -> None:
        """Have the partition report news."""
        if self.local is not None:
            self.local.watchers[self] = None
            if self.reader.replica is not None:
                self.local.end_watchers[self] = None

    def unwatch(self) -> None:
        if self.local is not None:
            self.local.watchers.pop(self, None)
            self.local.end_watchers.pop(self, None)


class Waiter:
    """A fetch that waits until enough bytes have arrived, or its time is up."""

    __slots__ = ("complete", "missing_bytes", "ready")

    def __init__(self, missing_bytes: int, ready: "dict[Waiter, None]", complete: Callable[[], None]) -> None:
        self.missing_bytes = missing_bytes
        self.ready = ready
        self.complete = complete

    def arrived(self, size: int) -> None:
        self.missing_bytes -= size
        if self.missing_bytes <= 0 or size == 0:
            self.ready[self] = None


class Waiters:
    """Fetches that wait without a session. When they name too many partitions in all, the oldest is answered early."""

    __slots__ = ("_partitions", "_waiting", "partitions_max")

    def __init__(self) -> None:
        self.partitions_max = WAITING_PARTITIONS_MAX
        self._waiting: dict[Waiter, int] = {}
        self._partitions = 0

    def add(self, waiter: Waiter, partitions: int) -> None:
        self._waiting[waiter] = partitions
        self._partitions += partitions
        while self._partitions > self.partitions_max:
            first = next(iter(self._waiting))
            self.remove(first)
            first.arrived(0)

    def remove(self, waiter: Waiter) -> None:
        self._partitions -= self._waiting.pop(waiter, 0)

    def check(self) -> None:
        assert self._partitions == sum(self._waiting.values()) <= self.partitions_max


@dataclass(slots=True, eq=False)
class Reader:
    """The partitions of one fetch without a session, or of one session."""

    partitions: dict[tuple[int | str, int], FetchPartition] = field(default_factory=dict)
    """By topic (``comparable``) and index."""
    news: dict[FetchPartition, None] = field(default_factory=dict)
    waiter: Waiter | None = None
    id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    used_ms: int = 0
    by_id: bool = False
    replica: NodeId | None = None
    """The follower that reads; None for a consumer."""
    life: int = -1
    """The follower's broker epoch."""
    hears_of_commits: bool = True
    """Does a commit end its wait?"""
    counted: int = 0
    """How many of its partitions count against the limit for all sessions."""

    def want(self, topic: TopicKey, known_as: int | str, index: int) -> FetchPartition:
        """The entry for a partition that a request names; it is looked at when the response is built.

        *known_as* is ``comparable(topic)``, which is the same for all partitions of a topic.
        """
        key = (known_as, index)
        wanted = self.partitions.get(key)
        if wanted is None:
            wanted = self.partitions[key] = FetchPartition(self, topic, index)
        self.news[wanted] = None
        return wanted

    def forget(self, topic: TopicKey, index: int) -> None:
        gone = self.partitions.pop((comparable(topic), index), None)
        if gone is not None:
            self.news.pop(gone, None)
            gone.unwatch()

    def close(self) -> None:
        for partition in self.partitions.values():
            partition.unwatch()
        self.partitions.clear()
        self.news.clear()
        self.waiter = None

    def check(self) -> None:
        if self.id != NO_SESSION and self.waiter is None:
            for partition in self.partitions.values():
                assert partition in self.news or partition.local is None or partition in partition.local.watchers
        assert all(self.partitions.get((comparable(p.topic), p.index)) is p for p in self.news)


class FetchSessions:
    """The sessions that readers have open: at most *slots*, of which the least recently used is evicted first."""

    def __init__(self, slots: int, eviction_ms: int, entropy: Entropy) -> None:
        self.slots = slots
        self.partitions_max = PARTITIONS_MAX
        self._eviction_ms = eviction_ms
        self._entropy = entropy
        self._sessions: dict[int, Reader] = {}  # least recently used first
        self._followers: dict[NodeId, int] = {}
        self._partitions = 0

    def __len__(self) -> int:
        """How many sessions of consumers there are."""
        return len(self._sessions) - len(self._followers)

    def __iter__(self) -> Iterator[Reader]:
        return iter(self._sessions.values())

    def get(self, session_id: int) -> Reader | None:
        return self._sessions.get(session_id)

    def touch(self, session: Reader, now_ms: int) -> None:
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.used_ms = now_ms

    def add(self, reader: Reader, now_ms: int) -> bool:
        """Make *reader* a session, if there is room or an old one can be evicted; otherwise it is served without one.

        There is always room for a follower: it has only one session, and would cost more without.
        """
        if reader.replica is not None:
            self._end_session_of(reader.replica)
        elif self.slots <= 0 or (len(self) >= self.slots and not self._evict(now_ms)):
            return False
        if self._partitions + len(reader.partitions) > self.partitions_max:
            return False
        while (session_id := self._entropy.getrandbits(31)) in self._sessions or session_id == NO_SESSION:
            pass
        reader.id = session_id
        reader.epoch = 1
        reader.used_ms = now_ms
        self._sessions[session_id] = reader
        if reader.replica is not None:
            self._followers[reader.replica] = session_id
        return self.count(reader)

    def _end_session_of(self, replica: NodeId) -> None:
        earlier = self._followers.pop(replica, None)
        if earlier is not None:
            self.remove(earlier)

    def count(self, session: Reader) -> bool:
        """Count the partitions that a session has by now. False: all sessions together have too many."""
        self._partitions += len(session.partitions) - session.counted
        session.counted = len(session.partitions)
        return self._partitions <= self.partitions_max

    def _evict(self, now_ms: int) -> bool:
        oldest = next(session for session in self._sessions.values() if session.replica is None)
        if now_ms - oldest.used_ms < self._eviction_ms:
            return False
        self.remove(oldest.id)
        return True

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= session.counted
            if session.replica is not None:
                self._followers.pop(session.replica, None)
            session.close()

    def check(self) -> None:
        assert len(self) <= max(self.slots, 0)
        followers = {s.replica: s.id for s in self._sessions.values() if s.replica is not None}
        assert followers == self._followers
        assert self._partitions == sum(session.counted for session in self._sessions.values())
        for session_id, session in self._sessions.items():
            assert session.id == session_id
            session.check()


def next_epoch(epoch: int) -> int:
    """The epochs of a session count from 1, and wrap around to 1: 0 and -1 have meanings of their own."""
    return 1 if epoch >= _EPOCH_MAX else epoch + 1
