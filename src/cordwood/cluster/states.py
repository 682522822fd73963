"""The state of a partition: who leads it, in which epoch, and who is in sync; and how it is changed.

Whoever proposes a change, it is a compare-and-set: it names the version of the state that it was planned from, and it
checks that no topic was deleted in the meantime, because the name might by then belong to another topic. So a change
that is based on an old image fails as a whole, and is planned again.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from cordwood.cluster import layout
from cordwood.cluster.image import NO_LEADER, MetadataImage, PartitionInfo, TopicInfo
from cordwood.ids import NodeId, TopicName, TopicPartition
from cordwood.ports import Check, Create, Set, StoreOp

STATES_MAX: Final = 200
"""In one ``multi``: ZooKeeper takes a megabyte at a time, and others want their turn."""


class State(NamedTuple):
    """What the store keeps of a partition besides its replicas."""

    leader: NodeId
    leader_epoch: int
    isr: tuple[NodeId, ...]


class Live(NamedTuple):
    """The brokers that are there, and those of them that may lead, which one that is about to stop may not."""

    there: frozenset[NodeId]
    able: frozenset[NodeId]

    @classmethod
    def of(cls, image: MetadataImage) -> "Live":
        able = (node for node, registration in image.brokers.items() if not registration.shutting_down)
        return cls(frozenset(image.brokers), frozenset(able))


def state_of(partition: PartitionInfo) -> State:
    return State(partition.leader, partition.leader_epoch, partition.isr)


def is_damaged(image: MetadataImage, topic: TopicName, index: int) -> bool:
    """Does the node of a partition's state make no sense? Then who is in sync is what was known before, if anything."""
    return layout.partition_path(topic, index) in image.damaged


def write_state(image: MetadataImage, topic: TopicName, index: int, state: State) -> StoreOp:
    """Give a partition another state, or its first one. Must be combined with ``same_topics`` or ``still_there``."""
    leader, leader_epoch, isr = state
    path = layout.partition_path(topic, index)
    data = layout.partition_data(
        leader=leader, leader_epoch=leader_epoch, isr=isr, controller_epoch=image.controller_epoch
    )
    version = image.versions.get(path)
    return Create(path, data) if version is None else Set(path, data, version)


def write_states(image: MetadataImage, states: Mapping[TopicPartition, State]) -> list[StoreOp]:
    """Give partitions other states, with all checks that these need."""
    if not states:
        return []
    writes = [write_state(image, name.topic, name.partition, state) for name, state in states.items()]
    return still_there(image, states.values()) + writes


def same_topics(image: MetadataImage) -> list[StoreOp]:
    """Fail unless every topic is still the one that the image shows. A broker on its own needs no such check."""
    version = image.versions.get(layout.DELETIONS)
    return [] if version is None else [Check(layout.DELETIONS, version)]


def still_there(image: MetadataImage, states: Iterable[State]) -> list[StoreOp]:
    """Fail unless the replicas that are in sync in these states, and led, are alive as the image shows them.

    A state that excludes others must not rest on brokers that are gone: what they had may be gone too. Includes
    ``same_topics``.
    """
    guards = same_topics(image)
    if guards:
        nodes = {node for state in states if state.leader != NO_LEADER for node in state.isr}
        paths = (layout.broker_path(node) for node in sorted(nodes))
        guards += (Check(path, image.versions[path]) for path in paths if path in image.versions)
    return guards


def same_life(image: MetadataImage, node: NodeId, epoch: int) -> StoreOp:
    """Fail unless a broker is still in the life with this epoch."""
    return Check(layout.incarnation_path(node), epoch)


def change_isr(
    image: MetadataImage,
    topic: TopicInfo,
    index: int,
    *,
    leader: NodeId,
    leaving: Collection[NodeId] = (),
    joining: Mapping[NodeId, int],
) -> list[StoreOp]:
    """A leader's change of its in-sync set: some fell behind, others have caught up, in the life with the epoch given.

    Returns nothing if *leader* is not the leader, or if nothing would change. A replica that is about to stop, is gone,
    or has begun another life since it caught up, does not join.
    """
    partition = topic.partitions[index]
    if partition.leader != leader:
        return []
    kept = tuple(node for node in partition.isr if node == leader or node not in leaving)
    able = Live.of(image).able
    joined = [
        node
        for node, epoch in joining.items()
        if node in able and node in partition.replicas and node not in kept and epoch == image.broker_epoch(node)
    ]
    isr = (*kept, *joined)
    if isr == partition.isr:
        return []
    state = State(leader, partition.leader_epoch, isr)
    return [
        *still_there(image, [state]),
        *(same_life(image, node, joining[node]) for node in joined),
        write_state(image, topic.name, index, state),
    ]


def lead_later(image: MetadataImage, topic: TopicInfo, index: int, *, leader: NodeId, after: int) -> list[StoreOp]:
    """Lead on in an epoch *after* this one. Returns nothing if *leader* does not lead, or is already past it."""
    partition = topic.partitions[index]
    if partition.leader != leader or partition.leader_epoch > after:
        return []
    return [*same_topics(image), write_state(image, topic.name, index, State(leader, after + 1, partition.isr))]


def hand_over(image: MetadataImage, topic: TopicInfo, index: int, *, leader: NodeId) -> list[StoreOp]:
    """Let another in-sync replica lead. Returns nothing if there is none, or *leader* is not the leader."""
    partition = topic.partitions[index]
    others = tuple(node for node in partition.isr if node != leader)
    if partition.leader != leader or Live.of(image).able.isdisjoint(others):
        return []
    state = State(NO_LEADER, partition.leader_epoch + 1, others)
    return [*same_topics(image), write_state(image, topic.name, index, state)]
