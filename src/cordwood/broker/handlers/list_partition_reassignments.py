"""ListPartitionReassignments (46), version 0: which partitions are being moved, of those asked for, or of all."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.image import PartitionInfo, TopicInfo
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponsePartition,
    ListPartitionReassignmentsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(
    broker: "Broker", call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    topics = broker.image.topics
    if request.topics is None:
        found = [_topic(topic, topic.partitions) for topic in topics.values()]
    else:
        wanted: dict[TopicName, dict[int, None]] = {}
        for asked in request.topics:
            wanted.setdefault(TopicName(asked.name), {}).update(dict.fromkeys(asked.partition_indexes))
        found = [
            _topic(topics[name], [topics[name].partitions[i] for i in indexes if 0 <= i < len(topics[name].partitions)])
            for name, indexes in wanted.items()
            if name in topics
        ]
    return ListPartitionReassignmentsResponse(topics=[topic for topic in found if topic.partitions])


def _topic(topic: TopicInfo, partitions: Iterable[PartitionInfo]) -> ListPartitionReassignmentsResponseTopic:
    moving = [_partition(partition) for partition in partitions if partition.moving]
    return ListPartitionReassignmentsResponseTopic(name=topic.name, partitions=moving)


def _partition(info: PartitionInfo) -> ListPartitionReassignmentsResponsePartition:
    return ListPartitionReassignmentsResponsePartition(
        partition_index=info.index,
        replicas=list(info.replicas),
        adding_replicas=list(info.adding),
        removing_replicas=list(info.removing),
    )
