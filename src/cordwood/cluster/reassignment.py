"""Partitions that move to other brokers (KIP-455).

A partition that moves has the replicas of both ends. It is done when all of those that it will have are in sync: then
the others go. Until then it can be given another end, or be taken back to the beginning. ``Assignment`` keeps both: the
beginning is the replicas without *adding*, the end is the replicas without *removing*.

Whenever a replica goes, the partition's state changes in the same ``multi``, and an epoch begins. So nothing that was
planned for the former replicas (to elect one of them, to count it in sync) can happen afterwards.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cordwood.cluster import layout
from cordwood.cluster.election import Unclean, settled
from cordwood.cluster.image import MetadataImage, PartitionInfo, TopicInfo
from cordwood.cluster.layout import Assignment
from cordwood.cluster.states import Live, State, state_of, still_there, write_state
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId
from cordwood.ports import Set, StoreOp


class Move(NamedTuple):
    """What becomes of a partition: other replicas, and another state if some of them go."""

    assignment: Assignment
    state: State | None = None


def move(partition: PartitionInfo, target: Sequence[int], known: Collection[NodeId], live: Live) -> Move | None:
    """Begin to move a partition, or change where it goes; None if nothing changes.

    Raises:
        Refused: there can be no such replicas.
    """
    wanted = check_replicas(target, known)
    first = _without(partition.replicas, partition.adding)
    replicas = wanted + tuple(sorted(_without(partition.replicas, wanted)))
    assignment = Assignment(
        replicas,
        adding=tuple(sorted(_without(replicas, first))),
        removing=tuple(sorted(_without(replicas, wanted))),
    )
    return completed(assignment, state_of(partition), live) or (
        None if assignment == partition.assignment else Move(assignment)
    )


def check_replicas(target: Sequence[int], known: Collection[NodeId]) -> tuple[NodeId, ...]:
    """A client's wish for the replicas of one partition, if it can be."""
    wanted = tuple(NodeId(node) for node in target)
    if not wanted:
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "A partition needs at least one replica.")
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"No broker {unknown[0]} has ever been in this cluster.")
    if len(set(wanted)) < len(wanted):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, f"A broker appears twice in {list(wanted)}.")
    return wanted


def check_number(partition: PartitionInfo, target: Sequence[int]) -> None:
    """Refuse another number of replicas than the partition had at first (KIP-860)."""
    present = len(_without(partition.replicas, partition.adding))
    if len(target) != present:
        text = f"The partition has {present} replica(s), not {len(target)}; the request does not allow another number."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, text)


def cancel(topic: TopicInfo, partition: PartitionInfo, live: Live, unclean: Unclean) -> Move:
    """Take a partition back to where it came from.

    Raises:
        Refused: it does not move, or nobody there is in sync any more.
    """
    if not partition.moving:
        raise Refused(Error.NO_REASSIGNMENT_IN_PROGRESS, "The partition does not move.")
    replicas = _without(partition.replicas, partition.adding)
    isr = _without(partition.isr, partition.adding)
    if not isr:
        if not unclean(topic):
            text = f"None of the brokers {list(replicas)} is in sync: to go back there would lose records."
            raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, text)
        isr = replicas[:1]
    return Move(Assignment(replicas), _changed(state_of(partition), replicas, isr, live))


def completed(assignment: Assignment, state: State, live: Live) -> Move | None:
    """The end of a move, if all that a partition will have are in sync."""
    replicas, adding, removing = assignment
    if not (adding or removing):
        return None
    target = _without(replicas, removing)
    if not set(target) <= set(state.isr):
        return None
    return Move(Assignment(target), _changed(state, target, _without(state.isr, removing), live))


def _changed(state: State, replicas: tuple[NodeId, ...], isr: tuple[NodeId, ...], live: Live) -> State:
    """The state for fewer replicas. A leader that stays begins an epoch too: who was removed cannot follow it."""
    leader, _, isr = settled(State(state.leader, state.leader_epoch, isr), replicas, live)
    return State(leader, state.leader_epoch + 1, isr)


def _without(nodes: tuple[NodeId, ...], others: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple(node for node in nodes if node not in others)


def write_moves(image: MetadataImage, topic: TopicInfo, moves: Mapping[int, Move]) -> list[StoreOp]:
    """All moves of a topic's partitions at once: their replicas are in one node."""
    assignments = [partition.assignment for partition in topic.partitions]
    for index, planned in moves.items():
        assignments[index] = planned.assignment
    states = {index: planned.state for index, planned in moves.items() if planned.state is not None}
    path = layout.topic_path(topic.name)
    return [
        *still_there(image, states.values()),
        Set(path, layout.topic_data(topic.id, assignments), image.versions[path]),
        *(write_state(image, topic.name, index, state) for index, state in states.items()),
    ]
