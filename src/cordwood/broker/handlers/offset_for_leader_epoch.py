"""OffsetForLeaderEpoch (23), versions 2-4: where a leader epoch ended, which tells where two logs diverge."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.errors import Refused
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestPartition,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponsePartition,
    OffsetForLeaderEpochResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponseTopic(
                topic=topic.topic, partitions=[_answer(broker, TopicName(topic.topic), p) for p in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(
    broker: "Broker", topic: TopicName, wanted: OffsetForLeaderEpochRequestPartition
) -> OffsetForLeaderEpochResponsePartition:
    try:
        partition = broker.replicas.get(topic, wanted.partition)
        partition.check_reader(wanted.current_leader_epoch)
    except Refused as refusal:
        return OffsetForLeaderEpochResponsePartition(partition=wanted.partition, error_code=refusal.error)
    epoch, end_offset = partition.log.end_offset_for(wanted.leader_epoch)
    return OffsetForLeaderEpochResponsePartition(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
