"""How a broker joins the cluster, leaves it, and is declared dead.

Registering takes three steps, each planned from the current image:

1. ``begin``: a new life. What is left of the former one is removed, and its epoch with it: nothing that others planned
   for the former life (to count it in sync, to declare it dead) can be done any more.
2. ``retreat``, as often as there is something to do: the broker no longer leads anything, and if its logs may lack
   something that was acknowledged, it leaves all in-sync sets.
3. ``register``: the broker is there, with its current data directory and boot id. These are written only now, because a
   broker that dies between the steps starts again from the first, and must still know what it might have lost.

Between the last two steps, a controller that believes the former life to be alive may have elected it. The broker leads
nothing before it has registered, so it steps down from that too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from cordwood.cluster import layout
from cordwood.cluster.image import NO_LEADER, MetadataImage, PartitionInfo
from cordwood.cluster.layout import Incarnation
from cordwood.cluster.states import STATES_MAX, State, same_life, same_topics, state_of, write_state
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicPartition
from cordwood.ports import Check, Create, Delete, Node, Set, StoreOp


@dataclass(frozen=True, slots=True)
class Applicant:
    """A broker as it introduces itself."""

    node: NodeId
    endpoints: Mapping[str, tuple[str, str, int]]
    """By listener name: its protocol, and the host and port that others are told."""
    directory_id: UUID
    boot_id: str = ""
    """Which boot of the machine this is; empty if that is not known."""
    clean: bool = False
    """Did the last process close all logs?"""
    rack: str | None = None

    def data(self, *, shutting_down: bool = False) -> bytes:
        return layout.broker_data(self.endpoints, self.rack, shutting_down=shutting_down)

    @property
    def incarnation(self) -> Incarnation:
        return Incarnation(self.directory_id, self.boot_id)


class Loss(Enum):
    """What a broker's logs may lack, compared to when it was last there."""

    NOTHING = "nothing"
    ENDS = "ends"
    """The machine stopped before everything was on disk; or a log was damaged, or is gone."""
    EVERYTHING = "everything"
    """It is another disk."""


def loss_of(image: MetadataImage, applicant: Applicant) -> Loss:
    known = image.incarnations.get(applicant.node)
    if known is None:
        return Loss.NOTHING
    if known.directory_id != applicant.directory_id:
        return Loss.EVERYTHING
    same_boot = bool(applicant.boot_id) and known.boot_id == applicant.boot_id
    return Loss.NOTHING if applicant.clean or same_boot else Loss.ENDS


def begin(image: MetadataImage, applicant: Applicant) -> list[StoreOp]:
    """The first step.

    Raises:
        Refused: a broker with this id and another data directory is there.
    """
    node = applicant.node
    operations = _counters(image)
    known = image.incarnations.get(node)
    if node in image.brokers:
        if known is None or known.directory_id != applicant.directory_id:
            text = f"Another broker is there as number {node}, or its session has not ended yet."
            raise Refused(Error.DUPLICATE_BROKER_REGISTRATION, text)
        operations.append(_delete(image, layout.broker_path(node)))
    if image.controller == node:
        operations += _vacate(image)
    path = layout.incarnation_path(node)
    if known is None:
        operations.append(Create(path, layout.incarnation_data(applicant.incarnation)))
    else:
        operations.append(Set(path, layout.incarnation_data(known), image.versions[path]))
    return operations


def _counters(image: MetadataImage) -> list[StoreOp]:
    """Nodes whose versions others check: they must exist from the beginning."""
    paths = (layout.DELETIONS, layout.CONTROLLER_EPOCH)
    return [Create(path, b"0") for path in paths if path not in image.versions]


def _delete(image: MetadataImage, path: str) -> StoreOp:
    return Delete(path, image.versions[path])


def _vacate(image: MetadataImage) -> list[StoreOp]:
    """Remove the controller, if it is still the same one."""
    path = layout.CONTROLLER_EPOCH
    return [Check(path, image.versions[path]), _delete(image, layout.CONTROLLER)]


def retreat(image: MetadataImage, applicant: Applicant, loss: Loss) -> list[StoreOp]:
    """The second step, or a part of it; nothing if it is done."""
    changes: list[StoreOp] = []
    for topic in image.topics.values():
        for partition in topic.partitions:
            state = _without(partition, applicant.node, loss)
            if state != state_of(partition):
                changes.append(write_state(image, topic.name, partition.index, state))
                if len(changes) == STATES_MAX:
                    return [*_guards(image, applicant), *changes]
    return [*_guards(image, applicant), *changes] if changes else []


def _guards(image: MetadataImage, applicant: Applicant) -> list[StoreOp]:
    return [*same_topics(image), same_life(image, applicant.node, image.broker_epoch(applicant.node))]


def _without(partition: PartitionInfo, node: NodeId, loss: Loss) -> State:
    leader, epoch, isr = state_of(partition)
    others = tuple(other for other in isr if other != node)
    if loss is Loss.EVERYTHING or (loss is Loss.ENDS and others):
        isr = others
    return State(NO_LEADER, epoch + 1, isr) if leader == node else State(leader, epoch, isr)


def led_by(image: MetadataImage, node: NodeId) -> dict[TopicPartition, int]:
    """The partitions that a broker leads, and their leader epochs."""
    return {
        TopicPartition(topic.name, partition.index): partition.leader_epoch
        for topic in image.topics.values()
        for partition in topic.partitions
        if partition.leader == node
    }


def step_down(image: MetadataImage, node: NodeId, led: Mapping[TopicPartition, int]) -> list[StoreOp]:
    """Stop leading the partitions in *led*, if they are still in these epochs. The in-sync replicas stay the same."""
    states = {
        name: State(NO_LEADER, epoch + 1, image.topics[name.topic].partitions[name.partition].isr)
        for name, epoch in led_by(image, node).items()
        if led.get(name) == epoch
    }
    writes = [write_state(image, name.topic, name.partition, state) for name, state in states.items()][:STATES_MAX]
    return same_topics(image) + writes if writes else []


def register(image: MetadataImage, applicant: Applicant) -> list[StoreOp]:
    """The third step."""
    path = layout.incarnation_path(applicant.node)
    return [
        Create(layout.broker_path(applicant.node), applicant.data(), ephemeral=True),
        Set(path, layout.incarnation_data(applicant.incarnation), image.versions[path]),
    ]


# ---------------------------------------------------------------------- the end


def announce_end(image: MetadataImage, applicant: Applicant) -> list[StoreOp]:
    """Say that this broker is about to stop."""
    registration = image.brokers.get(applicant.node)
    if registration is None or registration.shutting_down:
        return []
    path = layout.broker_path(applicant.node)
    return [
        Set(path, applicant.data(shutting_down=True), image.versions[path]),
        same_life(image, applicant.node, image.broker_epoch(applicant.node)),
    ]


def remove_broker(image: MetadataImage, node: NodeId, epoch: int) -> list[StoreOp]:
    """A broker leaves, or is dead: remove it, also as the controller. *epoch* names the life that is over."""
    if node not in image.brokers or image.broker_epoch(node) != epoch:
        return []
    gone = [same_life(image, node, epoch), _delete(image, layout.broker_path(node))]
    return gone + _vacate(image) if image.controller == node else gone


# ---------------------------------------------------------------------- a broker on its own


def standalone_nodes(applicant: Applicant) -> list[Node]:
    """What the metadata of a broker without a cluster lacks: the broker itself, which is also the controller."""
    node = applicant.node
    return [
        Node(layout.incarnation_path(node), layout.incarnation_data(applicant.incarnation), 0),
        Node(layout.broker_path(node), applicant.data(), 0),
        Node(layout.CONTROLLER, layout.controller_data(node, 0), 0),
    ]
