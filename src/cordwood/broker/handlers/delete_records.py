"""DeleteRecords (21), versions 0-2: let a partition start later. An offset of -1 means the high watermark."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.image import INTERNAL_TOPICS
from cordwood.errors import Error, Refused, StorageError
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResponsePartition,
    DeleteRecordsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

HIGH_WATERMARK = -1


def handle(broker: "Broker", call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    wanted: dict[TopicName, dict[int, int]] = {}
    for topic in request.topics:  # of what is named twice the last counts, as in Kafka
        wanted.setdefault(TopicName(topic.name), {}).update({p.partition_index: p.offset for p in topic.partitions})
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponseTopic(
                name=name, partitions=[_answer(broker, name, index, offset) for index, offset in offsets.items()]
            )
            for name, offsets in wanted.items()
        ]
    )


def _answer(broker: "Broker", topic: TopicName, index: int, offset: int) -> DeleteRecordsResponsePartition:
    try:
        low = _delete(broker, topic, index, offset)
    except Refused as refusal:
        return DeleteRecordsResponsePartition(partition_index=index, low_watermark=-1, error_code=refusal.error)
    except StorageError as error:
        broker.logger.error("records could not be deleted: %s", error)
        error_code = Error.KAFKA_STORAGE_ERROR
        return DeleteRecordsResponsePartition(partition_index=index, low_watermark=-1, error_code=error_code)
    return DeleteRecordsResponsePartition(partition_index=index, low_watermark=low)


def _delete(broker: "Broker", topic: TopicName, index: int, offset: int) -> int:
    if topic in INTERNAL_TOPICS:
        raise Refused(Error.INVALID_TOPIC)
    partition = broker.replicas.get(topic, index)
    partition.check_leader()
    if "delete" not in partition.log.config.cleanup_policy:
        raise Refused(Error.POLICY_VIOLATION)
    target = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= target <= partition.high_watermark:
        raise Refused(Error.OFFSET_OUT_OF_RANGE)
    broker.replicas.delete_records(broker, partition, target)
    return partition.log.log_start_offset
