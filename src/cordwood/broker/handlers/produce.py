"""Produce (0), versions 3-13: append record batches.

- 3-8: one batch of format 2 for each partition, as in all later versions; older formats are refused.
- 7: zstd, which earlier versions refuse (KIP-110); 8: errors carry a message.
- 10: a wrong leader's answer names the right one (KIP-951); 13: topics by id.

Each partition succeeds or fails on its own. A batch is checked, stamped and written where it was received: nothing here
looks at a record. With acks=0 there is no answer, so a failure closes the connection: nothing else can tell the client.
A partition that is named twice gets both batches and has two answers; Kafka keeps only the last one, and does not
mention the others.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from cordwood.broker.acks import Acks, Uncommitted
from cordwood.broker.connection import EFFORT_MAX, Call
from cordwood.broker.leaders import name_leaders_of_produce
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import TopicId, TopicName
from cordwood.log.produced import RecordsRefused
from cordwood.partition.partition import Partition
from cordwood.record.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_SIZE, MAGIC, MAGIC_AT, Codec
from cordwood.wire.compiler import maker
from cordwood.wire.messages import (
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
    ProduceResponseRecordError,
    ProduceResponseTopic,
)
from cordwood.wire.types import Records

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
ZSTD_SINCE: Final = 7

_VIEW: Final = memoryview  # compiled, a built-in name is looked up on every use
_response: Final = maker(ProduceResponse)
_response_topic: Final = maker(ProduceResponseTopic)
_response_partition: Final = maker(ProduceResponsePartition)


def handle(broker: "Broker", call: Call, request: ProduceRequest) -> ProduceResponse | None:
    acks = request.acks
    uncommitted: list[Uncommitted] = []
    refused: list[Error] = []
    response = _response(
        responses=[_topic(broker, call, acks, topic, uncommitted, refused) for topic in request.topic_data]
    )
    if refused and Error.NOT_LEADER_OR_FOLLOWER in refused:
        name_leaders_of_produce(broker, call, response)
    if uncommitted or acks == ACKS_NONE:
        return _wait(broker, call, request, response, uncommitted)
    return response


def _wait(
    broker: "Broker", call: Call, request: ProduceRequest, response: ProduceResponse, uncommitted: list[Uncommitted]
) -> ProduceResponse | None:
    """Not everything is committed, or the client does not wait for that. Leaders that must sync start a sync."""
    syncs = broker.replicas.syncs
    unsynced = list({entry.partition: None for entry in uncommitted if entry.partition.sync_due()})
    if request.acks == ACKS_ALL:
        for partition in unsynced:
            syncs.start(partition, broker.effects)
        Acks(broker, call, response).wait(uncommitted, request.timeout_ms)
        return None
    if request.acks == ACKS_NONE:
        for partition in unsynced:
            syncs.start(partition, broker.effects)
        _end_without_answer(broker, call, response)
        return None
    if unsynced:
        syncs.wait(unsynced, partial(broker.reply, call, response), broker.effects)
        return None
    return response


def _topic(
    broker: "Broker",
    call: Call,
    acks: int,
    topic: ProduceRequestTopic,
    uncommitted: list[Uncommitted],
    refused: list[Error],
) -> ProduceResponseTopic:
    replicas, topic_id = broker.replicas, topic.topic_id
    if call.api_version >= 13:
        local = replicas.by_id.get(topic_id.int, _NOWHERE)
    else:
        local = replicas.by_name.get(TopicName(topic.name), _NOWHERE)
    responses = []
    for data in topic.partition_data:
        index = data.index
        try:
            partition = local.get(index)
            if partition is None:
                raise _not_here(broker, call, topic, index)
            if call.api_version < ZSTD_SINCE:
                _refuse_zstd(data)
            if partition.log.may_look_inside:
                answer = _append_looking_inside(broker, call, acks, partition, data.records, index, uncommitted)
            else:
                answer = _append(broker, acks, partition, data.records, index, uncommitted)
            responses.append(answer)
        except Refused as refusal:
            refused.append(refusal.error)
            responses.append(_refusal(index, refusal))
        except (StorageError, CorruptData) as error:  # the disk failed, or what is on it is damaged
            broker.logger.error("a batch could not be written: %s", error)
            broker.replication.could_not_write(local[index])
            responses.append(_refusal(index, Refused(Error.KAFKA_STORAGE_ERROR, str(error))))
    return _response_topic(name=topic.name, topic_id=topic_id, partition_responses=responses)


_NOWHERE: Final[dict[int, Partition]] = {}


def _append_looking_inside(
    broker: "Broker",
    call: Call,
    acks: int,
    partition: Partition,
    records: Records | None,
    index: int,
    uncommitted: list[Uncommitted],
) -> ProduceResponsePartition:
    """Append a batch whose records must be looked at. A request may not bring more of that than others can wait for."""
    if call.effort > EFFORT_MAX:
        raise Refused(Error.REQUEST_TIMED_OUT, "There is too much to look at in one request; send the rest again.")
    before = partition.log.effort
    try:
        return _append(broker, acks, partition, records, index, uncommitted)
    finally:
        call.effort += partition.log.effort - before


def _append(
    broker: "Broker",
    acks: int,
    partition: Partition,
    records: Records | None,
    index: int,
    uncommitted: list[Uncommitted],
) -> ProduceResponsePartition:
    if not isinstance(records, _VIEW):
        raise Refused(Error.INVALID_RECORD, "There is no record batch.")
    if not -1 <= acks <= 1:
        raise Refused(Error.INVALID_REQUIRED_ACKS, f"acks is {acks}; it must be 0, 1 or -1 (all).")
    if partition.internal:
        raise Refused(Error.INVALID_TOPIC, "Clients may not write to an internal topic.")
    result = partition.append(records, required_acks=acks, now=broker.now)
    answer = _response_partition(
        index=index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    if partition.high_watermark <= result.last_offset:
        uncommitted.append(Uncommitted(partition, result.last_offset + 1, answer))
    return answer


def _refuse_zstd(data: ProduceRequestPartition) -> None:
    batch = data.records
    if not isinstance(batch, memoryview) or len(batch) < HEADER_SIZE or batch[MAGIC_AT] != MAGIC:
        return
    if batch[ATTRIBUTES_AT + 1] & CODEC_MASK == Codec.ZSTD:
        raise Refused(Error.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs version {ZSTD_SINCE} of Produce.")


def _not_here(broker: "Broker", call: Call, topic: ProduceRequestTopic, index: int) -> Refused:
    key = TopicId(topic.topic_id) if call.api_version >= 13 else TopicName(topic.name)
    return broker.replicas.not_here(broker.image, key, index)


def _refusal(index: int, refusal: Refused) -> ProduceResponsePartition:
    errors = refusal.record_errors if isinstance(refusal, RecordsRefused) else ()
    return ProduceResponsePartition(
        index=index,
        error_code=refusal.error,
        base_offset=-1,
        error_message=refusal.message,
        record_errors=[
            ProduceResponseRecordError(batch_index=number, batch_index_error_message=message)
            for number, message in errors
        ],
    )


def _end_without_answer(broker: "Broker", call: Call, response: ProduceResponse) -> None:
    errors = sorted({p.error_code for topic in response.responses for p in topic.partition_responses if p.error_code})
    broker.finish_silently(call)
    if errors:
        names = ", ".join(Error(code).name for code in errors)
        broker.close(call.connection, f"a produce request with acks=0 failed: {names}")
