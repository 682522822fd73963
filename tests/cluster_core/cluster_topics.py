"""Topics of a rig: made, looked at, and put into a state by hand."""

from collections.abc import Mapping, Sequence
from random import Random

from cluster_core.cluster_rig import Rig
from cordwood.cluster.controller import create_topic, plan_topic
from cordwood.cluster.image import PartitionInfo
from cordwood.cluster.states import STATES_MAX, State, same_topics, write_state
from cordwood.ids import NodeId, TopicName


def create(
    rig: Rig,
    name: str,
    manual: Mapping[int, Sequence[int]] | None = None,
    *,
    partitions: int = -1,
    replicas: int = -1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic, by hand or spread over the brokers, and let everything come to rest."""
    plan = plan_topic(
        rig.truth,
        Random(1),
        name=name,
        partitions=partitions,
        replicas=replicas,
        manual=manual or {},
        config=config or {},
    )
    rig.store.multi(create_topic(rig.truth, plan, states_max=STATES_MAX), 0)
    rig.settle()


def partition(rig: Rig, name: str, index: int) -> PartitionInfo:
    return rig.truth.topics[TopicName(name)].partitions[index]


def state(rig: Rig, name: str, index: int) -> tuple[int, int, tuple[int, ...]]:
    info = partition(rig, name, index)
    return info.leader, info.leader_epoch, info.isr


def leader_of(rig: Rig, name: str, index: int) -> int:
    return partition(rig, name, index).leader


def isr_of(rig: Rig, name: str, index: int) -> tuple[int, ...]:
    return partition(rig, name, index).isr


def set_state(rig: Rig, name: str, index: int, *, leader: int, isr: Sequence[int]) -> None:
    """A partition's leader has done this, or an election; and everything comes to rest."""
    set_state_alone(rig, name, index, leader=leader, isr=isr)
    rig.settle()


def set_state_alone(rig: Rig, name: str, index: int, *, leader: int, isr: Sequence[int]) -> None:
    info = partition(rig, name, index)
    wanted = State(NodeId(leader), info.leader_epoch + 1, tuple(map(NodeId, isr)))
    rig.store.multi([*same_topics(rig.truth), write_state(rig.truth, TopicName(name), index, wanted)], 0)
