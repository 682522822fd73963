"""All partitions that this broker follows from one leader: they are fetched over one link, in one session.

There is always one request in flight, which waits at the leader for news. It names only what has changed since the last
one: this broker's position in partitions that got records, and partitions that were added or dropped. Every partition
is named with its leader epoch and with the epoch of its newest record, so that the leader can tell where the two logs
diverge. What lies beyond that point is truncated; nothing is truncated for any other reason.

A partition that cannot go on rests for a while, outside of the session. A change of roles does not wait for the answer
in flight: the leader answers that one when the next request arrives.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from cordwood.broker.throttle import is_named
from cordwood.errors import CorruptData, Error, StorageError, TruncationError
from cordwood.ids import NodeId, TopicId
from cordwood.log.epochs import EpochEnd
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
from cordwood.wire.compiler import maker
from cordwood.wire.messages import (
    FetchRequest,
    FetchRequestForgottenTopic,
    FetchRequestPartition,
    FetchRequestReplicaState,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

VERSION: Final = 17
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = (1 << 31) - 1
FIRST_REST_MS: Final = 20
THROTTLED_REST_MS: Final = 1000
ASKED_MAX: Final = 2

_wanted_partition: Final = maker(FetchRequestPartition)

PartitionKey = tuple[TopicId, int]


class Followed:
    """One partition that is followed, and what the leader was told about it."""

    __slots__ = ("behind", "in_session", "key", "partition", "rest_ms", "resting", "told_epoch")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.name.partition)
        self.told_epoch = -1
        self.in_session = False
        self.resting = False
        self.rest_ms = 0
        self.behind = True
        """Did the leader have more records when it last answered?"""


class Fetcher:
    """All partitions of one leader."""

    def __init__(self, broker: "Broker", leader: NodeId) -> None:
        self.leader = leader
        self._broker = broker
        self._followed: dict[PartitionKey, Followed] = {}
        self._changed: dict[Followed, None] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._asked = 0
        self._syncing = 0
        """How many answers wait until the records they brought are synced."""
        self._session_id = 0
        self._session_epoch = INITIAL_EPOCH
        self._has_no_session = False
        """Did the leader answer without a session? There may be no room for one, or nothing was left in it."""
        self._lost = 0
        """How many sessions were lost: answers to what was asked before that are ignored."""

    def __len__(self) -> int:
        return len(self._followed)

    # ------------------------------------------------------------------ what is followed

    def follow(self, partition: Partition) -> None:
        """Follow a partition from now on, or anew (in a new leader epoch). Call ``go_on`` after the last of them."""
        followed = self._followed.get((partition.topic_id, partition.name.partition))
        if followed is None or followed.partition is not partition:
            followed = Followed(partition)
            followed.in_session = self._forgotten.pop(followed.key, 0) is None
            self._followed[followed.key] = followed
        followed.resting = False
        followed.rest_ms = 0
        self._broker.replicas.forget_unknown(self._broker, partition)
        self._changed[followed] = None

    def drop(self, partition: Partition) -> None:
        followed = self._followed.pop((partition.topic_id, partition.name.partition), None)
        if followed is not None:
            self._leave_session(followed)

    def tell_all(self) -> None:
        """Tell the leader afresh where this broker is in every partition."""
        self._lost += 1
        self._asked = 0
        self._session_epoch = INITIAL_EPOCH
        self._forgotten.clear()
        for followed in self._followed.values():
            followed.in_session = False
        self._changed = {followed: None for followed in self._followed.values() if not followed.resting}

    def _leave_session(self, followed: Followed) -> None:
        self._changed.pop(followed, None)
        if followed.in_session:
            followed.in_session = False
            self._forgotten[followed.key] = None

    # ------------------------------------------------------------------ asking

    def go_on(self, *, at_once: bool = False) -> None:
        """Ask for more, if no request is in flight; *at_once*: even then, if there is something to say."""
        broker = self._broker
        if self._syncing or not broker.peers.is_up(self.leader):
            return
        has_news = bool(self._changed or self._forgotten)
        if self._asked and not (at_once and has_news and self._asked < ASKED_MAX and self._session_epoch):
            return
        request = self._request()
        if request is None:
            return
        self._asked += 1
        broker.peers.request(self.leader, request, VERSION, partial(self._answered, self._lost))

    def _request(self) -> FetchRequest | None:
        """None if there is nothing to fetch."""
        broker = self._broker
        config = broker.config
        self._hold_back_throttled()
        if not self._followed and not self._forgotten:
            return None
        request = FetchRequest(
            replica_state=FetchRequestReplicaState(
                replica_id=broker.node, replica_epoch=broker.image.broker_epoch(broker.node)
            ),
            # A session begins with its first answer, which must not wait: what comes next may be urgent.
            max_wait_ms=config.replica_fetch_wait_max_ms if self._session_epoch or self._has_no_session else 0,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=self._take_changed(config.replica_fetch_max_bytes),
            forgotten_topics_data=self._take_forgotten(),
        )
        if self._session_epoch == INITIAL_EPOCH and not request.topics:
            return None
        if self._session_epoch != INITIAL_EPOCH:
            self._session_epoch = 1 if self._session_epoch == EPOCH_MAX else self._session_epoch + 1
        return request

    def _take_changed(self, max_bytes: int) -> list[FetchRequestTopic]:
        changed, self._changed = self._changed, {}
        if self._session_epoch == INITIAL_EPOCH:
            changed = {followed: None for followed in self._followed.values() if not followed.resting}
        topics: dict[TopicId, list[FetchRequestPartition]] = {}
        for followed in changed:
            partition = followed.partition
            log = partition.log
            followed.in_session = True
            self._forgotten.pop(followed.key, None)  # the leader forgets what is named and forgotten
            followed.told_epoch = partition.leader_epoch
            wanted = _wanted_partition(
                partition=partition.name.partition,
                current_leader_epoch=partition.leader_epoch,
                fetch_offset=log.end_offset,
                last_fetched_epoch=log.latest_epoch,
                log_start_offset=log.log_start_offset,
                partition_max_bytes=max_bytes,
            )
            found = topics.get(partition.topic_id)
            if found is None:
                topics[partition.topic_id] = [wanted]
            else:
                found.append(wanted)
        return [FetchRequestTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]

    def _take_forgotten(self) -> list[FetchRequestForgottenTopic]:
        forgotten, self._forgotten = self._forgotten, {}
        topics: dict[TopicId, list[int]] = {}
        for topic_id, index in forgotten:
            topics.setdefault(topic_id, []).append(index)
        return [FetchRequestForgottenTopic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()]

    # ------------------------------------------------------------------ answers

    def _answered(self, lost: int, answer: object | None) -> None:
        if lost != self._lost:
            return
        self._asked -= 1
        if answer is None:
            self.tell_all()
            return
        assert isinstance(answer, FetchResponse)
        if answer.error_code != Error.NONE:
            self._refused(Error(answer.error_code))
            return
        self._has_no_session = answer.session_id == 0
        if self._has_no_session:
            self._session_id, self._session_epoch = 0, INITIAL_EPOCH
        elif self._session_epoch == INITIAL_EPOCH:
            self._session_id, self._session_epoch = answer.session_id, 1
        unsynced = self._take(answer)
        if unsynced:
            # The next fetch offset tells the leader what this broker has, and has safely on disk if a topic asks for
            # that.
            self._syncing += 1
            self._broker.replicas.syncs.wait(unsynced, self._synced, self._broker.effects)
        else:
            self.go_on()

    def _synced(self) -> None:
        self._syncing -= 1
        self.go_on()

    def _refused(self, error: Error) -> None:
        """The session is over; a new one may begin at once, unless the leader refuses this broker altogether."""
        self.tell_all()
        if error in (Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH):
            self.go_on()
            return
        broker = self._broker
        broker.logger.warning("broker %d refuses to be followed: %s", self.leader, error.name)
        deadline_ms = broker.now.mono_ms + broker.config.replica_fetch_backoff_ms
        broker.timers.at(deadline_ms, self._try_again)

    def _try_again(self, _: Instant) -> None:
        self.go_on()

    def _take(self, response: FetchResponse) -> list[Partition]:
        """Append what was fetched. Returns the partitions that must be synced before the leader is told."""
        unsynced = []
        for topic in response.responses:
            for answer in topic.partitions:
                followed = self._followed.get((TopicId(topic.topic_id), answer.partition_index))
                if followed is None or followed.resting or followed.told_epoch != followed.partition.leader_epoch:
                    continue
                try:
                    self._take_one(followed, answer)
                except TruncationError:
                    raise  # it may be half done: only a start with recovery of the log can tell what is there
                except (StorageError, CorruptData) as error:
                    if not followed.rest_ms:  # otherwise it was logged before
                        self._broker.logger.error("%s could not be replicated: %s", followed.partition.name, error)
                    self._rest(followed)
                if answer.records and followed.partition.sync_due():
                    unsynced.append(followed.partition)
        return unsynced

    def _take_one(self, followed: Followed, answer: FetchResponsePartition) -> None:
        partition = followed.partition
        replicas, broker = self._broker.replicas, self._broker
        if answer.error_code != Error.NONE:
            self._refused_one(followed, answer)
            return
        if answer.diverging_epoch is not None:
            self._cut(followed, EpochEnd(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset))
            return
        if answer.records:
            records = answer.records
            assert isinstance(records, memoryview)
            if partition.has_already(records):
                return
            replicas.append(broker, partition, records)
            broker.replication.received_as_follower(partition, len(records))
            self._changed[followed] = None
        followed.rest_ms = 0
        followed.behind = answer.high_watermark > partition.log.end_offset
        partition.follow(answer.high_watermark)
        if replicas.follow_start(broker, partition, answer.log_start_offset):
            self._changed[followed] = None

    def _cut(self, followed: Followed, diverging: EpochEnd) -> None:
        partition = followed.partition
        before = partition.log.end_offset, partition.log.latest_epoch
        self._broker.replicas.truncate(self._broker, partition, diverging)
        if (partition.log.end_offset, partition.log.latest_epoch) == before:
            self._broker.logger.error("%s cannot be cut as its leader asks: %s", partition.name, diverging)
            self._rest(followed)
        else:
            self._changed[followed] = None

    def _refused_one(self, followed: Followed, answer: FetchResponsePartition) -> None:
        """If the leader does not know its role yet, or no longer has it, ask again later, or when roles change."""
        partition = followed.partition
        if answer.error_code == Error.OFFSET_OUT_OF_RANGE and answer.log_start_offset > partition.log.end_offset:
            self._broker.replicas.restart(self._broker, partition, answer.log_start_offset)
            self._changed[followed] = None
            return
        if not followed.rest_ms:
            name, text = Error(answer.error_code).name, "%s is not followed for a while: broker %d says %s"
            self._broker.logger.info(text, partition.name, self.leader, name)
        self._rest(followed)

    # ------------------------------------------------------------------ resting

    def _rest(self, followed: Followed) -> None:
        longest_ms = max(self._broker.config.replica_fetch_backoff_ms, 1)
        followed.rest_ms = min(max(2 * followed.rest_ms, FIRST_REST_MS), longest_ms)
        self._hold_back(followed, followed.rest_ms)

    def _hold_back(self, followed: Followed, rest_ms: int) -> None:
        followed.resting = True
        self._leave_session(followed)
        broker = self._broker
        broker.timers.at(broker.now.mono_ms + rest_ms, partial(self._rested, followed))

    def _rested(self, followed: Followed, _: Instant) -> None:
        if followed.resting and self._followed.get(followed.key) is followed:
            followed.resting = False
            self._changed[followed] = None
            self.go_on(at_once=True)

    def _hold_back_throttled(self) -> None:
        """Throttled partitions that are behind wait while too much has been received."""
        broker = self._broker
        wait_ms = broker.replication.follower_rate.wait_ms(broker.now.mono_ms)
        if wait_ms <= 0:
            return
        for followed in list(self._followed.values()):
            replicas = followed.partition.log.config.follower_replication_throttled_replicas
            if (
                replicas
                and followed.behind
                and not followed.resting
                and is_named(replicas, followed.partition, broker.node)
            ):
                # The rate may be raised, or the throttle removed, long before that much time has passed.
                self._hold_back(followed, min(wait_ms, THROTTLED_REST_MS))

    def check(self) -> None:
        for key, followed in self._followed.items():
            assert followed.key == key
            assert followed.partition.leader == self.leader
            assert not followed.partition.gone
            assert not (followed.resting and followed in self._changed)
            assert key not in self._forgotten or not followed.in_session
        assert all(self._followed.get(followed.key) is followed for followed in self._changed)
        assert 0 <= self._asked <= ASKED_MAX
