"""Metadata (3), versions 0-13: brokers, and where the partitions of topics are.

- 0: an empty list of topics means all of them; from 1 on that is null, and an empty list means none. Replicas on
  brokers that are down are left out.
- 4: the client says whether unknown topics may be created. The answer waits until they are, so that it includes them.
- 6: there is an error for a leader without the listener that the client is connected to.
- 8-10: authorised operations. They are left unset: there is no access control yet.
- 10: topic ids in the answer; 12: topics asked for by id. Requests of 10 and 11 have a field for the id, but it is
  refused.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.reachable import Reachable
from cordwood.broker.portions import portions, propose_in_turn, states_max
from cordwood.cluster.controller import create_topic, plan_topic
from cordwood.cluster.image import INTERNAL_TOPICS, NO_LEADER, MetadataImage, PartitionInfo, TopicInfo
from cordwood.cluster.topic_names import check_name
from cordwood.errors import Error, Refused
from cordwood.group.stored import OFFSETS_TOPIC
from cordwood.ids import NO_TOPIC_ID, NodeId, TopicId, TopicName
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


CREATED_PARTITIONS_MAX = 1000
"""By one request: a client that asks for more topics that do not exist gets the rest when it asks again."""


def handle(broker: "Broker", call: Call, request: MetadataRequest) -> MetadataResponse | None:
    if call.api_version < 12 and any(t.name is None or t.topic_id != NO_TOPIC_ID for t in request.topics or ()):
        return _refuse_all(request)
    if by_id := [topic for topic in request.topics or () if topic.topic_id != NO_TOPIC_ID]:
        # If any topic has an id, only ids count, as in Kafka: the Java client sends empty names with them.
        request = replace(request, topics=[replace(topic, name=None) for topic in by_id])
    missing = _to_create(broker, call, request)
    if not missing:
        if not broker.clustered:
            return _respond(broker, call, request)
        named = partial(_leaders, broker.image, request)
        broker.doubts.wait(call, named, lambda: broker.reply(call, _respond(broker, call, request)))
        return None

    def divide() -> list[list[TopicName]]:
        return portions(broker, missing, partial(_number_of, broker))

    def answer() -> None:
        broker.reply(call, _respond(broker, call, request))

    def done(_: object) -> None:
        broker.replicas.additions.when_added(missing, answer)

    propose_in_turn(broker, divide, partial(_creations, broker), done)
    return None


def _refuse_all(request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=Error.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def _to_create(broker: "Broker", call: Call, request: MetadataRequest) -> list[TopicName]:
    """The topics that the client names, that do not exist, and that may be created automatically.

    Of names that differ only in '.' and '_', the first is taken: the others would collide with it. Of the internal
    topics, only the offsets topic is of any use here.
    """
    if not request.topics or not request.allow_auto_topic_creation or not broker.config.auto_create_topics_enable:
        return []
    missing: dict[str, TopicName] = {}
    for topic in request.topics:
        name = TopicName(topic.name or "")
        if topic.name is None or name in broker.image.topics or (name in INTERNAL_TOPICS and name != OFFSETS_TOPIC):
            continue
        missing.setdefault(name.replace(".", "_"), name)
    names = list(missing.values())
    partitions = accumulate(_number_of(broker, name) for name in names)
    partitions_max = min(CREATED_PARTITIONS_MAX, broker.replicas.room)
    return [name for name, number in zip(names, partitions, strict=True) if number <= partitions_max]


def _number_of(broker: "Broker", name: TopicName) -> int:
    """The partitions that a topic will have."""
    return broker.config.offsets_topic_num_partitions if name == OFFSETS_TOPIC else broker.config.num_partitions


def _creations(broker: "Broker", names: list[TopicName]) -> list[StoreOp]:
    return [operation for name in names for operation in _creation(broker, name)]


def _creation(broker: "Broker", name: TopicName) -> list[StoreOp]:
    try:
        if name == OFFSETS_TOPIC:
            return broker.groups.topic_creation()
        plan = plan_topic(
            broker.image,
            broker.entropy,
            name=name,
            partitions=broker.config.num_partitions,
            replicas=broker.config.default_replication_factor,
            manual={},
            config={},
        )
    except Refused:
        return []  # a bad name, or somebody else was faster: the answer says which
    return create_topic(broker.image, plan, states_max=states_max(broker))


def _leaders(image: MetadataImage, request: MetadataRequest) -> Iterator[NodeId]:
    """The brokers that the answer would name as leaders."""
    if request.topics is None:
        topics = list(image.topics.values())
    else:
        found = (
            image.topics.get(TopicName(wanted.name))
            if wanted.name is not None
            else image.topic_by_id(TopicId(wanted.topic_id))
            for wanted in request.topics
        )
        topics = [topic for topic in found if topic is not None]
    return (partition.leader for topic in topics for partition in topic.partitions)


def _respond(broker: "Broker", call: Call, request: MetadataRequest) -> MetadataResponse:
    image = broker.image
    view = View(broker, call)
    if request.topics is None or (call.api_version == 0 and not request.topics):
        topics = [view.describe(topic) for topic in image.topics.values()]
    else:
        wanted = {(topic.name, topic.topic_id): topic for topic in request.topics}
        topics = [_find(image, view, topic) for topic in wanted.values()]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=info.id, host=info.host, port=info.port, rack=info.rack)
            for info in (*view.reachable.brokers, *broker.doubts.departed(call))
        ],
        cluster_id=image.cluster_id,
        controller_id=NO_LEADER if image.controller is None else image.controller,
        topics=topics,
    )


def _find(image: MetadataImage, view: "View", wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    if wanted.name is None:
        topic = image.topic_by_id(TopicId(wanted.topic_id))
        if topic is not None:
            return view.describe(topic)
        error = Error.INVALID_REQUEST if wanted.topic_id == NO_TOPIC_ID else Error.UNKNOWN_TOPIC_ID
        return MetadataResponseTopic(error_code=error, topic_id=wanted.topic_id, name=None)
    try:
        topic = image.topics.get(check_name(wanted.name))
    except Refused as refusal:
        return MetadataResponseTopic(error_code=refusal.error, name=wanted.name)
    if topic is None:
        unknown, internal = Error.UNKNOWN_TOPIC_OR_PARTITION, wanted.name in INTERNAL_TOPICS
        return MetadataResponseTopic(error_code=unknown, name=wanted.name, is_internal=internal)
    return view.describe(topic)


class View:
    """Topics as one client sees them."""

    def __init__(self, broker: "Broker", call: Call) -> None:
        self.reachable = Reachable(broker, call)
        self._version = call.api_version

    def describe(self, topic: TopicInfo) -> MetadataResponseTopic:
        partition = self._partition if self._version > 0 else self._partition_of_old
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.internal,
            partitions=[partition(info) for info in topic.partitions],
        )

    def _partition(self, info: PartitionInfo) -> MetadataResponsePartition:
        leader, error = self.reachable.leader(info)
        if error == Error.LISTENER_NOT_FOUND and self._version < 6:
            error = Error.LEADER_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=info.index,
            leader_id=leader,
            leader_epoch=info.leader_epoch,
            replica_nodes=list(info.replicas),
            isr_nodes=list(info.isr),
            offline_replicas=self.reachable.not_among(info.replicas),
        )

    def _partition_of_old(self, info: PartitionInfo) -> MetadataResponsePartition:
        """For version 0: only replicas on live brokers, and an error if some are not."""
        partition = self._partition(info)
        partition.replica_nodes = self.reachable.among(info.replicas)
        partition.isr_nodes = self.reachable.among(info.isr)
        if partition.error_code == Error.NONE and len(partition.replica_nodes) < len(info.replicas):
            partition.error_code = Error.REPLICA_NOT_AVAILABLE
        return partition
