"""DeleteTopics (20), versions 1-6: topics disappear from the metadata at once, and their files soon after.

- 3: disabled deletion has an error code of its own; 5: errors carry a message; 6: topics by name or by id.

A topic that is named twice is refused, once, as in Kafka.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patience_of, portions, propose_in_turn
from cordwood.cluster.controller import delete_topics
from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.errors import Error, Refused
from cordwood.ids import NO_TOPIC_ID, TopicId, TopicName
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    DeleteTopicsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Wanted = tuple[str | None, TopicId]
"""A topic as the client names it."""


def handle(broker: "Broker", call: Call, request: DeleteTopicsRequest) -> None:
    named = request.topics or [DeleteTopicsRequestTopic(name=name) for name in request.topic_names]
    wanted = Counter((topic.name, TopicId(topic.topic_id)) for topic in named)
    results: dict[Wanted, TopicInfo | Refused] = {}

    def divide() -> list[list[Wanted]]:
        return portions(broker, wanted, lambda topic: _size(broker, topic))

    def plan(group: list[Wanted]) -> Sequence[StoreOp]:
        for topic in group:
            try:
                results[topic] = _find(broker, call, topic, wanted)
            except Refused as refusal:
                results[topic] = refusal
        found = (results[topic] for topic in group)
        return delete_topics(broker.image, [topic for topic in found if isinstance(topic, TopicInfo)])

    def done(outcomes: list[tuple[list[Wanted], Refused | None]]) -> None:
        for group, refusal in outcomes:
            if refusal is not None:
                results.update((topic, refusal) for topic in group if not isinstance(results.get(topic), Refused))
        answers = [_answer(topic, outcome) for topic, outcome in results.items()]
        broker.reply(call, DeleteTopicsResponse(responses=answers))

    propose_in_turn(broker, divide, plan, done, patience_of(broker, call, request.timeout_ms))


def _look_up(image: MetadataImage, wanted: Wanted) -> TopicInfo | None:
    name, topic_id = wanted
    return image.topic_by_id(topic_id) if name is None else image.topics.get(TopicName(name))


def _size(broker: "Broker", wanted: Wanted) -> int:
    topic = _look_up(broker.image, wanted)
    return 0 if topic is None else len(topic.partitions)


def _find(broker: "Broker", call: Call, wanted: Wanted, counts: Mapping[Wanted, int]) -> TopicInfo:
    """*counts*: how often each topic is named in the request."""
    name, topic_id = wanted
    if not broker.config.delete_topic_enable:
        error = Error.TOPIC_DELETION_DISABLED if call.api_version >= 3 else Error.INVALID_REQUEST
        raise Refused(error, "delete.topic.enable is false on this broker.")
    if name is not None and topic_id != NO_TOPIC_ID:
        raise Refused(Error.INVALID_REQUEST, "Name a topic by its name or by its id, not by both.")
    topic = _look_up(broker.image, wanted)
    other = None if topic is None else (None, topic.id) if name is not None else (topic.name, NO_TOPIC_ID)
    if counts[wanted] > 1 or other in counts:
        raise Refused(Error.INVALID_REQUEST, "The topic is named twice in one request.")
    if topic is None:
        error = Error.UNKNOWN_TOPIC_ID if name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
        if name is None and topic_id == NO_TOPIC_ID:
            error = Error.INVALID_REQUEST
        raise Refused(error, "There is no such topic.")
    return topic


def _answer(wanted: Wanted, outcome: TopicInfo | Refused) -> DeleteTopicsResponseTopic:
    if isinstance(outcome, Refused):
        return DeleteTopicsResponseTopic(
            name=wanted[0], topic_id=wanted[1], error_code=outcome.error, error_message=outcome.message
        )
    return DeleteTopicsResponseTopic(name=outcome.name, topic_id=outcome.id)
