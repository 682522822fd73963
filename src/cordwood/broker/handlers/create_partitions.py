"""CreatePartitions (37), versions 0-3: more partitions for topics that exist. Their number never shrinks."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
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


def handle(broker: "Broker", call: Call, request: CreatePartitionsRequest) -> None:
    outcomes: dict[str, Refused | None] = {}

    def plan() -> Sequence[StoreOp]:
        outcomes.clear()
        operations: list[StoreOp] = []
        counts = Counter(topic.name for topic in request.topics)
        try:
            check_number_of_new(sum(_number_of(broker, t) for t in request.topics), room=broker.replicas.room)
        except Refused as refusal:
            outcomes.update((topic.name, refusal) for topic in request.topics)
            return []
        for topic in request.topics:
            try:
                operations += _plan(broker, topic, twice=counts[topic.name] > 1)
                outcomes[topic.name] = None
            except Refused as refusal:
                outcomes[topic.name] = refusal
        return [] if request.validate_only else operations

    def done(refusal: Refused | None) -> None:
        answers = [_answer(name, refusal or outcome) for name, outcome in outcomes.items()]
        broker.reply(call, CreatePartitionsResponse(results=answers))

    broker.propose(plan, done)


def _number_of(broker: "Broker", wanted: CreatePartitionsRequestTopic) -> int:
    """The partitions that a topic will get; an impossible number is refused later."""
    topic = broker.image.topics.get(TopicName(wanted.name))
    return 0 if topic is None or wanted.count > PARTITIONS_MAX else max(wanted.count - len(topic.partitions), 0)


def _plan(broker: "Broker", wanted: CreatePartitionsRequestTopic, *, twice: bool) -> list[StoreOp]:
    if twice:
        raise Refused(Error.INVALID_REQUEST, f"Topic '{wanted.name}' is named twice in one request.")
    topic = broker.image.topics.get(TopicName(wanted.name))
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
    if topic.internal:
        text = f"'{topic.name}' can not grow: who coordinates what depends on its number of partitions."
        raise Refused(Error.INVALID_REQUEST, text)
    manual = None if wanted.assignments is None else [assignment.broker_ids for assignment in wanted.assignments]
    return add_partitions(topic, plan_partitions(topic, broker.live_nodes(), count=wanted.count, manual=manual))


def _answer(name: str, outcome: Refused | None) -> CreatePartitionsResponseTopic:
    if outcome is None:
        return CreatePartitionsResponseTopic(name=name)
    return CreatePartitionsResponseTopic(name=name, error_code=outcome.error, error_message=outcome.message)
