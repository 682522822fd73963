"""Changes of topics and settings: a function checks a request against the image and returns the operations for it.

Nothing is changed here. A request that cannot be carried out raises ``Refused`` with Kafka's error code and a sentence
for a person. Any broker may propose the operations; each of them names the version of the node that it was planned
from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cordwood.cluster import layout
from cordwood.cluster.election import new_state
from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.cluster.layout import Assignment, DeletedTopic
from cordwood.cluster.placement import Sites, place
from cordwood.cluster.reassignment import check_replicas
from cordwood.cluster.states import Live, State, same_topics, write_state
from cordwood.cluster.topic_names import check_name, collision
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.ports import Create, Delete, Entropy, Set, StoreOp

PARTITIONS_MAX = 100_000  # of one topic
METADATA_LOG = "__cluster_metadata"  # tools take a topic of this name for Kafka's own metadata log
PARTITIONS_PER_REQUEST_MAX = 10_000  # new partitions, for all topics together, as in Kafka (KAFKA-17870)


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
    """Refuse more new partitions than one request may create without a long pause, or than there is *room* for."""
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        text = f"One request can create {PARTITIONS_PER_REQUEST_MAX} partitions, not {partitions}; send several."
        raise Refused(Error.POLICY_VIOLATION, text)
    if partitions > room:
        text = f"There is room for {room} more partitions, not for {partitions}; let the broker open more files."
        raise Refused(Error.POLICY_VIOLATION, text)


def check_new_name(image: MetadataImage, name: str) -> TopicName:
    """The name of a topic that can be created."""
    topic = check_name(name)
    if topic == METADATA_LOG:
        raise Refused(Error.INVALID_REQUEST, f"'{topic}' is the log of Kafka's controllers; it cannot be created.")
    if topic in image.topics:
        raise Refused(Error.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")
    other = collision(topic, image.similar(topic))
    if other is not None:
        raise Refused(
            Error.INVALID_TOPIC, f"Topic '{topic}' collides with existing topic '{other}': '.' and '_' count as one."
        )
    return topic


def plan_topic(
    image: MetadataImage,
    entropy: Entropy,
    *,
    name: str,
    partitions: int,
    replicas: int,
    manual: Mapping[int, Sequence[int]],
    config: Mapping[str, str],
) -> TopicPlan:
    """Check a new topic and place its partitions. *manual* maps partitions to brokers, or is empty."""
    topic = check_new_name(image, name)
    if manual:
        if partitions != -1 or replicas != -1:
            raise Refused(
                Error.INVALID_REQUEST,
                "With a manual assignment, leave the numbers of partitions and replicas at -1.",
            )
        assignment = check_assignment(manual, image, first=0)
    else:
        assignment = _place_new(Sites.of(image), entropy, partitions, replicas)
    return TopicPlan(topic, TopicId(new_uuid(entropy)), assignment, config)


def _place_new(sites: Sites, entropy: Entropy, partitions: int, replicas: int) -> list[tuple[NodeId, ...]]:
    if replicas < 1:
        raise Refused(Error.INVALID_REPLICATION_FACTOR, f"A partition has 1 replica or more, not {replicas}.")
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise Refused(Error.INVALID_PARTITIONS, f"A topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}.")
    _check_sites(sites, replicas)
    start = entropy.getrandbits(16) % len(sites.brokers)
    return place(sites, partitions=partitions, replicas=replicas, start=start)


def _check_sites(sites: Sites, replicas: int) -> None:
    if not sites.brokers:
        raise Refused(Error.INVALID_REPLICATION_FACTOR, "No broker is there that could lead a partition.")
    if replicas > len(sites):
        text = f"Replication factor {replicas} is not possible with {len(sites)} broker(s)."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, text)


def check_assignment(
    manual: Mapping[int, Sequence[int]], image: MetadataImage, *, first: int
) -> list[tuple[NodeId, ...]]:
    """A client's own assignment, for partitions numbered from *first* without gaps."""
    expected = range(first, first + len(manual))
    if sorted(manual) != list(expected):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"Partitions must be numbered from {first} without gaps.")
    able = Live.of(image).able
    assignment = [check_replicas(manual[index], image.incarnations) for index in expected]
    for index, replicas in zip(expected, assignment, strict=True):
        if len(replicas) != len(assignment[0]):
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "All partitions need the same number of replicas.")
        if able.isdisjoint(replicas):
            text = f"None of the brokers {list(replicas)} of partition {index} is there now."
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, text)
    return assignment


def create_topic(image: MetadataImage, plan: TopicPlan, *, states_max: int = PARTITIONS_MAX) -> list[StoreOp]:
    """Create a topic, with the states of at most *states_max* partitions; the controller creates the others."""
    data = layout.topic_data(plan.id, [Assignment(replicas) for replicas in plan.assignment])
    return [
        Create(layout.topic_path(plan.name), data),
        *_new_partitions(image, plan.name, plan.assignment[:states_max], first=0),
        # Even without settings: so changes of the settings and deletion always conflict through this node's version.
        Create(layout.topic_config_path(plan.name), layout.config_data(plan.config)),
    ]


def _new_partitions(
    image: MetadataImage, topic: TopicName, assignment: Sequence[tuple[NodeId, ...]], *, first: int
) -> list[StoreOp]:
    live = Live.of(image)
    return [
        write_state(image, topic, index, new_state(replicas, live)) for index, replicas in enumerate(assignment, first)
    ]


def delete_topics(image: MetadataImage, topics: Sequence[TopicInfo]) -> list[StoreOp]:
    """Delete topics. Their ids are kept until the last of their files is gone, so a crash in between does no harm."""
    operations = [operation for topic in topics for operation in _delete(image, topic)]
    return operations + _count_deletion(image) if operations else []


def _delete(image: MetadataImage, topic: TopicInfo) -> list[StoreOp]:
    path, config = layout.topic_path(topic.name), layout.topic_config_path(topic.name)
    replicas = sorted({node for partition in topic.partitions for node in partition.replicas})
    mark = DeletedTopic(topic.name, tuple(replicas))
    return [
        Delete(path, image.versions[path]),
        *(Delete(each, image.versions[each]) for each in (config,) if each in image.versions),  # people delete, too
        Create(layout.deleted_topic_path(topic.id), layout.deleted_topic_data(mark)),
    ]


def _count_deletion(image: MetadataImage) -> list[StoreOp]:
    version = image.versions.get(layout.DELETIONS)
    return [] if version is None else [Set(layout.DELETIONS, str(version + 1).encode(), version)]


def forget_topic(image: MetadataImage, topic_id: TopicId, node: NodeId) -> list[StoreOp]:
    """A broker has no more files of a deleted topic; when the last broker says so, the topic's mark is removed."""
    mark = image.deleted_topics.get(topic_id)
    if mark is None:
        return []
    path = layout.deleted_topic_path(topic_id)
    others = tuple(other for other in mark.replicas if other != node)
    if not others:
        return [Delete(path, image.versions[path])]
    if others == mark.replicas:
        return []
    return [Set(path, layout.deleted_topic_data(DeletedTopic(mark.name, others)), image.versions[path])]


def plan_partitions(
    image: MetadataImage, topic: TopicInfo, *, count: int, manual: Sequence[Sequence[int]] | None
) -> list[tuple[NodeId, ...]]:
    """Where to place the partitions that bring *topic* up to *count*."""
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
    first = topic.partitions[0]
    replicas = len(first.replicas) - len(first.adding)
    if manual is None:
        sites = Sites.of(image)
        _check_sites(sites, replicas)
        leader = first.replicas[0]
        start = sites.brokers.index(leader) if leader in sites.brokers else 0
        return place(sites, partitions=count, replicas=replicas, start=start)[present:]
    if len(manual) != count - present:
        raise Refused(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"{count - present} partitions are to be added, but {len(manual)} assignments are given.",
        )
    if any(len(nodes) != replicas for nodes in manual):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"Topic '{topic.name}' has {replicas} replica(s) of each.")
    return check_assignment(dict(enumerate(manual, present)), image, first=present)


def add_partitions(
    image: MetadataImage,
    topic: TopicInfo,
    added: Sequence[tuple[NodeId, ...]],
    *,
    states_max: int = PARTITIONS_MAX,
) -> list[StoreOp]:
    """Add partitions, with at most *states_max* of their states; the controller creates the others."""
    present = [partition.assignment for partition in topic.partitions]
    data = layout.topic_data(topic.id, present + [Assignment(replicas) for replicas in added])
    path = layout.topic_path(topic.name)
    return [
        *same_topics(image),
        Set(path, data, image.versions[path]),
        *_new_partitions(image, topic.name, added[:states_max], first=len(present)),
    ]


def begin_epochs(image: MetadataImage, node: NodeId) -> list[StoreOp]:
    """A new leader epoch for every partition that *node* leads, because its logs may have lost their unsynced ends.

    What is written from now on can then be told from what was lost, also by a client that has read that (KIP-320).
    """
    return [
        write_state(image, topic.name, partition.index, State(node, partition.leader_epoch + 1, partition.isr))
        for topic in image.topics.values()
        for partition in topic.partitions
        if partition.leader == node
    ]


def set_config(image: MetadataImage, path: str, config: Mapping[str, str]) -> list[StoreOp]:
    """Replace all settings of one topic, broker or group.

    A node without settings is kept: a new one would begin with the same version, so a writer that still knows the old
    node could undo what happened in between.
    """
    if path in image.versions:
        return [Set(path, layout.config_data(config), image.versions[path])]
    return [Create(path, layout.config_data(config))] if config else []


def take_producer_ids(image: MetadataImage, node: NodeId) -> tuple[int, list[StoreOp]]:
    """The first id of a block for this broker alone, and the operations that claim it."""
    first = image.last_producer_id + 1
    data = layout.producer_ids_data(node, first)
    version = image.versions.get(layout.PRODUCER_IDS)
    if version is None:
        return first, [Create(layout.PRODUCER_IDS, data)]
    return first, [Set(layout.PRODUCER_IDS, data, version)]
