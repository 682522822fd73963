"""DeleteRecords (21), versions 0-2: move a partition's log start offset. An offset of -1 means the high watermark.

The answer is sent when the followers have done the same, or the client's timeout has expired.
"""

from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.deletions import Deletion, Undone
from cordwood.cluster.image import INTERNAL_TOPICS
from cordwood.errors import Error, Refused, StorageError
from cordwood.ids import TopicName
from cordwood.partition.partition import Partition
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResponsePartition,
    DeleteRecordsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

HIGH_WATERMARK = -1


def handle(broker: "Broker", call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse | None:
    wanted: dict[TopicName, dict[int, int]] = {}
    for topic in request.topics:  # if a partition is named twice, the last entry counts, as in Kafka
        wanted.setdefault(TopicName(topic.name), {}).update({p.partition_index: p.offset for p in topic.partitions})
    undone: list[Undone] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponseTopic(
                name=name,
                partitions=[_answer(broker, name, index, offset, undone) for index, offset in offsets.items()],
            )
            for name, offsets in wanted.items()
        ]
    )
    if not undone:
        return response
    Deletion(broker, call, partial(broker.reply, call, response)).wait(undone, request.timeout_ms)
    return None


def _answer(
    broker: "Broker", topic: TopicName, index: int, offset: int, undone: list[Undone]
) -> DeleteRecordsResponsePartition:
    answer = DeleteRecordsResponsePartition(partition_index=index, low_watermark=-1)
    try:
        partition = _delete(broker, topic, index, offset)
    except Refused as refusal:
        answer.error_code = refusal.error
        return answer
    except StorageError as error:
        broker.logger.error("records could not be deleted: %s", error)
        answer.error_code = Error.KAFKA_STORAGE_ERROR
        return answer
    start = partition.log.log_start_offset
    answer.low_watermark = partition.low_watermark(broker.image.brokers)
    if answer.low_watermark < start:
        undone.append(Undone(partition, start, answer))
    return answer


def _delete(broker: "Broker", topic: TopicName, index: int, offset: int) -> Partition:
    if topic in INTERNAL_TOPICS:
        raise Refused(Error.INVALID_TOPIC)
    partition = broker.replicas.get(topic, index)
    partition.check_leader()
    policy = partition.log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise Refused(Error.POLICY_VIOLATION)
    target = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= target <= partition.high_watermark:
        raise Refused(Error.OFFSET_OUT_OF_RANGE)
    broker.replicas.delete_records(broker, partition, target)
    return partition
