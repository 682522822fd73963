"""ListOffsets (2), versions 1-11: the offset at a time, or at an end of the log.

- 4: the client's leader epoch, and the leader epoch of the offset found; 7: the record with the largest timestamp (-3).
- 8: the earliest offset on the local disk (-4), which without tiered storage is the earliest; 9: the last tiered offset
  (-5) and 11: the earliest not yet tiered (-6) are unknown here (-1), as on a Kafka without tiered storage.

The ends are O(1), and Spark's connector asks for them before every batch; a time is a search in the index.
"""

from collections import Counter
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import TopicName
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
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(broker: "Broker", call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    named = Counter((topic.name, p.partition_index) for topic in request.topics for p in topic.partitions)
    twice = {name for name, count in named.items() if count > 1}
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponseTopic(
                name=topic.name,
                partitions=[
                    _answer(
                        broker,
                        call,
                        request,
                        TopicName(topic.name),
                        wanted,
                        (topic.name, wanted.partition_index) in twice,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


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
        answer.timestamp, answer.offset, answer.leader_epoch = _look_up(
            partition, wanted.timestamp, request.isolation_level
        )
    except Refused as refusal:
        answer.error_code = refusal.error
    except (StorageError, CorruptData) as error:
        broker.logger.error("an offset of %s-%d could not be looked up: %s", topic, wanted.partition_index, error)
        corrupt = isinstance(error, CorruptData)
        answer.error_code = Error.CORRUPT_MESSAGE if corrupt else Error.KAFKA_STORAGE_ERROR
    return answer


def _look_up(partition: Partition, timestamp: int, isolation_level: int) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch); -1 for each that is unknown."""
    log = partition.log
    end = partition.readable_end(isolation_level)
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        earliest = log.earliest()
        return -1, earliest.offset, earliest.leader_epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    found = log.find_max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_timestamp(timestamp)
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch
