"""Whole record batches by Fetch: one answer, or a whole offset range with the next request always in flight.

Records are not looked at, and no objects are made for them. Only the headers of batches are read. That drops a last
batch that the answer's size limit has cut off, and ensures that offsets rise, so that a reader always makes progress.

The leader is asked first; it may name a follower in our rack to read a range from. If a follower does not deliver, for
whatever reason, the leader is asked instead, for everything that follows, too: only the leader knows what there is.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from cordwood.errors import CorruptData, Error, ProtocolError
from cordwood.record.batch import HEADER_SIZE, LENGTH_END, MAGIC
from cordwood.wire.messages.produce_fetch import (
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
)

from .raw_cluster import Cluster, Patience, raise_for
from .raw_connection import Connection
from .raw_errors import ConnectionLost, OffsetOutOfRange, RawError, Retry, UnknownTopic
from .raw_settings import READ_COMMITTED, WAIT_MS

BY_NAME_MAX = 12
"""Up to this version, topics are identified by name; later by id."""
EMPTY_ANSWERS_MAX = 2
"""This many empty answers in a row before the partition's end mean that compaction has removed the rest."""
_FETCH_BYTES_MIN = 64 * 1024
_FIRST_GUESS_PER_RECORD = 1024
_CONSUMER = -1

_WALK = Struct(">qi4xb6xi")


class Fetched(NamedTuple):
    """A broker's answer for one partition."""

    node_id: int
    """The broker that answered."""
    records: memoryview | bytes
    """Whole batches; valid until the client is used again. The first one may begin before the offset asked for."""
    next_offset: int
    """Where to continue: after the last batch, or where reading began if there is none."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    """-1 if the broker is too old to tell."""
    aborted: list[tuple[int, int]]
    """(producer id, first offset) of the aborted transactions that these records may belong to, if the isolation level
    is read_committed."""
    preferred_replica: int = -1
    """The follower that the leader wants us to ask instead; -1 if none."""

    def readable_end(self, isolation: int) -> int:
        """The offset up to which a reader may read."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark


class _Asked(NamedTuple):
    """A request in flight."""

    connection: Connection
    node_id: int


class Wanted(NamedTuple):
    """One partition and how to read it."""

    topic: str
    partition: int
    isolation: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def fetch_once(cluster: Cluster, wanted: Wanted, offset: int, *, max_bytes: int, wait_ms: int = WAIT_MS) -> Fetched:
    """Ask the leader, and wait for the answer. Not retried."""
    return _receive(_send(cluster, wanted, offset, max_bytes=max_bytes, wait_ms=wait_ms), wanted, offset)


def fetch_range(cluster: Cluster, wanted: Wanted, start: int, end: int, *, max_bytes: int) -> Iterator[Fetched]:
    """Answers with everything from *start* up to *end*, in order; the last one may contain more.

    The next request is sent before an answer is yielded, so that the broker works while the reader does.
    """
    reading = _Reading(cluster, wanted, start, end, max_bytes)
    try:
        while reading.position < end:
            fetched = reading.next_answer()
            if fetched is None:
                continue
            if not fetched.records:
                return
            reading.ask_ahead()
            yield fetched
    finally:
        reading.close()


class _Reading:
    """How far a range has been read, and the request in flight, if any."""

    def __init__(self, cluster: Cluster, wanted: Wanted, start: int, end: int, max_bytes: int) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._end = end
        self._sizes = _Sizes(max_bytes)
        self._patience = Patience(cluster.settings)
        self._asked: _Asked | None = None
        self._empty_answers = 0
        self._rack = cluster.settings.rack
        self._follower: int | None = None
        """The follower that the leader has named."""
        self.position = start

    def next_answer(self) -> Fetched | None:
        """The next answer; one without records if there are none up to the end; None if another try makes sense."""
        return self._of_leader() if self._follower is None else self._of_follower()

    def _of_follower(self) -> Fetched | None:
        try:
            fetched = self._received()
        except (RawError, CorruptData, ProtocolError):
            fetched = None
        if fetched is None or not fetched.records:
            self._follower, self._rack = None, ""  # without a rack, the leader cannot name it again
            return None
        return self._taken(fetched)

    def _of_leader(self) -> Fetched | None:
        try:
            fetched = self._received()
            if fetched.preferred_replica >= 0:
                self._follower = fetched.preferred_replica
                return self._taken(fetched) if fetched.records else None
            if not fetched.records and fetched.readable_end(self._wanted.isolation) <= self.position:
                # This can happen for a moment after a change of leaders, until the new one knows what is committed.
                raise Retry(f"{self._wanted} ends at {self.position} now", Error.OFFSET_NOT_AVAILABLE)
        except (ConnectionLost, Retry, UnknownTopic) as reason:
            self._asked = None
            self._cluster.forget_topics()
            self._patience.wait(f"{self._wanted} cannot be read up to offset {self._end}", reason)
            return None
        return self._taken(fetched)

    def _received(self) -> Fetched:
        asked = self._asked or self._ask()
        self._asked = None
        return _receive(asked, self._wanted, self.position)

    def _taken(self, fetched: Fetched) -> Fetched | None:
        if not fetched.records:
            self._empty_answers += 1
            return fetched if self._empty_answers >= EMPTY_ANSWERS_MAX else None
        self._empty_answers = 0
        self._patience.reset()
        self._sizes.learn(len(fetched.records), fetched.next_offset - self.position)
        self.position = fetched.next_offset
        return fetched

    def ask_ahead(self) -> None:
        """Send the next request ahead of time. If that fails, the failure is handled when the answer is due."""
        if self.position < self._end:
            try:
                self._asked = self._ask()
            except (ConnectionLost, Retry, UnknownTopic):
                self._asked = None

    def _ask(self) -> _Asked:
        limit = self._sizes.next(self._end - self.position)
        return _send(
            self._cluster,
            self._wanted,
            self.position,
            max_bytes=limit,
            wait_ms=WAIT_MS,
            rack=self._rack,
            follower=self._follower,
        )

    def close(self) -> None:
        """If a request is in flight, close its connection: its answer must not be taken for that of another request."""
        if self._asked is not None and self._asked.connection.pending:
            self._asked.connection.close()


class _Sizes:
    """How much to ask for: no more than the rest of the range is likely to need."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._per_offset = float(_FIRST_GUESS_PER_RECORD)

    def learn(self, size: int, offsets: int) -> None:
        self._per_offset = size / max(offsets, 1)

    def next(self, offsets: int) -> int:
        likely = int(offsets * self._per_offset * 1.1)
        return min(self._max_bytes, max(likely, _FETCH_BYTES_MIN))


def _send(
    cluster: Cluster,
    wanted: Wanted,
    offset: int,
    *,
    max_bytes: int,
    wait_ms: int,
    rack: str = "",
    follower: int | None = None,
) -> _Asked:
    leader, epoch = cluster.leader(wanted.topic, wanted.partition)
    topic = cluster.topic(wanted.topic)
    node_id = leader if follower is None else follower
    connection = cluster.connection(node_id)
    version = connection.version(FetchRequest, at_most=None if topic.id.int else BY_NAME_MAX)
    partition = FetchRequestPartition(
        partition=wanted.partition, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=wanted.isolation,
        topics=[FetchRequestTopic(topic=topic.name, topic_id=topic.id, partitions=[partition])],
        rack_id=rack,
    )
    connection.send(request, version=version)
    return _Asked(connection, node_id)


def _receive(asked: _Asked, wanted: Wanted, offset: int) -> Fetched:
    what = f"{wanted} at offset {offset}"
    answer = asked.connection.receive(FetchResponse)
    raise_for(what, answer.error_code)
    parts = [part for topic_part in answer.responses for part in topic_part.partitions]
    if not parts:  # this is how a broker answers once a quota is used up
        raise Retry(what, Error.THROTTLING_QUOTA_EXCEEDED)
    if len(parts) != 1 or parts[0].partition_index != wanted.partition:
        asked.connection.close()
        raise ProtocolError(f"{what}: the broker answered for other partitions than it was asked for")
    part = parts[0]
    if part.error_code == Error.OFFSET_OUT_OF_RANGE:
        raise OffsetOutOfRange(
            wanted.topic,
            wanted.partition,
            offset,
            log_start_offset=part.log_start_offset,
            high_watermark=part.high_watermark,
        )
    raise_for(what, part.error_code, topic=(wanted.topic, wanted.partition))
    return _fetched(asked.node_id, part, offset, what)


def _fetched(node_id: int, part: FetchResponsePartition, offset: int, what: str) -> Fetched:
    records = memoryview(part.records if part.records is not None else b"")  # type: ignore[arg-type]
    try:
        end, next_offset = whole_batches(records, offset)
    except CorruptData as error:
        raise CorruptData(f"{what}: {error}") from None
    return Fetched(
        node_id,
        records[:end],
        next_offset,
        part.high_watermark,
        part.last_stable_offset,
        part.log_start_offset,
        [(aborted.producer_id, aborted.first_offset) for aborted in part.aborted_transactions or ()],
        part.preferred_read_replica,
    )


def whole_batches(data: memoryview, offset: int, up_to: int = 2**63 - 1) -> tuple[int, int]:
    """Where the last whole batch of *data* ends, and the offset after it, not counting batches that begin at *up_to* or
    later.

    Batches must follow each other in offset order, and the first must reach *offset*. ``CorruptData`` if not.
    """
    position, size, next_offset = 0, len(data), offset
    unpack = _WALK.unpack_from
    while size - position >= HEADER_SIZE and next_offset < up_to:
        base_offset, length, magic, last_delta = unpack(data, position)
        if magic != MAGIC:
            raise CorruptData(f"record format {magic}, where only {MAGIC} (of Kafka 0.11 and later) can be read")
        if length < HEADER_SIZE - LENGTH_END or last_delta < 0 or base_offset < 0:
            raise CorruptData(
                f"a batch at offset {base_offset} says that it has {length} bytes, {last_delta + 1} offsets"
            )
        if base_offset >= up_to or length + LENGTH_END > size - position:
            break
        if base_offset + last_delta < next_offset or (position and base_offset < next_offset):
            raise CorruptData(f"a batch at offset {base_offset} comes where {next_offset} is next")
        next_offset = base_offset + last_delta + 1
        position += length + LENGTH_END
    return position, next_offset
