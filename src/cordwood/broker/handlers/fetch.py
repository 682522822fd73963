"""Fetch (1), versions 4-18: read record batches, waiting for them if there are none yet.

- 7: incremental sessions (``fetch_sessions``); 9: the client's leader epoch; 10: zstd (older clients get it too).
- 11: a consumer may read from a follower, and the leader may send it to one (KIP-392). 12: divergence by epoch.
- 13: topics by id. 15: a replica's broker epoch (KIP-903). 16: a wrong leader's answer names the right one (KIP-951).

The answer holds slices of segment files: nothing here reads a record. The first batch of an answer is always whole,
whatever the limits, and so are most large ones. If the fetch offset lies inside a batch, the whole batch is sent, and
the client skips what it has. A batch that was left out, or that lies in the next segment, counts towards the minimum of
bytes that a client waits for.

A fetch that finds fewer than ``min_bytes`` is parked. Appends count down the missing bytes; when none is missing, or
the time is up, the answer is built from scratch, so nothing that was read before parking is kept. Errors are answered
at once, except that a partition does not exist: a client that keeps asking for one among others would spin.

Followers read up to the end of the log. A follower's fetch offset tells how much it has. That may advance the high
watermark, and does so before the answer is built, so that the answer carries the new one.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from cordwood.broker.connection import Call
from cordwood.broker.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    Reader,
    TopicKey,
    Waiter,
    comparable,
    next_epoch,
)
from cordwood.broker.leaders import name_leaders_of_fetch
from cordwood.broker.read_replicas import nearest_replica
from cordwood.broker.timers import Timer
from cordwood.cluster.image import NO_LEADER
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.log.log import Log
from cordwood.partition.partition import Partition
from cordwood.partition.truncation import divergence
from cordwood.ports import FileSlice, Instant
from cordwood.wire.compiler import maker
from cordwood.wire.messages import (
    FetchRequest,
    FetchRequestPartition,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponsePartition,
    FetchResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

READ_COMMITTED: Final = 1
FOLLOWERS_SERVE_SINCE: Final = 11

_response: Final = maker(FetchResponse)
_response_topic: Final = maker(FetchResponseTopic)
_response_partition: Final = maker(FetchResponsePartition)


MUST_ANSWER: Final = -1
"""In place of a number of bytes: the reader must be told of this at once."""

PARKED_PER_CONNECTION_MAX: Final = 16
"""Clients have one fetch in flight, or a few. All parked fetches are told of every record, so there is a limit."""


class Found:
    """The result of looking at the partitions."""

    __slots__ = ("budget", "entries", "must_answer", "size", "unknown")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        """How many more bytes the answer may hold."""
        self.entries: list[tuple[FetchPartition, FetchResponsePartition]] = []
        self.size = 0
        """How many bytes there are for the reader: those in the answer, and those that were left out."""
        self.must_answer = False
        self.unknown = 0
        """How many of the partitions do not exist."""


def handle(broker: "Broker", call: Call, request: FetchRequest) -> FetchResponse | None:
    try:
        reader, incremental = _reader(broker, call, request)
    except Refused as refusal:
        return FetchResponse(error_code=refusal.error)
    found = _collect(broker, call, request, reader, everything=not incremental)
    missing_bytes = min(request.min_bytes, found.budget) - found.size
    nothing_to_wait_for = found.unknown == len(reader.partitions)
    at_once = missing_bytes <= 0 or found.must_answer or request.max_wait_ms <= 0 or nothing_to_wait_for
    if at_once or _parked(call) >= PARKED_PER_CONNECTION_MAX:
        return _respond(broker, call, request, reader, found, incremental)
    Parked(broker, call, request, reader, incremental).wait(missing_bytes)
    return None


def _parked(call: Call) -> int:
    """How many requests of the same client are parked already."""
    return sum(earlier.abandon is not None for earlier in call.connection.waiting)


# ---------------------------------------------------------------------- who reads what


def _replica(broker: "Broker", request: FetchRequest) -> tuple[NodeId | None, int]:
    """The follower that asks (None for a consumer), and its broker epoch. Its former lives are refused."""
    state = request.replica_state
    if state is None and request.replica_id < 0:
        return _A_CONSUMER
    replica = NodeId(state.replica_id if state is not None else request.replica_id)
    if replica < 0:
        return _A_CONSUMER
    life = state.replica_epoch if state is not None else -1
    if 0 <= life < broker.image.broker_epoch(replica):
        raise Refused(Error.STALE_BROKER_EPOCH)
    return replica, life


_A_CONSUMER: Final = None, -1


def _reader(broker: "Broker", call: Call, request: FetchRequest) -> tuple[Reader, bool]:
    """The session that the request belongs to, brought up to date, or a reader for this request alone."""
    sessions = broker.sessions
    replica, life = _replica(broker, request)
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.remove(request.session_id)
        reader = Reader(by_id=call.api_version >= 13, replica=replica, life=life)
        if replica is not None:
            call.connection.replica = replica
            reader.hears_of_commits = broker.config.replica_selector_class is not None
        _update(broker, reader, request)
        return reader, False
    session = sessions.get(request.session_id)
    if session is None or session.replica != replica:
        raise Refused(Error.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        raise Refused(Error.INVALID_FETCH_SESSION_EPOCH)
    if session.by_id != (call.api_version >= 13):
        raise Refused(Error.FETCH_SESSION_TOPIC_ID_ERROR)
    if session.waiter is not None and replica is not None:
        session.waiter.complete()  # a follower with news need not wait for the previous answer
    session.life = life
    session.epoch = next_epoch(session.epoch)
    sessions.touch(session, broker.now.mono_ms)
    _update(broker, session, request)
    if not sessions.count(session):
        sessions.remove(session.id)
        raise Refused(Error.FETCH_SESSION_ID_NOT_FOUND)
    if not session.partitions:
        sessions.remove(session.id)
        return Reader(by_id=session.by_id, replica=replica), False
    return session, True


def _update(broker: "Broker", reader: Reader, request: FetchRequest) -> None:
    for topic in request.topics:
        key = _key(reader, topic.topic, topic.topic_id)
        local, known_as = _local(broker, key), comparable(key)
        for wanted in topic.partitions:
            _want(reader.want(key, known_as, wanted.partition), wanted, local)
    for forgotten in request.forgotten_topics_data:
        key = _key(reader, forgotten.topic, forgotten.topic_id)
        for index in forgotten.partitions:
            reader.forget(key, index)


def _key(reader: Reader, name: str, topic_id: UUID) -> TopicKey:
    return TopicId(topic_id) if reader.by_id else TopicName(name)


def _local(broker: "Broker", key: TopicKey) -> dict[int, Partition]:
    replicas = broker.replicas
    found = replicas.by_name.get(TopicName(key)) if isinstance(key, str) else replicas.by_id.get(key.int)
    return found if found is not None else {}


def _want(entry: FetchPartition, wanted: FetchRequestPartition, local: dict[int, Partition]) -> None:
    entry.offset = wanted.fetch_offset
    entry.max_bytes = wanted.partition_max_bytes
    entry.leader_epoch = wanted.current_leader_epoch
    entry.last_fetched_epoch = wanted.last_fetched_epoch
    if entry.reader.replica is not None:
        entry.start_offset = wanted.log_start_offset
        entry.told = True
    entry.attach(local.get(entry.index))


# ---------------------------------------------------------------------- looking


def _collect(broker: "Broker", call: Call, request: FetchRequest, reader: Reader, *, everything: bool) -> Found:
    """Look at the partitions that may have news (or at *everything*), and take what fits into one answer."""
    budget = min(request.max_bytes, broker.config.fetch_max_bytes)
    found = Found(budget)
    replica = reader.replica
    eligible = replica is not None and broker.replication.in_sync.is_eligible(replica, reader.life)
    for entry in list(reader.partitions.values()) if everything else list(reader.news):
        try:
            if replica is None:
                answer, size = _look(broker, call, request, entry, budget, found.size == 0)
            else:
                answer, size = _look_as_leader(broker, entry, replica, eligible, budget, found.size == 0)
        except Refused as refusal:
            answer, size = _refusal(entry, refusal.error), MUST_ANSWER
            if replica is None and not broker.image.has_partition(entry.topic, entry.index):
                size = 0
                found.unknown += 1
        except (StorageError, CorruptData) as error:
            broker.logger.error("a batch of %s-%d could not be read: %s", entry.topic, entry.index, error)
            code = Error.CORRUPT_MESSAGE if isinstance(error, CorruptData) else Error.KAFKA_STORAGE_ERROR
            answer, size = _refusal(entry, code), MUST_ANSWER
        found.entries.append((entry, answer))
        if size == MUST_ANSWER:
            found.must_answer = True
        elif size:
            found.size += size
            if isinstance(answer.records, FileSlice):
                budget -= answer.records.length
    return found


def _look(
    broker: "Broker", call: Call, request: FetchRequest, entry: FetchPartition, budget: int, first: bool
) -> tuple[FetchResponsePartition, int]:
    """One partition's part of a consumer's answer, and how many bytes there are for it, or ``MUST_ANSWER``."""
    local = entry.local
    if local is None or local.gone:
        local = _find(broker, entry)
    if call.api_version >= FOLLOWERS_SERVE_SINCE:
        local.check_epoch(entry.leader_epoch)
    else:
        local.check_reader(entry.leader_epoch)
    isolation_level = request.isolation_level
    log = local.log
    answer = _response_partition(
        partition_index=entry.index,
        high_watermark=local.high_watermark,
        last_stable_offset=local.high_watermark,
        log_start_offset=log.log_start_offset,
        aborted_transactions=[] if isolation_level == READ_COMMITTED else None,
        records=b"",
    )
    if request.rack_id:
        nearest = nearest_replica(broker, local, entry.offset, request.rack_id)
        if nearest is not None:
            answer.preferred_read_replica = nearest
            return answer, MUST_ANSWER
    diverging = _divergence(log, entry) if entry.last_fetched_epoch >= 0 else None
    if diverging is not None:
        answer.diverging_epoch = diverging
        return answer, MUST_ANSWER
    end = local.readable_end(isolation_level)
    if entry.offset == end:
        return answer, 0  # a reader that is up to date: the usual case at the tail
    if entry.offset > log.end_offset and local.leader == NO_LEADER:
        # The client takes this broker for the leader, which it once was, and would believe that the offset does not
        # exist.
        raise Refused(Error.OFFSET_NOT_AVAILABLE)
    piece = log.read_piece(entry.offset, max(min(entry.max_bytes, budget), 0), up_to_offset=end, first_whole=first)
    if piece is None:
        return answer, 0
    if piece.records is not None:
        answer.records = piece.records
    return answer, piece.available


def _find(broker: "Broker", entry: FetchPartition) -> Partition:
    local = _local(broker, entry.topic).get(entry.index)
    entry.attach(local)
    if local is None:
        raise broker.replicas.not_here(broker.image, entry.topic, entry.index)
    return local


# ---------------------------------------------------------------------- looking, for a follower


def _look_as_leader(
    broker: "Broker", entry: FetchPartition, replica: NodeId, eligible: bool, budget: int, first: bool
) -> tuple[FetchResponsePartition, int]:
    """One partition's part of a follower's answer; what the follower reports of itself is noted."""
    local = entry.local
    if local is None or local.gone:
        local = _find(broker, entry)
    local.check_reader(entry.leader_epoch)
    if replica not in local.followers:
        # The follower may know of its assignment before this broker does.
        raise Refused(Error.UNKNOWN_LEADER_EPOCH if entry.leader_epoch >= 0 else Error.NOT_LEADER_OR_FOLLOWER)
    log, offset = local.log, entry.offset
    if offset < log.log_start_offset:
        raise Refused(Error.OFFSET_OUT_OF_RANGE)
    diverging = _divergence(log, entry)
    if diverging is None and offset > log.end_offset:
        diverging = FetchResponseEpochEndOffset(epoch=log.latest_epoch, end_offset=log.end_offset)
    if diverging is None and entry.told:
        entry.told = False
        in_sync = broker.replication.in_sync
        in_sync.fetched(local, replica, offset, entry.start_offset, epoch=entry.reader.life, eligible=eligible)
    answer = _response_partition(
        partition_index=entry.index,
        high_watermark=local.high_watermark,
        last_stable_offset=local.high_watermark,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=None,
        records=b"",
    )
    if diverging is not None:
        return answer, MUST_ANSWER
    if offset == log.end_offset:
        has_heard = not entry.reader.hears_of_commits or answer.high_watermark <= entry.sent_high_watermark
        return answer, 0 if has_heard else MUST_ANSWER
    if broker.replication.throttled_as_leader(local, replica):
        return answer, 0
    size = max(min(entry.max_bytes, budget), 0)
    piece = log.read_piece(offset, size, up_to_offset=log.end_offset, first_whole=first)
    if piece is None:
        return answer, 0
    if piece.records is not None:
        answer.records = piece.records
    return answer, piece.available


def _divergence(log: Log, entry: FetchPartition) -> FetchResponseEpochEndOffset | None:
    """Where a reader's log and ours diverge, if it has read records of an earlier leader that were never committed."""
    found = divergence(log, last_epoch=entry.last_fetched_epoch, offset=entry.offset)
    return None if found is None else FetchResponseEpochEndOffset(epoch=found.epoch, end_offset=found.end_offset)


def _refusal(entry: FetchPartition, error: Error) -> FetchResponsePartition:
    answer = FetchResponsePartition(
        partition_index=entry.index, error_code=error, high_watermark=-1, aborted_transactions=None, records=b""
    )
    if error is Error.OFFSET_OUT_OF_RANGE and entry.reader.replica is not None and entry.local is not None:
        answer.log_start_offset = entry.local.log.log_start_offset  # where a follower may begin
    return answer


# ---------------------------------------------------------------------- waiting


class Parked:
    """A fetch that waits for missing bytes. The partitions' watchers tell the reader, and the reader counts."""

    __slots__ = ("_broker", "_call", "_incremental", "_reader", "_request", "_timer", "_waiter")

    def __init__(self, broker: "Broker", call: Call, request: FetchRequest, reader: Reader, incremental: bool) -> None:
        self._broker = broker
        request.topics = []  # the reader knows them by now, and there may be a hundred thousand
        self._call = call
        self._request = request
        self._reader = reader
        self._incremental = incremental
        self._waiter: Waiter | None = None
        self._timer: Timer | None = None

    def wait(self, missing_bytes: int) -> None:
        broker = self._broker
        self._reader.waiter = self._waiter = Waiter(missing_bytes, broker.ready, self._complete)
        for entry in self._reader.partitions.values():
            entry.watch()
        self._call.abandon = self._abandon
        self._timer = broker.timers.at(broker.now.mono_ms + self._request.max_wait_ms, self._time_is_up)
        if self._reader.id == NO_SESSION:
            broker.waiters.add(self._waiter, len(self._reader.partitions))

    def _time_is_up(self, _: Instant) -> None:
        self._complete()

    def _complete(self) -> None:
        self._stop_waiting()
        broker, call, request, reader = self._broker, self._call, self._request, self._reader
        found = _collect(broker, call, request, reader, everything=not self._incremental)
        broker.reply(call, _respond(broker, call, request, reader, found, self._incremental))

    def _abandon(self) -> None:
        self._stop_waiting()
        if self._reader.id == NO_SESSION:
            self._reader.close()

    def _stop_waiting(self) -> None:
        """Drop everything that refers to this object: reference counting alone must be enough to free it."""
        timer, waiter = self._timer, self._waiter
        assert timer is not None
        assert waiter is not None
        timer.cancel()
        self._call.abandon = None
        self._broker.ready.pop(waiter, None)
        self._broker.waiters.remove(waiter)
        waiter.complete = _never
        if self._reader.waiter is waiter:  # otherwise a later request of the same session is waiting by now
            self._reader.waiter = None


def _never() -> None:
    raise AssertionError("a fetch is answered once")


# ---------------------------------------------------------------------- answering


def _respond(
    broker: "Broker", call: Call, request: FetchRequest, reader: Reader, found: Found, incremental: bool
) -> FetchResponse:
    if not incremental and not _begin_session(broker, call, request, reader):
        reader.close()
    topics: list[FetchResponseTopic] = []
    last: FetchPartition | None = None
    for entry, answer in found.entries:
        if _remember(reader, entry, answer) or not incremental:
            if last is None or not _same_topic(entry, last):
                topics.append(_topic_of(entry))
            topics[-1].partitions.append(answer)
            last = entry
    response = _response(session_id=reader.id, responses=topics)
    if found.must_answer:
        name_leaders_of_fetch(broker, call, response)
    if reader.replica is not None:
        broker.replication.sent_as_leader(found.entries)
    return response


def _begin_session(broker: "Broker", call: Call, request: FetchRequest, reader: Reader) -> bool:
    """Remember what the request wants, if it asks for a session and there is room.

    There is always room for a follower, so a client that claims to be a broker which does not exist gets no session.
    """
    wanted = request.session_epoch == INITIAL_EPOCH and call.api_version >= 7 and bool(reader.partitions)
    if not wanted or (reader.replica is not None and reader.replica not in broker.image.brokers):
        return False
    return broker.sessions.add(reader, broker.now.mono_ms)


def _remember(reader: Reader, entry: FetchPartition, answer: FetchResponsePartition) -> bool:
    """Note what the client knows now, and which partitions to look at next time. Is there any news for it?"""
    has_records, failed = bool(answer.records), answer.error_code != 0
    high_watermark, start_offset = answer.high_watermark, answer.log_start_offset
    is_news = (
        has_records
        or failed
        or high_watermark != entry.sent_high_watermark
        or start_offset != entry.sent_start_offset
        or answer.diverging_epoch is not None
        or answer.preferred_read_replica >= 0
    )
    if reader.id == NO_SESSION:
        return is_news
    entry.watch()
    entry.sent_high_watermark = high_watermark
    entry.sent_start_offset = start_offset
    if has_records or failed:
        # Move it behind the others: when an answer is full, the partitions that did not fit must not be starved.
        reader.news.pop(entry, None)
        reader.news[entry] = None
    elif entry.offset >= _end_for(entry, high_watermark):
        reader.news.pop(entry, None)
    return is_news


def _end_for(entry: FetchPartition, high_watermark: int) -> int:
    """The offset up to which this reader may read."""
    if entry.reader.replica is None or entry.local is None:
        return high_watermark
    return entry.local.log.end_offset


def _same_topic(entry: FetchPartition, other: FetchPartition) -> bool:
    return entry.topic is other.topic or comparable(entry.topic) == comparable(other.topic)


def _topic_of(entry: FetchPartition) -> FetchResponseTopic:
    topic = entry.topic
    if isinstance(topic, str):
        return _response_topic(topic=topic, partitions=[])
    return _response_topic(topic_id=topic, partitions=[])
