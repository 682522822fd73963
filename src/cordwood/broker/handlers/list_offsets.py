"""ListOffsets (2), versions 1-11: the offset at a time, or at an end of the log.

- 4: the client's leader epoch, and the leader epoch of the offset found; 7: the record with the largest timestamp (-3).
- 8: the earliest offset on the local disk (-4), which without tiered storage is the earliest; 9: the last tiered offset
  (-5) and 11: the earliest not yet tiered (-6) are unknown here (-1), as on a Kafka without tiered storage.

The ends are O(1), and Spark's connector asks for them before every batch; a time is a search in the index,
and a look at the records of one batch. Where there are very many of those the answer is worked out in several turns.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cordwood.broker.connection import EFFORT_MAX, Call
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import NO_OFFSET, TopicName
from cordwood.log.times import FoundOffset
from cordwood.partition.partition import Partition
from cordwood.ports import Instant
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
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(broker: "Broker", call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse | None:
    response = ListOffsetsResponse()
    steps = _steps(broker, call, request, response)
    for _ in steps:  # there is more to look at than the others can wait for
        _go_on_later(broker, call, steps, response)
        return None
    return response


def _go_on_later(broker: "Broker", call: Call, steps: Iterator[None], response: ListOffsetsResponse) -> None:
    def go_on(_: Instant) -> None:
        if call.connection.closed:
            return
        for _pause in steps:
            _go_on_later(broker, call, steps, response)
            return
        broker.reply(call, response)

    broker.timers.at(broker.now.mono_ms + 1, go_on)


def _steps(broker: "Broker", call: Call, request: ListOffsetsRequest, response: ListOffsetsResponse) -> Iterator[None]:
    """Look everything up, one after the other, and pause whenever it has taken much effort."""
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
        partition.check_leader(wanted.current_leader_epoch)
        before = partition.log.effort
        found = _look_up(partition, wanted.timestamp, request.isolation_level)
        call.effort += partition.log.effort - before
        answer.timestamp, answer.offset, answer.leader_epoch = found.timestamp, found.offset, found.leader_epoch
    except Refused as refusal:
        answer.error_code = refusal.error
    except (StorageError, CorruptData) as error:
        broker.logger.error("an offset of %s-%d could not be looked up: %s", topic, wanted.partition_index, error)
        corrupt = isinstance(error, CorruptData)
        answer.error_code = Error.CORRUPT_MESSAGE if corrupt else Error.KAFKA_STORAGE_ERROR
    return answer


def _look_up(partition: Partition, timestamp: int, isolation_level: int) -> FoundOffset:
    log = partition.log
    end = partition.readable_end(isolation_level)
    if timestamp == LATEST:
        return FoundOffset(end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.earliest()
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN
    found = log.find_max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_timestamp(timestamp)
    return UNKNOWN if found is None or found.offset >= end else found
