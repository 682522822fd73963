"""A blocking Kafka client for whole record batches: for Spark's tasks, and for whatever else moves records in bulk.

It works with Apache Kafka from 2.8 on, and with Cordwood. It starts no threads, and must be used by one thread only;
each process makes its own from ``RawSettings``, which can be sent anywhere. It waits for changes of leaders, lost
connections and brokers that are away for a while, up to ``RawSettings.timeout_ms``.

Processes that Spark starts to plan a query ask for topics and offsets, and the query waits while they import what they
need. So code that only some clients need is imported at its first use.

::

    with RawClient(RawSettings("127.0.0.1:9092")) as client:
        latest = client.offsets({("orders", 0): LATEST})
        answer = client.fetch("orders", 0, 17)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from cordwood.ports import Buffer
from cordwood.wire.messages.produce_fetch import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
)

from .raw_cluster import Cluster, PartitionMeta, TopicMeta, raise_for
from .raw_errors import (
    AuthenticationFailed,
    OffsetOutOfRange,
    RawError,
    RequestRefused,
    Retry,
    Unavailable,
    UnknownTopic,
)
from .raw_settings import READ_COMMITTED, READ_UNCOMMITTED, WAIT_MS, RawSettings, Security

if TYPE_CHECKING:
    from .raw_fetch import Fetched
    from .raw_log_dirs import LogDir
    from .raw_produce import Publisher

__all__ = [
    "EARLIEST",
    "LATEST",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AuthenticationFailed",
    "FoundOffset",
    "OffsetOutOfRange",
    "Partition",
    "PartitionMeta",
    "RawClient",
    "RawError",
    "RawSettings",
    "RequestRefused",
    "Security",
    "TopicMeta",
    "Unavailable",
    "UnknownTopic",
]

LATEST = -1
EARLIEST = -2
_CLIENT = -1

Partition = tuple[str, int]
"""A topic's name and the partition's number."""


class FoundOffset(NamedTuple):
    """The answer when asked for an offset; both fields are -1 if no record has that timestamp or a later one.

    For the latest and the earliest offset, the timestamp is -1."""

    offset: int
    timestamp: int


class RawClient:
    """See the module's docstring. Every method raises a kind of ``RawError``, whose text says what to do."""

    def __init__(self, settings: RawSettings) -> None:
        self.settings = settings
        self._cluster = Cluster(settings)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        self._cluster.check()

    @property
    def cluster_id(self) -> str:
        """Empty for a cluster that has none."""
        return self._cluster.retrying("the cluster's id cannot be read", lambda: self._cluster.cluster_id)

    def topics(self, names: Sequence[str] | None = None, *, create: bool = False) -> dict[str, TopicMeta]:
        """The topics with these names (None: all, including internal ones), freshly read; those that do not exist are
        left out.

        With *create*, a broker that creates topics on demand is asked to do so, and waited for.
        """

        def attempt() -> dict[str, TopicMeta]:
            if create:
                return {name: self._cluster.topic(name, create=True) for name in names or ()}
            return self._cluster.read_metadata(names)

        return self._cluster.retrying("the topics cannot be read", attempt)

    def offsets(self, wanted: Mapping[Partition, int]) -> dict[Partition, FoundOffset]:
        """For each partition: LATEST, EARLIEST, or the first offset whose record is not older than a time in ms.

        This takes one request for each leader. What counts as latest depends on ``settings.isolation``.
        """
        found: dict[Partition, FoundOffset] = {}

        def attempt() -> None:
            leaders = self._cluster.by_leader(p for p in wanted if p not in found)
            requests: dict[int, object] = {
                node: self._offsets_request({p: wanted[p] for p in partitions}) for node, partitions in leaders.items()
            }
            for answer in self._cluster.ask_each(requests, ListOffsetsResponse).values():
                _take_offsets(answer, found)
            if len(found) < len(wanted):
                raise_for("some partitions were not answered for", 13)

        self._cluster.retrying("the offsets cannot be read", attempt)
        return {partition: found[partition] for partition in wanted}

    def _offsets_request(self, wanted: Mapping[Partition, int]) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsRequestPartition]] = {}
        for (topic, partition), timestamp in wanted.items():
            _, epoch = self._cluster.leader(topic, partition)
            entry = ListOffsetsRequestPartition(
                partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
            )
            topics.setdefault(topic, []).append(entry)
        return ListOffsetsRequest(
            replica_id=_CLIENT,
            isolation_level=self.settings.isolation,
            topics=[ListOffsetsRequestTopic(name=name, partitions=entries) for name, entries in topics.items()],
            timeout_ms=self.settings.request_timeout_ms,
        )

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        wait_ms: int = WAIT_MS,
    ) -> "Fetched":
        """Whole batches from the leader, from *offset* on, at least one if there is any within *wait_ms*.

        The records are valid until the client is used again.

        Raises:
            OffsetOutOfRange: the partition does not have this offset.
            UnknownTopic: there is no such partition.
        """
        from .raw_fetch import Wanted, fetch_once

        wanted = Wanted(topic, partition, isolation)
        limit = max_bytes or self.settings.fetch_bytes
        return self._cluster.retrying(
            f"{wanted} cannot be read",
            lambda: fetch_once(self._cluster, wanted, offset, max_bytes=limit, wait_ms=wait_ms),
        )

    def fetch_range(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        max_bytes: int | None = None,
        isolation: int = READ_UNCOMMITTED,
    ) -> "Iterator[Fetched]":
        """Like ``fetch``, for everything from *start* up to *end*, with the next request always in flight.

        Reads from a follower in ``settings.rack`` if the leader names one. *end* must not be after the partition's
        readable end. Each answer is valid until the next one is asked for.
        """
        from .raw_fetch import Wanted, fetch_range

        wanted = Wanted(topic, partition, isolation)
        return fetch_range(self._cluster, wanted, start, end, max_bytes=max_bytes or self.settings.fetch_bytes)

    def produce(
        self, topic: str, batches: Mapping[int, Buffer], *, acks: int = -1, timeout_ms: int | None = None
    ) -> dict[int, int]:
        """Append one batch to each of several partitions; return their base offsets, by partition.

        This takes one request for each leader. Batches without a producer id may be stored twice if a connection
        breaks. For batches with one, -1 means that the batch was stored before, at an offset that the broker no longer
        remembers.
        """
        from .raw_produce import Producing

        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        producing = Producing(self._cluster, topic, batches, acks=acks, timeout_ms=limit_ms)
        return self._cluster.retrying(f"{topic} cannot be written to", producing.attempt)

    def publisher(
        self, topic: str, *, acks: int = -1, timeout_ms: int | None = None, under_way: int = 4
    ) -> "Publisher":
        """A publisher for many batches, with several requests in flight. Until its ``flush`` returns, the client must
        not be used for anything else."""
        from .raw_produce import Publisher

        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        return Publisher(self._cluster, topic, acks=acks, timeout_ms=limit_ms, under_way=under_way)

    def init_producer_id(self) -> tuple[int, int]:
        """A new producer id, and its epoch."""
        from . import raw_produce

        return self._cluster.retrying("no producer id was given", lambda: raw_produce.producer_id(self._cluster))

    def log_dirs(self, partitions: Iterable[Partition]) -> "dict[Partition, LogDir]":
        """Where the leaders store these partitions. Those whose leader does not or may not tell are left out."""
        from . import raw_log_dirs

        wanted = list(partitions)
        return self._cluster.retrying(
            "the log directories cannot be read", lambda: raw_log_dirs.log_dirs(self._cluster, wanted)
        )

    def topic_settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """The values of these settings for each topic, such as ``cleanup.policy``."""
        from . import raw_configs

        return self._cluster.retrying(
            "the topics' settings cannot be read", lambda: raw_configs.topic_settings(self._cluster, topics, names)
        )

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets for a group from outside; it must have no members that commit."""
        from . import raw_group

        if offsets:
            self._cluster.retrying(
                f"group {group} cannot commit", lambda: raw_group.commit(self._cluster, group, offsets)
            )

    def committed(self, group: str) -> dict[Partition, int]:
        """What a group has committed; empty if there is no such group."""
        from . import raw_group

        what = f"the offsets of group {group} cannot be read"
        return self._cluster.retrying(what, lambda: raw_group.committed(self._cluster, group))


def _take_offsets(answer: ListOffsetsResponse, found: dict[Partition, FoundOffset]) -> None:
    trouble: Retry | UnknownTopic | None = None
    for topic in answer.topics:
        for part in topic.partitions:
            name = (topic.name, part.partition_index)
            try:
                raise_for(f"the offsets of {name[0]}-{name[1]} cannot be read", part.error_code, topic=name)
            except (Retry, UnknownTopic) as reason:
                trouble = trouble or reason
            else:
                found[name] = FoundOffset(part.offset, part.timestamp)
    if trouble is not None:
        raise trouble
