"""DescribeProducers (61), version 0: the producers that a partition remembers."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.topic_names import check_name
from cordwood.errors import Refused
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersResponsePartition,
    DescribeProducersResponseProducer,
    DescribeProducersResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    wanted: dict[TopicName, dict[int, None]] = {}
    for topic in request.topics:  # a partition that is named twice is described once: an answer may be large
        wanted.setdefault(TopicName(topic.name), {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponseTopic(name=name, partitions=[_answer(broker, name, index) for index in indexes])
            for name, indexes in wanted.items()
        ]
    )


def _answer(broker: "Broker", topic: TopicName, index: int) -> DescribeProducersResponsePartition:
    try:
        partition = broker.replicas.get(check_name(topic), index)
        partition.check_reader()
    except Refused as refusal:
        return DescribeProducersResponsePartition(
            partition_index=index, error_code=refusal.error, error_message=refusal.message
        )
    return DescribeProducersResponsePartition(
        partition_index=index,
        active_producers=[
            DescribeProducersResponseProducer(
                producer_id=producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.transaction_start,
            )
            for producer_id, entry in partition.log.producers.known.items()
        ],
    )
