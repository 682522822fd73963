"""Partitions that move to other brokers (KIP-455).

A partition that moves has both its old and its new replicas. The move is complete when all the new ones are in sync:
then the others are removed. Until then it can be given another target, or be cancelled. ``Assignment`` keeps both: the
original replicas are those without *adding*, the target those without *removing*.

Whenever a replica is removed, the partition's state changes in the same ``multi``, and a new epoch begins. So nothing
that was planned for the former replicas (to elect one of them, to count it in sync) can be done afterwards.
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
    """A partition's new replicas, and its new state if replicas are removed."""

    assignment: Assignment
    state: State | None = None


def move(partition: PartitionInfo, target: Sequence[int], known: Collection[NodeId], live: Live) -> Move | None:
    """Begin to move a partition, or change its target; None if nothing changes.

    Raises:
        Refused: these replicas are not possible.
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
    """Check the replicas that a client wants for one partition."""
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
    """Refuse a number of replicas other than the partition had at first (KIP-860)."""
    present = len(_without(partition.replicas, partition.adding))
    if len(target) != present:
        text = f"The partition has {present} replica(s), not {len(target)}; the request does not allow another number."
        raise Refused(Error.INVALID_REPLICATION_FACTOR, text)


def cancel(topic: TopicInfo, partition: PartitionInfo, live: Live, unclean: Unclean) -> Move:
    """Take a partition back to its original replicas.

    Raises:
        Refused: it is not being moved, or none of those is in sync any more.
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
    """The end of a move, if all the new replicas are in sync."""
    replicas, adding, removing = assignment
    if not (adding or removing):
        return None
    target = _without(replicas, removing)
    if not set(target) <= set(state.isr):
        return None
    return Move(Assignment(target), _changed(state, target, _without(state.isr, removing), live))


def _changed(state: State, replicas: tuple[NodeId, ...], isr: tuple[NodeId, ...], live: Live) -> State:
    """The state with fewer replicas. An epoch begins even if the leader stays: no removed replica can follow in it."""
    leader, _, isr = settled(State(state.leader, state.leader_epoch, isr), replicas, live)
    return State(leader, state.leader_epoch + 1, isr)


def _without(nodes: tuple[NodeId, ...], others: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple(node for node in nodes if node not in others)


def write_moves(image: MetadataImage, topic: TopicInfo, moves: Mapping[int, Move]) -> list[StoreOp]:
    """Write all moves of a topic's partitions at once: one node holds the replicas of all its partitions."""
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
