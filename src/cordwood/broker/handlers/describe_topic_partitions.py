"""DescribeTopicPartitions (75), version 0: topics in the order of their names, some partitions at a time.

The cursor of an answer names the first partition that did not fit; the client sends it back to continue from there.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.reachable import Reachable
from cordwood.cluster.image import PartitionInfo
from cordwood.cluster.topic_names import check_name
from cordwood.errors import Error, Refused
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicPartitionCursor,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    names = sorted({topic.name for topic in request.topics}) or sorted(broker.image.topics)
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            refused = [_refusal(topic.name, Error.INVALID_REQUEST) for topic in request.topics]
            return DescribeTopicPartitionsResponse(topics=refused)
        names = [name for name in names if name >= cursor.topic_name]
    room = max(1, min(request.response_partition_limit, broker.config.max_request_partition_size_limit))
    response, reachable = DescribeTopicPartitionsResponse(), Reachable(broker, call)
    for name in names:
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        topic = _describe(broker, reachable, name, first, room)
        if room == 0:
            response.next_cursor = TopicPartitionCursor(topic_name=name, partition_index=first)
            return response
        response.topics.append(topic)
        room -= len(topic.partitions)
        if topic.error_code == Error.NONE:
            after = first + len(topic.partitions)
            if after < len(broker.image.topics[TopicName(name)].partitions):
                response.next_cursor = TopicPartitionCursor(topic_name=name, partition_index=after)
                return response
    return response


def _describe(
    broker: "Broker", reachable: Reachable, name: str, first: int, room: int
) -> DescribeTopicPartitionsResponseTopic:
    try:
        topic = broker.image.topics.get(check_name(name))
    except Refused as refusal:
        return _refusal(name, refusal.error)
    if topic is None:
        return _refusal(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_partition(reachable, partition) for partition in topic.partitions[first : first + room]],
    )


def _refusal(name: str, error: Error) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=error)


def _partition(reachable: Reachable, info: PartitionInfo) -> DescribeTopicPartitionsResponsePartition:
    leader, error = reachable.leader(info)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=info.index,
        leader_id=leader,
        leader_epoch=info.leader_epoch,
        replica_nodes=list(info.replicas),
        isr_nodes=list(info.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=reachable.not_among(info.replicas),
    )
