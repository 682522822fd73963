"""A cluster's health: its brokers, what each of them leads, and the partitions that lack replicas or a leader."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType, TopicMetadata

from cordwood.wire.messages import DescribeClusterRequest, DescribeClusterResponse

from .connect import ANSWER_TIMEOUT_S, all_topics, error_of
from .raw_cluster import Cluster, raise_for
from .raw_connection import shown
from .raw_settings import RawSettings

CONFIGS_AT_ONCE = 200
MIN_ISR = "min.insync.replicas"


class Trouble(Enum):
    """What a partition lacks, the worst first."""

    OFFLINE = "offline"
    """It has no leader."""
    UNDER_MIN_ISR = "under min ISR"
    """Producers with acks=all are refused."""
    UNDER_REPLICATED = "under-replicated"
    """A replica is not in sync."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, and everything that it lacks."""

    topic: str
    number: int
    leader: int
    """-1 if it has no leader."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """One broker. Without an address it is offline, and partitions are waiting for it."""

    id: int
    address: str | None
    rack: str | None
    leads: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the whole cluster."""

    cluster_id: str
    controller: int | None
    brokers: Sequence[BrokerHealth]
    topics: int
    partitions: Sequence[Partition]

    def with_trouble(self, trouble: Trouble) -> list[Partition]:
        return [partition for partition in self.partitions if trouble in partition.troubles]


def read_health(admin: AdminClient, settings: RawSettings) -> Health:
    """Ask the cluster for everything.

    Raises:
        ClientError, RawError: the cluster did not answer.
    """
    described = _describe(settings)
    topics = all_topics(admin)
    needed = min_isrs(admin, topics)
    found = [p for name, topic in sorted(topics.items()) for p in judged(name, topic, needed.get(name, 1))]
    addresses = {broker.broker_id: (shown((broker.host, broker.port)), broker.rack) for broker in described.brokers}
    return Health(
        cluster_id=described.cluster_id,
        controller=described.controller_id if described.controller_id >= 0 else None,
        brokers=_brokers(addresses, found),
        topics=len(topics),
        partitions=found,
    )


def _describe(settings: RawSettings) -> DescribeClusterResponse:
    """Ask with DescribeCluster: Metadata may still name a broker that has just gone."""
    cluster = Cluster(settings)

    def attempt() -> DescribeClusterResponse:
        answer = cluster.any_connection().ask(DescribeClusterRequest(), DescribeClusterResponse)
        raise_for("the cluster cannot be described", answer.error_code, answer.error_message)
        return answer

    try:
        return cluster.retrying("the cluster cannot be described", attempt)
    finally:
        cluster.close()


def judged(name: str, topic: TopicMetadata, min_isr: int) -> list[Partition]:
    """A topic's partitions, with their troubles. No more in-sync replicas are demanded than there are replicas."""
    found = []
    for number, p in sorted(topic.partitions.items()):
        troubles = []
        if p.leader < 0:
            troubles.append(Trouble.OFFLINE)
        if len(p.isrs) < min(min_isr, len(p.replicas)):
            troubles.append(Trouble.UNDER_MIN_ISR)
        if len(p.isrs) < len(p.replicas):
            troubles.append(Trouble.UNDER_REPLICATED)
        found.append(Partition(name, number, p.leader, tuple(p.replicas), tuple(sorted(p.isrs)), tuple(troubles)))
    return found


def min_isrs(admin: AdminClient, topics: Iterable[str]) -> dict[str, int]:
    """How many in-sync replicas each topic demands; topics whose settings may not be read are left out."""
    names = iter(topics)
    found: dict[str, int] = {}
    while some := list(islice(names, CONFIGS_AT_ONCE)):
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in some]
        for resource, future in admin.describe_configs(resources, request_timeout=ANSWER_TIMEOUT_S).items():
            if error_of(future) is None and (entry := future.result().get(MIN_ISR)) is not None:
                found[resource.name] = int(entry.value)
    return found


def _brokers(addresses: Mapping[int, tuple[str, str | None]], partitions: Sequence[Partition]) -> list[BrokerHealth]:
    known = sorted({*addresses, *(replica for partition in partitions for replica in partition.replicas)})
    return [
        BrokerHealth(
            id=number,
            address=addresses[number][0] if number in addresses else None,
            rack=addresses[number][1] if number in addresses else None,
            leads=sum(partition.leader == number for partition in partitions),
            replicas=sum(number in partition.replicas for partition in partitions),
            in_sync=sum(number in partition.in_sync for partition in partitions),
        )
        for number in known
    ]
