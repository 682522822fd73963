"""ElectLeaders (43), versions 0-2: let the preferred replicas lead again, or any replica where none leads.

- 0: preferred replicas only; 1: also *unclean* elections, which may lose records, and a top-level error code.

Without a list, the request is for all partitions, and those that need no election are left out of the answer. Any
broker can do it: a partition's state is only changed if it has not changed meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patience_of, propose_in_turn
from cordwood.cluster.election import elect_preferred, elect_uncleanly
from cordwood.cluster.image import MetadataImage, PartitionInfo
from cordwood.cluster.layout import partition_path
from cordwood.cluster.states import STATES_MAX, Live, State, is_damaged, write_states
from cordwood.errors import Error, Refused
from cordwood.ids import TopicName, TopicPartition
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartition,
    ElectLeadersResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Outcomes = dict[TopicPartition, Refused | None]
Elect = Callable[[PartitionInfo, Live], State]

ELECTIONS: dict[int, Elect] = {0: elect_preferred, 1: elect_uncleanly}


def handle(broker: "Broker", call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse | None:
    elect = ELECTIONS.get(request.election_type)
    if elect is None:
        refusal = Refused(Error.INVALID_REQUEST, f"There are no elections of type {request.election_type}.")
        return _respond(dict.fromkeys(_wanted(broker.image, request), refusal), refusal.error)
    outcomes: Outcomes = {}

    def divide() -> list[list[TopicPartition]]:
        names = _wanted(broker.image, request)
        return [names[start : start + STATES_MAX] for start in range(0, len(names), STATES_MAX)]

    def plan(group: list[TopicPartition]) -> list[StoreOp]:
        return _plan(broker.image, group, elect, outcomes)

    def done(portions: list[tuple[list[TopicPartition], Refused | None]]) -> None:
        for group, refusal in portions:
            outcomes.update((name, outcomes.get(name) or refusal) for name in group)
        if request.topic_partitions is None:
            unneeded = [name for name, outcome in outcomes.items() if _is_unneeded(outcome)]
            for name in unneeded:
                del outcomes[name]
        broker.reply(call, _respond(outcomes))

    propose_in_turn(broker, divide, plan, done, patience_of(broker, call, request.timeout_ms))
    return None


def _wanted(image: MetadataImage, request: ElectLeadersRequest) -> list[TopicPartition]:
    if request.topic_partitions is None:
        return [TopicPartition(t.name, p.index) for t in image.topics.values() for p in t.partitions]
    named = (TopicPartition(TopicName(t.topic), p) for t in request.topic_partitions for p in t.partitions)
    return list(dict.fromkeys(named))


def _plan(image: MetadataImage, names: Sequence[TopicPartition], elect: Elect, outcomes: Outcomes) -> list[StoreOp]:
    live = Live.of(image)
    states: dict[TopicPartition, State] = {}
    for name in names:
        try:
            states[name] = elect(_find(image, name), live)
            outcomes[name] = None
        except Refused as refusal:
            outcomes[name] = refusal
    return write_states(image, states)


def _find(image: MetadataImage, name: TopicPartition) -> PartitionInfo:
    topic = image.topics.get(name.topic)
    if topic is None or not 0 <= name.partition < len(topic.partitions):
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}.")
    partition = topic.partitions[name.partition]
    if partition.leader_epoch < 0 and is_damaged(image, *name):
        text = f"The metadata at {partition_path(*name)} makes no sense: nobody knows who was in sync. Repair it first."
        raise Refused(Error.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)
    return partition


def _is_unneeded(outcome: Refused | None) -> bool:
    return outcome is not None and outcome.error == Error.ELECTION_NOT_NEEDED


def _respond(outcomes: Outcomes, error: Error = Error.NONE) -> ElectLeadersResponse:
    topics: dict[str, ElectLeadersResponseTopic] = {}
    for name, outcome in outcomes.items():
        topic = topics.setdefault(name.topic, ElectLeadersResponseTopic(topic=name.topic))
        topic.partition_result.append(_answer(name.partition, outcome))
    return ElectLeadersResponse(error_code=error, replica_election_results=list(topics.values()))


def _answer(index: int, outcome: Refused | None) -> ElectLeadersResponsePartition:
    if outcome is None:
        return ElectLeadersResponsePartition(partition_id=index)
    return ElectLeadersResponsePartition(partition_id=index, error_code=outcome.error, error_message=outcome.message)
