"""DeleteTopics (20), versions 1-6: topics go at once from the metadata; their files follow.

- 3: that deletion is disabled has a code of its own; 5: errors carry a message; 6: topics by name or by id.

If the metadata store was lost on the way and is back, a topic that is gone was deleted by this request, as far as
anybody can tell.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patient_until, portions, propose_in_turn
from cordwood.cluster.controller import delete_topics
from cordwood.cluster.image import TopicInfo
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


def handle(broker: "Broker", call: Call, request: DeleteTopicsRequest) -> None:
    wanted = request.topics or [DeleteTopicsRequestTopic(name=name) for name in request.topic_names]
    groups = portions(broker, zip(wanted, _find_all(broker, call, wanted), strict=True), lambda pair: _size(pair[1]))
    found: list[list[TopicInfo | Refused]] = [[outcome for _, outcome in group] for group in groups]
    perhaps: set[TopicId] = set()

    def plan(number: int) -> Sequence[StoreOp]:
        before = zip(groups[number], found[number], strict=True)
        found[number] = [
            outcome if isinstance(outcome, Refused) or is_done(outcome) else _again(broker, call, topic)
            for (topic, _), outcome in before
        ]
        left = [topic for topic in found[number] if isinstance(topic, TopicInfo) and not is_done(topic)]
        return delete_topics(broker.image, left)

    def is_done(topic: TopicInfo) -> bool:
        return topic.id in perhaps and broker.image.topic_by_id(topic.id) is None

    def in_doubt(number: int) -> None:
        perhaps.update(topic.id for topic in found[number] if isinstance(topic, TopicInfo))

    def done(refusals: list[Refused | None]) -> None:
        outcomes = [refusal or outcome for refusal, group in zip(refusals, found, strict=True) for outcome in group]
        answers = [_answer(topic, outcome) for topic, outcome in zip(wanted, outcomes, strict=True)]
        broker.reply(call, DeleteTopicsResponse(responses=answers))

    until_ms = patient_until(broker, request.timeout_ms)
    steps = [partial(plan, number) for number in range(len(groups))]
    propose_in_turn(broker, steps, done, until_ms=until_ms, in_doubt=in_doubt)


def _size(topic: TopicInfo | Refused) -> int:
    return len(topic.partitions) if isinstance(topic, TopicInfo) else 0


def _again(broker: "Broker", call: Call, topic: DeleteTopicsRequestTopic) -> TopicInfo | Refused:
    """Somebody else may have been faster."""
    try:
        return _find(broker, call, topic)
    except Refused as refusal:
        return refusal


def _find_all(broker: "Broker", call: Call, wanted: list[DeleteTopicsRequestTopic]) -> list[TopicInfo | Refused]:
    found = [_again(broker, call, topic) for topic in wanted]
    counts = Counter(topic.id for topic in found if isinstance(topic, TopicInfo))
    return [
        Refused(Error.INVALID_REQUEST, "The topic is named twice in one request.")
        if isinstance(topic, TopicInfo) and counts[topic.id] > 1
        else topic
        for topic in found
    ]


def _find(broker: "Broker", call: Call, wanted: DeleteTopicsRequestTopic) -> TopicInfo:
    if not broker.config.delete_topic_enable:
        error = Error.TOPIC_DELETION_DISABLED if call.api_version >= 3 else Error.INVALID_REQUEST
        raise Refused(error, "delete.topic.enable is false on this broker.")
    if wanted.name is not None:
        if wanted.topic_id != NO_TOPIC_ID:
            raise Refused(Error.INVALID_REQUEST, "Name a topic by its name or by its id, not by both.")
        topic = broker.image.topics.get(TopicName(wanted.name))
        error = Error.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic = broker.image.topic_by_id(TopicId(wanted.topic_id))
        error = Error.INVALID_REQUEST if wanted.topic_id == NO_TOPIC_ID else Error.UNKNOWN_TOPIC_ID
    if topic is None:
        raise Refused(error, "There is no such topic.")
    return topic


def _answer(wanted: DeleteTopicsRequestTopic, outcome: TopicInfo | Refused) -> DeleteTopicsResponseTopic:
    if isinstance(outcome, Refused):
        return DeleteTopicsResponseTopic(
            name=wanted.name, topic_id=wanted.topic_id, error_code=outcome.error, error_message=outcome.message
        )
    return DeleteTopicsResponseTopic(name=outcome.name, topic_id=outcome.id)
