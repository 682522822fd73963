"""Produce (0), versions 3-13: append record batches.

- 3-8: one batch of format 2 for each partition, as in all later versions; older formats are refused.
- 8: errors carry a message; 10: a wrong leader's answer names the right one (KIP-951); 13: topics by id.

Each partition succeeds or fails by itself. A batch is checked, stamped and written where it was received: nothing here
looks at a record. acks=0 has no answer, and a failure then ends the connection, because nothing else can tell the
client.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from cordwood.broker.connection import Call
from cordwood.cluster.image import INTERNAL_TOPICS
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import TopicId, TopicName
from cordwood.partition.partition import Partition
from cordwood.wire.messages import (
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
    ProduceResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


def handle(broker: "Broker", call: Call, request: ProduceRequest) -> ProduceResponse | None:
    unsynced: list[Partition] = []
    response = ProduceResponse(
        responses=[_topic(broker, call, request, topic, unsynced) for topic in request.topic_data]
    )
    if request.acks == ACKS_NONE:
        _end_without_answer(broker, call, response)
        return None
    if unsynced:
        broker.replicas.syncs.wait(unsynced, lambda: broker.reply(call, response), broker.effects)
        return None
    return response


def _topic(
    broker: "Broker", call: Call, request: ProduceRequest, topic: ProduceRequestTopic, unsynced: list[Partition]
) -> ProduceResponseTopic:
    by_id = call.api_version >= 13
    local = (
        broker.replicas.by_id.get(TopicId(topic.topic_id))
        if by_id
        else broker.replicas.by_name.get(TopicName(topic.name))
    )
    responses = []
    for data in topic.partition_data:
        try:
            if local is None or (partition := local.get(data.index)) is None:
                raise _unknown(broker, topic.topic_id if by_id else None)
            responses.append(_append(broker, request, partition, data, unsynced))
        except Refused as refusal:
            responses.append(_refusal(data.index, refusal.error, refusal.message))
        except CorruptData as error:
            responses.append(_refusal(data.index, Error.CORRUPT_MESSAGE, str(error)))
        except StorageError as error:
            broker.logger.error("a batch could not be written: %s", error)
            responses.append(_refusal(data.index, Error.KAFKA_STORAGE_ERROR, str(error)))
    return ProduceResponseTopic(name=topic.name, topic_id=topic.topic_id, partition_responses=responses)


def _append(
    broker: "Broker",
    request: ProduceRequest,
    partition: Partition,
    data: ProduceRequestPartition,
    unsynced: list[Partition],
) -> ProduceResponsePartition:
    if partition.name.topic in INTERNAL_TOPICS:
        raise Refused(Error.INVALID_TOPIC, "Clients may not write to an internal topic.")
    if request.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        raise Refused(Error.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; it must be 0, 1 or -1 (all).")
    batch = data.records
    if batch is None:
        raise Refused(Error.INVALID_RECORD, "There is no record batch.")
    assert isinstance(batch, memoryview)
    result = partition.append(batch, required_acks=request.acks, now=broker.now)
    if partition.high_watermark <= result.last_offset:
        unsynced.append(partition)
    return ProduceResponsePartition(
        index=data.index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )


def _unknown(broker: "Broker", topic_id: UUID | None) -> Refused:
    if topic_id is not None and TopicId(topic_id) not in broker.image.topic_names:
        return Refused(Error.UNKNOWN_TOPIC_ID)
    return Refused(Error.UNKNOWN_TOPIC_OR_PARTITION)


def _refusal(index: int, error: Error, message: str | None) -> ProduceResponsePartition:
    return ProduceResponsePartition(index=index, error_code=error, base_offset=-1, error_message=message)


def _end_without_answer(broker: "Broker", call: Call, response: ProduceResponse) -> None:
    errors = sorted({p.error_code for topic in response.responses for p in topic.partition_responses if p.error_code})
    broker.finish_silently(call)
    if errors:
        names = ", ".join(Error(code).name for code in errors)
        broker.close(call.connection, f"a produce request with acks=0 failed: {names}")
