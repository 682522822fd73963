"""CreatePartitions (37), versions 0-3: add partitions to existing topics. Their number never shrinks."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patience_of, portions, propose_in_turn, states_max
from cordwood.cluster.controller import PARTITIONS_MAX, add_partitions, check_number_of_new, plan_partitions
from cordwood.errors import Error, Refused
from cordwood.ids import TopicName
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreatePartitionsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Portions = list[list[CreatePartitionsRequestTopic]]
Outcomes = list[tuple[list[CreatePartitionsRequestTopic], Refused | None]]


def handle(broker: "Broker", call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    try:
        check_number_of_new(sum(_number_of(broker, t) for t in request.topics), room=broker.replicas.room)
    except Refused as refusal:
        names = dict.fromkeys(topic.name for topic in request.topics)
        return CreatePartitionsResponse(results=[_answer(name, refusal) for name in names])
    _add(broker, call, request)
    return None


def _add(broker: "Broker", call: Call, request: CreatePartitionsRequest) -> None:
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, Refused | None] = {}

    def divide() -> Portions:
        return portions(broker, request.topics, lambda topic: _number_of(broker, topic))

    def plan(group: list[CreatePartitionsRequestTopic]) -> Sequence[StoreOp]:
        operations: list[StoreOp] = []
        for topic in group:
            try:
                operations += _plan(broker, topic, twice=counts[topic.name] > 1)
                results[topic.name] = None
            except Refused as refusal:
                results[topic.name] = refusal
        return [] if request.validate_only else operations

    def done(outcomes: Outcomes) -> None:
        broker.replicas.additions.when_added(counts, lambda: answer(outcomes))

    def answer(outcomes: Outcomes) -> None:
        for group, refusal in outcomes:
            results.update((topic.name, results.get(topic.name) or refusal) for topic in group)
        answers = [_answer(name, outcome) for name, outcome in results.items()]
        broker.reply(call, CreatePartitionsResponse(results=answers))

    propose_in_turn(broker, divide, plan, done, patience_of(broker, call, request.timeout_ms))


def _number_of(broker: "Broker", wanted: CreatePartitionsRequestTopic) -> int:
    """The partitions that a topic will have; an impossible number is refused later."""
    topic = broker.image.topics.get(TopicName(wanted.name))
    return 0 if topic is None or wanted.count > PARTITIONS_MAX else max(wanted.count - len(topic.partitions), 0)


def _plan(broker: "Broker", wanted: CreatePartitionsRequestTopic, *, twice: bool) -> list[StoreOp]:
    if twice:
        raise Refused(Error.INVALID_REQUEST, f"Topic '{wanted.name}' is named twice in one request.")
    topic = broker.image.topics.get(TopicName(wanted.name))
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
    if topic.internal:
        text = f"'{topic.name}' cannot grow: who coordinates what depends on its number of partitions."
        raise Refused(Error.INVALID_REQUEST, text)
    manual = None if wanted.assignments is None else [assignment.broker_ids for assignment in wanted.assignments]
    added = plan_partitions(broker.image, topic, count=wanted.count, manual=manual)
    return add_partitions(broker.image, topic, added, states_max=states_max(broker))


def _answer(name: str, outcome: Refused | None) -> CreatePartitionsResponseTopic:
    if outcome is None:
        return CreatePartitionsResponseTopic(name=name)
    return CreatePartitionsResponseTopic(name=name, error_code=outcome.error, error_message=outcome.message)
