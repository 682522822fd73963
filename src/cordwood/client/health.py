"""How a cluster is: its brokers, what each of them leads, and the partitions that miss replicas or a leader."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType, TopicMetadata

from .connect import ANSWER_TIMEOUT_S, ClientError, all_topics, cause, error_of, sentence

CONFIGS_AT_ONCE = 200
MIN_ISR = "min.insync.replicas"


class Trouble(Enum):
    """What a partition misses, the worst first."""

    OFFLINE = "offline"
    """Nobody leads it."""
    UNDER_MIN_ISR = "under min ISR"
    """Writers that want all replicas are refused."""
    UNDER_REPLICATED = "under-replicated"
    """A replica is not in sync."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, and all that it misses."""

    topic: str
    number: int
    leader: int
    """-1 if nobody leads it."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """One broker. Without an address it is away, and partitions wait for it."""

    id: int
    address: str | None
    rack: str | None
    leads: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Health:
    """All of it."""

    cluster_id: str
    controller: int | None
    brokers: Sequence[BrokerHealth]
    topics: int
    partitions: Sequence[Partition]

    def with_trouble(self, trouble: Trouble) -> list[Partition]:
        return [partition for partition in self.partitions if trouble in partition.troubles]


def read_health(admin: AdminClient) -> Health:
    """Ask for everything.

    Raises:
        ClientError: the cluster did not answer.
    """
    try:
        described = admin.describe_cluster(request_timeout=ANSWER_TIMEOUT_S).result()
    except KafkaException as exception:
        raise ClientError(sentence(cause(exception))) from None
    topics = all_topics(admin)
    needed = min_isrs(admin, topics)
    found = [
        partition for name, topic in sorted(topics.items()) for partition in judged(name, topic, needed.get(name, 1))
    ]
    addresses = {node.id: (_address(node.host, node.port), node.rack) for node in described.nodes}
    return Health(
        cluster_id=described.cluster_id or "",
        controller=described.controller.id if described.controller is not None else None,
        brokers=_brokers(addresses, found),
        topics=len(topics),
        partitions=found,
    )


def judged(name: str, topic: TopicMetadata, min_isr: int) -> list[Partition]:
    """A topic's partitions. No broker can have more in-sync replicas than there are replicas."""
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
    """How many in-sync replicas each topic wants; nothing of those that may not be looked at."""
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


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
