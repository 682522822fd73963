"""Who leads: chosen from those in sync, in the order of the replicas, as long as one of them is there.

A broker that is gone or about to stop leaves the in-sync replicas, unless none would be left: whoever was the last to
hold all records is remembered until it is back. Only where a topic allows it (*unclean*), another replica leads then,
and what it does not have is lost. Every change of the leader begins an epoch.
"""

from collections.abc import Callable, Iterable

from cordwood.cluster.image import NO_LEADER, MetadataImage, PartitionInfo, TopicInfo
from cordwood.cluster.states import Live, State, state_of
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId

Unclean = Callable[[TopicInfo], bool]
"""May this topic be led by one who was not in sync?"""


def new_state(replicas: tuple[NodeId, ...], live: Live) -> State:
    """The first state of a partition: those who can begin."""
    isr = tuple(node for node in replicas if node in live.able) or tuple(n for n in replicas if n in live.there)
    if not isr:
        return State(NO_LEADER, 0, replicas)  # nobody has a record yet, so all of them have them all
    return State(isr[0], 0, isr)


def needed_state(topic: TopicInfo, partition: PartitionInfo, live: Live, unclean: Unclean) -> State | None:
    """The state that a partition should have, if that is another one."""
    if partition.leader in live.able and live.able.issuperset(partition.isr):
        return None  # nearly always
    if partition.leader_epoch < 0:
        return new_state(partition.replicas, live)
    state = settled(state_of(partition), partition.replicas, live)
    if state.leader == NO_LEADER and unclean(topic):
        state = _uncleanly(state_of(partition), partition.replicas, live) or state
    return None if state == state_of(partition) else state


def settled(state: State, replicas: tuple[NodeId, ...], live: Live) -> State:
    """A state without those who are gone, and with a leader if somebody in sync can be it."""
    isr = remaining(state.isr, live)
    if state.leader in isr and state.leader in live.there:
        return State(state.leader, state.leader_epoch, isr)
    return led_by(state, _first(replicas, isr, live), isr)


def remaining(isr: tuple[NodeId, ...], live: Live) -> tuple[NodeId, ...]:
    """Those in sync who can go on; or those who are about to stop; or all, if nobody is there."""
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


# ---------------------------------------------------------------------- elections that somebody asks for


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
    """What a person asks for: the first replica leads. If it cannot and nobody else does, another one in sync."""
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
    """What a person asks for: somebody leads a partition that has no leader, at the price of what is missing there."""
    if partition.leader != NO_LEADER:
        raise Refused(Error.ELECTION_NOT_NEEDED, f"Broker {partition.leader} leads it.")
    clean = settled(state_of(partition), partition.replicas, live)
    if clean.leader != NO_LEADER:
        return clean
    state = _uncleanly(state_of(partition), partition.replicas, live)
    if state is None:
        raise Refused(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, "None of its replicas is there.")
    return state
