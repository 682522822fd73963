"""ListOffsets (2), versions 1-11: the offset for a timestamp, or at either end of the log.

- 4: the client's leader epoch, and the leader epoch of the offset found; 7: the record with the largest timestamp (-3).
- 5: a leader that does not know yet what its predecessors committed tells clients OFFSET_NOT_AVAILABLE (KIP-207).
- 8: the earliest offset on the local disk (-4), which without tiered storage is the earliest; 9: the last tiered offset
  (-5) and 11: the earliest not yet tiered (-6) are unknown here (-1), as on a Kafka without tiered storage.

Finding an end is O(1), and Spark's connector asks for the ends before every batch; finding a timestamp takes a search
in the index, and a look at the records of one batch. If there are very many records, the work is spread over several
turns of the loop.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.connection import EFFORT_MAX, Call
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import NO_OFFSET, TopicName
from cordwood.log.times import FoundOffset
from cordwood.partition.partition import Partition
from cordwood.wire.messages import (
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsResponse,
    ListOffsetsResponsePartition,
    ListOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
UNKNOWN = FoundOffset(NO_OFFSET)
DEBUGGER = -2
CONSUMER = -1
NOT_AVAILABLE_SINCE = 5
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(broker: "Broker", call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse | None:
    response = ListOffsetsResponse()
    steps = _steps(broker, call, request, response)
    for _ in steps:  # there is too much to look at to let the others wait
        broker.turns.wait(call, steps, partial(broker.reply, call, response), broker.now)
        return None
    return response


def _steps(broker: "Broker", call: Call, request: ListOffsetsRequest, response: ListOffsetsResponse) -> Iterator[None]:
    """Look everything up, one partition after the other, and pause whenever that has taken much effort."""
    named = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    twice = {name for name, count in named.items() if count > 1}
    for topic in request.topics:
        answered = ListOffsetsResponseTopic(name=topic.name)
        response.topics.append(answered)
        for wanted in topic.partitions:
            is_twice = (topic.name, wanted.partition_index) in twice
            answered.partitions.append(_answer(broker, call, request, TopicName(topic.name), wanted, is_twice))
            if call.effort > EFFORT_MAX:
                call.effort = 0
                yield


def _answer(
    broker: "Broker",
    call: Call,
    request: ListOffsetsRequest,
    topic: TopicName,
    wanted: ListOffsetsRequestPartition,
    twice: bool,
) -> ListOffsetsResponsePartition:
    answer = ListOffsetsResponsePartition(partition_index=wanted.partition_index)
    try:
        if twice:
            raise Refused(Error.INVALID_REQUEST)
        if call.api_version < SINCE_VERSION.get(wanted.timestamp, 0) or wanted.timestamp < EARLIEST_PENDING_UPLOAD:
            raise Refused(Error.UNSUPPORTED_VERSION)
        partition = broker.replicas.get(topic, wanted.partition_index)
        if request.replica_id == DEBUGGER:
            partition.check_epoch(wanted.current_leader_epoch)
        else:
            partition.check_reader(wanted.current_leader_epoch)
        before = partition.log.effort
        found = _look_up(partition, wanted.timestamp, request)
        call.effort += partition.log.effort - before
        answer.timestamp, answer.offset, answer.leader_epoch = found.timestamp, found.offset, found.leader_epoch
    except Refused as refusal:
        answer.error_code = refusal.error
        if refusal.error is Error.OFFSET_NOT_AVAILABLE and call.api_version < NOT_AVAILABLE_SINCE:
            answer.error_code = Error.LEADER_NOT_AVAILABLE
    except (StorageError, CorruptData) as error:
        broker.logger.error("an offset of %s-%d could not be looked up: %s", topic, wanted.partition_index, error)
        corrupt = isinstance(error, CorruptData)
        answer.error_code = Error.CORRUPT_MESSAGE if corrupt else Error.KAFKA_STORAGE_ERROR
    return answer


def _look_up(partition: Partition, timestamp: int, request: ListOffsetsRequest) -> FoundOffset:
    log = partition.log
    is_client = request.replica_id == CONSUMER
    end = partition.readable_end(request.isolation_level) if is_client else log.end_offset
    if timestamp == LATEST:
        _check_available(partition, is_client)
        return FoundOffset(end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN
    found = log.find_max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_timestamp(timestamp)
    if found is not None and found.offset < end:
        return found
    _check_available(partition, is_client)
    return UNKNOWN


def _check_available(partition: Partition, is_client: bool) -> None:
    """A new leader may have records that were committed, but cannot know that until its followers have fetched."""
    if is_client and partition.leader == partition.node and partition.epoch_start > partition.high_watermark:
        raise Refused(Error.OFFSET_NOT_AVAILABLE)
