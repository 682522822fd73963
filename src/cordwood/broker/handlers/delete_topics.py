"""DeleteTopics (20), versions 1-6: topics go at once from the metadata; their files follow.

- 3: that deletion is disabled has a code of its own; 5: errors carry a message; 6: topics by name or by id.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.controller import delete_topic
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
    found: list[TopicInfo | Refused] = []

    def plan() -> Sequence[StoreOp]:
        found.clear()
        found.extend(_find_all(broker, call, wanted))
        return [op for topic in found if isinstance(topic, TopicInfo) for op in delete_topic(broker.image, topic)]

    def done(refusal: Refused | None) -> None:
        answers = [_answer(topic, refusal or outcome) for topic, outcome in zip(wanted, found, strict=True)]
        broker.reply(call, DeleteTopicsResponse(responses=answers))

    broker.propose(plan, done)


def _find_all(broker: "Broker", call: Call, wanted: list[DeleteTopicsRequestTopic]) -> list[TopicInfo | Refused]:
    found: list[TopicInfo | Refused] = []
    for topic in wanted:
        try:
            found.append(_find(broker, call, topic))
        except Refused as refusal:
            found.append(refusal)
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
