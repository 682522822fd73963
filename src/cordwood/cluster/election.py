"""Who leads: the first of the replicas that is in sync and alive.

A broker that is gone or about to stop leaves the in-sync replicas, unless none would be left: the last ones that had
all records are remembered until they are back. Only if a topic allows it (*unclean*), another replica leads then, and
the records that it does not have are lost. Every change of the leader begins a new epoch.
"""

from collections.abc import Callable, Iterable

from cordwood.cluster.image import NO_LEADER, MetadataImage, PartitionInfo, TopicInfo
from cordwood.cluster.states import Live, State, state_of
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId

Unclean = Callable[[TopicInfo], bool]
"""May an out-of-sync replica become leader of this topic?"""


def new_state(replicas: tuple[NodeId, ...], live: Live) -> State:
    """The first state of a partition: with the replicas that can begin."""
    isr = tuple(node for node in replicas if node in live.able) or tuple(n for n in replicas if n in live.there)
    if not isr:
        return State(NO_LEADER, 0, replicas)  # there are no records yet, so every replica has all of them
    return State(isr[0], 0, isr)


def needed_state(topic: TopicInfo, partition: PartitionInfo, live: Live, unclean: Unclean) -> State | None:
    """The state that a partition should have, if it is not the one it has."""
    if partition.leader in live.able and live.able.issuperset(partition.isr):
        return None  # nearly always
    if partition.leader_epoch < 0:
        return new_state(partition.replicas, live)
    state = settled(state_of(partition), partition.replicas, live)
    if state.leader == NO_LEADER and unclean(topic):
        state = _uncleanly(state_of(partition), partition.replicas, live) or state
    return None if state == state_of(partition) else state


def settled(state: State, replicas: tuple[NodeId, ...], live: Live) -> State:
    """The state without replicas that are gone, and with a leader if any in-sync replica can lead."""
    isr = remaining(state.isr, live)
    if state.leader in isr and state.leader in live.there:
        return State(state.leader, state.leader_epoch, isr)
    return led_by(state, _first(replicas, isr, live), isr)


def remaining(isr: tuple[NodeId, ...], live: Live) -> tuple[NodeId, ...]:
    """The in-sync replicas that can go on; else those that are about to stop; else all of them."""
    return tuple(n for n in isr if n in live.able) or tuple(n for n in isr if n in live.there) or isr


def led_by(state: State, leader: NodeId, isr: tuple[NodeId, ...]) -> State:
    epoch = state.leader_epoch + (leader != state.leader)
    return State(leader, epoch, isr)


def _first(replicas: Iterable[NodeId], isr: tuple[NodeId, ...], live: Live) -> NodeId:
    candidates = [node for node in replicas if node in isr and node in live.there]
    return next((node for node in candidates if node in live.able), candidates[0] if candidates else NO_LEADER)


def _uncleanly(state: State, replicas: tuple[NodeId, ...], live: Live) -> State | None:
    leader = next((node for node in replicas if node in live.able), None)
    return None if leader is None else led_by(state, leader, (leader,))


# ---------------------------------------------------------------------- requested elections


def preferred_state(partition: PartitionInfo, live: Live) -> State | None:
    """The state with the first replica as the leader, if it can be and is not."""
    first = partition.replicas[0]
    if partition.leader == first or first not in partition.isr or first not in live.able:
        return None
    return led_by(state_of(partition), first, partition.isr)


def imbalanced(image: MetadataImage, live: Live) -> list[tuple[TopicInfo, PartitionInfo]]:
    """The partitions that are not led by their first replica although they could be."""
    return [
        (topic, partition)
        for topic in image.topics.values()
        for partition in topic.partitions
        if preferred_state(partition, live) is not None
    ]


def elect_preferred(partition: PartitionInfo, live: Live) -> State:
    """A requested election: the first replica leads. If it cannot and nobody leads, another in-sync replica does."""
    if partition.leader == partition.replicas[0]:
        raise Refused(Error.ELECTION_NOT_NEEDED, "Its preferred leader leads already.")
    state = preferred_state(partition, live)
    if state is None and partition.leader not in live.able:
        state = settled(state_of(partition), partition.replicas, live)
    if state is None or state.leader in (partition.leader, NO_LEADER):
        text = f"Its preferred leader, broker {partition.replicas[0]}, is not there or not in sync."
        raise Refused(Error.PREFERRED_LEADER_NOT_AVAILABLE, text)
    return state


def elect_uncleanly(partition: PartitionInfo, live: Live) -> State:
    """A requested election: any replica leads a partition that has no leader; records that it lacks are lost."""
    if partition.leader != NO_LEADER:
        raise Refused(Error.ELECTION_NOT_NEEDED, f"Broker {partition.leader} leads it.")
    clean = settled(state_of(partition), partition.replicas, live)
    if clean.leader != NO_LEADER:
        return clean
    state = _uncleanly(state_of(partition), partition.replicas, live)
    if state is None:
        raise Refused(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, "None of its replicas is there.")
    return state
