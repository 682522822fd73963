"""Changes of the metadata: a function checks a wish against the image and returns the operations that fulfil it.

Nothing happens here. A wish that can not be fulfilled raises ``Refused`` with Kafka's code and a sentence for a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cordwood.cluster import layout
from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.cluster.placement import place
from cordwood.cluster.topic_names import check_name, collision
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.ports import Create, Delete, Entropy, Set, StoreOp

PARTITIONS_MAX = 100_000  # of one topic
PARTITIONS_PER_REQUEST_MAX = 10_000  # new ones of all topics together, as in Kafka (KAFKA-17870)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic as it will be created."""

    name: TopicName
    id: TopicId
    assignment: list[tuple[NodeId, ...]]
    config: Mapping[str, str] = field(default_factory=dict)


def new_uuid(entropy: Entropy) -> UUID:
    """A random id whose text does not begin with '-': on a command line it would look like an option."""
    while True:
        value = UUID(int=entropy.getrandbits(128), version=4)
        if not layout.uuid_text(value).startswith("-"):
            return value


def check_number_of_new(partitions: int, *, room: int) -> None:
    """Refuse more new partitions than one request may make without a long pause, or than there is *room* for."""
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        text = f"One request can create {PARTITIONS_PER_REQUEST_MAX} partitions, not {partitions}; send several."
        raise Refused(Error.POLICY_VIOLATION, text)
    if partitions > room:
        text = f"There is room for {room} more partitions, not for {partitions}; let the broker open more files."
        raise Refused(Error.POLICY_VIOLATION, text)


def plan_topic(
    image: MetadataImage,
    brokers: Sequence[NodeId],
    entropy: Entropy,
    *,
    name: str,
    partitions: int,
    replicas: int,
    manual: Mapping[int, Sequence[int]],
    config: Mapping[str, str],
) -> TopicPlan:
    """Check a new topic and place its partitions. *manual* maps partitions to brokers, or is empty."""
    topic = check_name(name)
    if topic in image.topics:
        raise Refused(Error.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
    other = collision(topic, image.similar(topic))
    if other is not None:
        raise Refused(
            Error.INVALID_TOPIC, f"Topic '{topic}' collides with existing topic '{other}': '.' and '_' count as one."
        )
    if manual:
        if partitions != -1 or replicas != -1:
            raise Refused(
                Error.INVALID_REQUEST,
                "With a manual assignment, leave the numbers of partitions and replicas at -1.",
            )
        assignment = check_assignment(manual, brokers, first=0)
    else:
        assignment = _place_new(brokers, entropy, partitions, replicas)
    return TopicPlan(topic, TopicId(new_uuid(entropy)), assignment, config)


def _place_new(brokers: Sequence[NodeId], entropy: Entropy, partitions: int, replicas: int) -> list[tuple[NodeId, ...]]:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise Refused(Error.INVALID_PARTITIONS, f"A topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}.")
    if not 1 <= replicas <= len(brokers):
        raise Refused(
            Error.INVALID_REPLICATION_FACTOR,
            f"Replication factor {replicas} is not possible with {len(brokers)} live broker(s).",
        )
    start = entropy.getrandbits(16) % len(brokers)
    return place(brokers, partitions=partitions, replicas=replicas, start=start)


def check_assignment(
    manual: Mapping[int, Sequence[int]], brokers: Sequence[NodeId], *, first: int
) -> list[tuple[NodeId, ...]]:
    """A client's own assignment, for partitions numbered from *first* without gaps."""
    expected = range(first, first + len(manual))
    if sorted(manual) != list(expected):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"Partitions must be numbered from {first} without gaps.")
    assignment = [tuple(NodeId(node) for node in manual[index]) for index in expected]
    for replicas in assignment:
        if not replicas:
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "A partition needs at least one replica.")
        if len(replicas) != len(assignment[0]):
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "All partitions need the same number of replicas.")
        if len(set(replicas)) != len(replicas):
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"A broker appears twice in {list(replicas)}.")
        unknown = sorted(set(replicas) - set(brokers))
        if unknown:
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"Unknown broker(s) {unknown} in {list(replicas)}.")
    return assignment


def create_topic(plan: TopicPlan) -> list[StoreOp]:
    operations: list[StoreOp] = [Create(layout.topic_path(plan.name), layout.topic_data(plan.id, plan.assignment))]
    operations += _new_partitions(plan.name, plan.assignment, first=0)
    # Even without settings: then altering and deleting them always meet in this node's version.
    operations.append(Create(layout.topic_config_path(plan.name), layout.config_data(plan.config)))
    return operations


def _new_partitions(topic: TopicName, assignment: Sequence[tuple[NodeId, ...]], *, first: int) -> list[StoreOp]:
    return [
        Create(
            layout.partition_path(topic, index),
            layout.partition_data(leader=replicas[0], leader_epoch=0, isr=replicas, controller_epoch=0),
        )
        for index, replicas in enumerate(assignment, first)
    ]


def delete_topic(image: MetadataImage, topic: TopicInfo) -> list[StoreOp]:
    """The topic goes; its id is kept until the last of its files is gone, so that a crash in between does no harm."""
    config = layout.topic_config_path(topic.name)
    return [
        Delete(layout.topic_path(topic.name)),
        Delete(config, image.versions[config]),
        Create(layout.deleted_topic_path(topic.id), layout.deleted_topic_data(topic.name)),
    ]


def plan_partitions(
    topic: TopicInfo, brokers: Sequence[NodeId], *, count: int, manual: Sequence[Sequence[int]] | None
) -> list[tuple[NodeId, ...]]:
    """Where the additional partitions go that bring *topic* to *count*."""
    present = len(topic.partitions)
    if count < present:
        raise Refused(
            Error.INVALID_PARTITIONS,
            f"Topic '{topic.name}' has {present} partitions; the number can grow, not shrink to {count}.",
        )
    if count == present:
        raise Refused(Error.INVALID_PARTITIONS, f"Topic '{topic.name}' already has {present} partitions.")
    if count > PARTITIONS_MAX:
        raise Refused(Error.INVALID_PARTITIONS, f"A topic has at most {PARTITIONS_MAX} partitions, not {count}.")
    replicas = len(topic.partitions[0].replicas)
    if manual is None:
        if replicas > len(brokers):
            raise Refused(
                Error.INVALID_REPLICATION_FACTOR,
                f"Replication factor {replicas} is not possible with {len(brokers)} live broker(s).",
            )
        first = topic.partitions[0].replicas[0]
        start = brokers.index(first) if first in brokers else 0
        return place(brokers, partitions=count, replicas=replicas, start=start)[present:]
    if len(manual) != count - present:
        raise Refused(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"{count - present} partitions are to be added, but {len(manual)} assignments are given.",
        )
    if any(len(nodes) != replicas for nodes in manual):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"Topic '{topic.name}' has {replicas} replica(s) of each.")
    return check_assignment(dict(enumerate(manual, present)), brokers, first=present)


def add_partitions(topic: TopicInfo, added: Sequence[tuple[NodeId, ...]]) -> list[StoreOp]:
    assignment = [partition.replicas for partition in topic.partitions]
    return [
        Set(layout.topic_path(topic.name), layout.topic_data(topic.id, [*assignment, *added])),
        *_new_partitions(topic.name, added, first=len(assignment)),
    ]


def begin_epochs(image: MetadataImage, node: NodeId) -> list[StoreOp]:
    """A new leader epoch for every partition that *node* leads, because its logs may have lost their unsynced ends.

    What is written from now on then differs from what was lost, and a client that read that can tell (KIP-320).
    """
    return [
        Set(
            layout.partition_path(topic.name, partition.index),
            layout.partition_data(
                leader=node, leader_epoch=partition.leader_epoch + 1, isr=partition.isr, controller_epoch=0
            ),
        )
        for topic in image.topics.values()
        for partition in topic.partitions
        if partition.leader == node
    ]


def set_config(image: MetadataImage, path: str, config: Mapping[str, str]) -> list[StoreOp]:
    """Replace all settings of one topic or broker."""
    if path in image.versions:
        return [Set(path, layout.config_data(config), image.versions[path])]
    return [Create(path, layout.config_data(config))]


def take_producer_ids(image: MetadataImage, node: NodeId) -> tuple[int, list[StoreOp]]:
    """The first id of a block that is this broker's alone, and how to claim it."""
    first = image.last_producer_id + 1
    data = layout.producer_ids_data(node, first)
    version = image.versions.get(layout.PRODUCER_IDS)
    if version is None:
        return first, [Create(layout.PRODUCER_IDS, data)]
    return first, [Set(layout.PRODUCER_IDS, data, version)]
