"""CreatePartitions (37), versions 0-3: more partitions for topics that exist. Their number never shrinks.

If the metadata store was lost on the way and is back, a topic that has as many as were asked for got them by this
request, as far as anybody can tell.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patient_until, portions, propose_in_turn, states_max
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


def handle(broker: "Broker", call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    try:
        check_number_of_new(sum(_number_of(broker, t) for t in request.topics), room=broker.replicas.room)
    except Refused as refusal:
        names = dict.fromkeys(topic.name for topic in request.topics)
        return CreatePartitionsResponse(results=[_answer(name, refusal) for name in names])
    _add(broker, call, request)
    return None


def _add(broker: "Broker", call: Call, request: CreatePartitionsRequest) -> None:
    groups = portions(broker, request.topics, lambda topic: _number_of(broker, topic))
    counts = Counter(topic.name for topic in request.topics)
    outcomes: list[dict[str, Refused | None]] = [{} for _ in groups]
    perhaps: set[str] = set()

    def plan(number: int) -> Sequence[StoreOp]:
        operations: list[StoreOp] = []
        for topic in groups[number]:
            outcomes[number][topic.name] = None
            if topic.name in perhaps and _has_them(broker, topic):
                continue
            try:
                operations += _plan(broker, topic, twice=counts[topic.name] > 1)
            except Refused as refusal:
                outcomes[number][topic.name] = refusal
        return [] if request.validate_only else operations

    def in_doubt(number: int) -> None:
        perhaps.update(name for name, outcome in outcomes[number].items() if outcome is None)

    def done(refusals: list[Refused | None]) -> None:
        broker.replicas.additions.when_added(counts, lambda: answer(refusals))

    def answer(refusals: list[Refused | None]) -> None:
        answers = [
            _answer(name, refusal or outcome)
            for refusal, group in zip(refusals, outcomes, strict=True)
            for name, outcome in group.items()
        ]
        broker.reply(call, CreatePartitionsResponse(results=answers))

    until_ms = patient_until(broker, request.timeout_ms)
    steps = [partial(plan, number) for number in range(len(groups))]
    propose_in_turn(broker, steps, done, until_ms=until_ms, in_doubt=in_doubt)


def _has_them(broker: "Broker", wanted: CreatePartitionsRequestTopic) -> bool:
    topic = broker.image.topics.get(TopicName(wanted.name))
    return topic is not None and len(topic.partitions) == wanted.count


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
    added = plan_partitions(broker.image, topic, count=wanted.count, manual=manual)
    return add_partitions(broker.image, topic, added, states_max=states_max(broker))


def _answer(name: str, outcome: Refused | None) -> CreatePartitionsResponseTopic:
    if outcome is None:
        return CreatePartitionsResponseTopic(name=name)
    return CreatePartitionsResponseTopic(name=name, error_code=outcome.error, error_message=outcome.message)
