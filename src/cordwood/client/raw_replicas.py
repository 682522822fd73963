"""Replicas and leaders of partitions: starting, cancelling and listing moves between brokers; elections.

confluent-kafka has no call for moves, and its call for elections fails on some Pythons, so both go through the raw
client. Requests go to the controller, or to the broker that stands in for it where clients cannot reach it.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from cordwood.errors import Error
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
    AlterPartitionReassignmentsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsRequestTopic,
    DescribeLogDirsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopic,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
)

from .raw_cluster import Cluster, raise_for
from .raw_errors import ConnectionLost, Retry, error_of
from .raw_settings import RawSettings

R = TypeVar("R")

NO_CONTROLLER = -1
FOR_NOW = (Error.NOT_CONTROLLER, Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT)

Partition = tuple[str, int]
"""A topic's name and the partition's number."""


class Move(NamedTuple):
    """A partition being moved: all its replicas, those being added, those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the move."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


class Refusal(NamedTuple):
    """Why a partition was not moved, or no leader was elected."""

    error: Error
    text: str


class Replicas:
    """The replicas of one cluster's partitions. Every method raises ``RawError`` (one of its kinds)."""

    def __init__(self, settings: RawSettings) -> None:
        self._settings = settings
        self._cluster = Cluster(settings)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def move(self, targets: Mapping[Partition, Sequence[int]]) -> dict[Partition, Refusal]:
        """Move partitions to these replicas, the preferred leader first. Returns those that were refused."""
        return self._alter({partition: list(replicas) for partition, replicas in targets.items()})

    def cancel(self, partitions: Iterable[Partition]) -> dict[Partition, Refusal]:
        """Cancel the moves of partitions, so that they stay where they were. Returns those that were refused."""
        return self._alter(dict.fromkeys(partitions))

    def racks(self) -> dict[int, str]:
        """The rack of each broker that is online and has one."""

        def attempt() -> dict[int, str]:
            answer = self._cluster.any_connection().ask(MetadataRequest(topics=[]), MetadataResponse)
            return {broker.node_id: broker.rack for broker in answer.brokers if broker.rack is not None}

        return self._cluster.retrying("the brokers cannot be listed", attempt)

    def under_way(self) -> dict[Partition, Move]:
        """All unfinished moves, in the order of the partitions."""
        request = ListPartitionReassignmentsRequest(timeout_ms=self._settings.request_timeout_ms, topics=None)

        def attempt() -> dict[Partition, Move]:
            answer = self._ask_controller(request, ListPartitionReassignmentsResponse)
            raise_for("the moves cannot be listed", answer.error_code, answer.error_message)
            return {
                (topic.name, p.partition_index): Move(
                    tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
                )
                for topic in answer.topics
                for p in topic.partitions
            }

        return dict(sorted(self._cluster.retrying("the moves cannot be listed", attempt).items()))

    def sizes(self, node_id: int, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The bytes that a broker has of each of these partitions; empty if the broker does not answer."""
        topics = [DescribeLogDirsRequestTopic(topic=n, partitions=ps) for n, ps in _by_topic(partitions).items()]
        request = DescribeLogDirsRequest(topics=topics)
        try:
            answer = self._cluster.connection(node_id).ask(request, DescribeLogDirsResponse)
        except ConnectionLost:
            return {}
        return {
            (topic.name, p.partition_index): p.partition_size
            for directory in answer.results
            for topic in directory.topics
            for p in topic.partitions
            if not p.is_future_key
        }

    def elect(self, partitions: Iterable[Partition] | None, *, unclean: bool) -> dict[Partition, Refusal | None]:
        """Elect the preferred leaders of partitions (None: all); with *unclean*, any replica where no other may lead.

        Returns the outcome for each; if all were asked for, those that already have the right leader are left out.
        """
        topics = None if partitions is None else _by_topic(partitions)
        request = ElectLeadersRequest(
            election_type=int(unclean),
            topic_partitions=None
            if topics is None
            else [ElectLeadersRequestTopic(topic=name, partitions=numbers) for name, numbers in topics.items()],
            timeout_ms=self._settings.request_timeout_ms,
        )

        def attempt() -> dict[Partition, Refusal | None]:
            answer = self._ask_controller(request, ElectLeadersResponse)
            raise_for("nobody can be elected", answer.error_code)
            results = {
                (topic.topic, p.partition_id): _refusal(p.error_code, p.error_message) if p.error_code else None
                for topic in answer.replica_election_results
                for p in topic.partition_result
            }
            _raise_for_now(results)
            return results

        return dict(sorted(self._cluster.retrying("nobody can be elected", attempt).items()))

    def _alter(self, wanted: Mapping[Partition, list[int] | None]) -> dict[Partition, Refusal]:
        topics: dict[str, list[AlterPartitionReassignmentsRequestPartition]] = {}
        for (topic, partition), replicas in wanted.items():
            entry = AlterPartitionReassignmentsRequestPartition(partition_index=partition, replicas=replicas)
            topics.setdefault(topic, []).append(entry)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._settings.request_timeout_ms,
            topics=[AlterPartitionReassignmentsRequestTopic(name=n, partitions=ps) for n, ps in topics.items()],
        )

        def attempt() -> dict[Partition, Refusal]:
            answer = self._ask_controller(request, AlterPartitionReassignmentsResponse)
            raise_for("the partitions cannot be moved", answer.error_code, answer.error_message)
            refused = {
                (topic.name, p.partition_index): _refusal(p.error_code, p.error_message)
                for topic in answer.responses
                for p in topic.partitions
                if p.error_code
            }
            _raise_for_now(refused)
            return refused

        return self._cluster.retrying("the partitions cannot be moved", attempt)

    def _ask_controller(self, request: object, answer: type[R]) -> R:
        metadata = self._cluster.any_connection().ask(MetadataRequest(topics=[]), MetadataResponse)
        if metadata.controller_id == NO_CONTROLLER:
            raise Retry("the cluster has no controller now", Error.NOT_CONTROLLER)
        return self._cluster.connection(metadata.controller_id).ask(request, answer)


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _raise_for_now(refusals: Mapping[Partition, Refusal | None]) -> None:
    """Raise ``Retry`` if the cluster cannot change its metadata at the moment. Asking twice does no harm."""
    for (topic, partition), refusal in refusals.items():
        if refusal is not None and refusal.error in FOR_NOW:
            raise Retry(f"partition {partition} of {topic}", refusal.error, refusal.text)


def _refusal(code: int, message: str | None) -> Refusal:
    error = error_of(code)
    return Refusal(error, (message or error.name.lower().replace("_", " "))[:500])
