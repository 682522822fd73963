"""OffsetCommit (8), versions 2-10: a group says how far it has read.

- 2-4: the client may choose for how long; 6: leader epochs; 7: static members; 9: members of consumer groups;
  10: topics by id.

Partitions that do not exist are refused one by one, before anything else is looked at; so are notes that are too long.
Whether the sender may commit at all is for the group to say, and then all that is left is refused.

A commit whose records do not fit into one batch is refused as a whole, with INVALID_COMMIT_OFFSET_SIZE, which is made
for it. (Kafka 4 has UNKNOWN_SERVER_ERROR, which tells a person nothing.)
"""

from typing import NamedTuple

from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.coordinator.outcome import Caller, Outcome, StateRecord, answer
from cordwood.errors import Error, Refused
from cordwood.group.committed import NEVER_CHOSEN, CommittedOffset
from cordwood.group.groups import CheckPartition
from cordwood.group.memory import GROUP_BYTES
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.ids import TopicId, TopicName
from cordwood.ports import Instant
from cordwood.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from cordwood.wire.types import NO_UUID

TOPIC_IDS_SINCE = 10
GROUP_ID_NOT_FOUND_SINCE = 9
RETENTION_UNCHOSEN = -1
TIMESTAMP_MAX = (1 << 63) - 1
RECORD_BYTES_LEAST = 40
"""What the record of an offset takes besides the names and the note in it, at the very least."""


class Known(NamedTuple):
    """An offset of a partition that exists, and the place of its answer."""

    topic: TopicInfo
    asked: OffsetCommitRequestPartition
    answer: OffsetCommitResponsePartition


def commit(state: GroupState, request: OffsetCommitRequest, caller: Caller, now: Instant) -> Outcome:
    response, known = _sort_out(state.image, request, caller.api_version)
    if not known:
        return answer(caller, response)
    check = _check_group(state, request, caller.api_version, now)
    records: list[StateRecord] = []
    room = state.batch_bytes_max
    for topic, asked, answered in known:
        if _is_too_long(asked.committed_metadata, state.config.offset_metadata_max_bytes):
            answered.error_code = Error.OFFSET_METADATA_TOO_LARGE
            continue
        if check is not None:
            check(topic.name, topic.id, asked.partition_index)
        room -= len(request.group_id) + len(topic.name) + len(asked.committed_metadata or "") + RECORD_BYTES_LEAST
        if room < 0:
            raise Refused(Error.INVALID_COMMIT_OFFSET_SIZE, "These offsets do not fit into one batch.")
        records.append(_record(request, topic, asked, now))
    return answer(caller, response, *records)


def refused_commit(
    image: MetadataImage, request: OffsetCommitRequest, version: int, refusal: Refused
) -> OffsetCommitResponse:
    """The answer to a commit that was refused: whatever is known has that error."""
    response, known = _sort_out(image, request, version)
    too_large = refusal.error is Error.RECORD_LIST_TOO_LARGE
    for _, _, answered in known:
        answered.error_code = Error.INVALID_COMMIT_OFFSET_SIZE if too_large else refusal.error
    return response


def _sort_out(
    image: MetadataImage, request: OffsetCommitRequest, version: int
) -> tuple[OffsetCommitResponse, list[Known]]:
    """An answer for every partition, with an error where it does not exist; and those that do."""
    response, known = OffsetCommitResponse(), list[Known]()
    for topic in request.topics:
        found = _find(image, topic, version)
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answered)
        count = len(found.partitions) if found is not None else 0
        unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
        if found is None and version >= TOPIC_IDS_SINCE:
            unknown = Error.UNKNOWN_TOPIC_ID
        for asked in topic.partitions:
            partition = OffsetCommitResponsePartition(partition_index=asked.partition_index)
            answered.partitions.append(partition)
            if found is not None and 0 <= asked.partition_index < count:
                known.append(Known(found, asked, partition))
            else:
                partition.error_code = unknown
    return response, known


def _find(image: MetadataImage, topic: OffsetCommitRequestTopic, version: int) -> TopicInfo | None:
    if version >= TOPIC_IDS_SINCE:
        return image.topic_by_id(TopicId(topic.topic_id))
    return image.topics.get(TopicName(topic.name))


def _check_group(state: GroupState, request: OffsetCommitRequest, version: int, now: Instant) -> CheckPartition | None:
    """May the sender commit for the group? One that does not exist is made by whoever is no member of it."""
    group = state.groups.get(request.group_id)
    if group is None:
        if request.generation_id_or_member_epoch >= 0:
            raise Refused(Error.GROUP_ID_NOT_FOUND if version >= GROUP_ID_NOT_FOUND_SINCE else Error.ILLEGAL_GENERATION)
        state.memory.admit(GROUP_BYTES + 4 * len(request.group_id), now)
        return None
    check = group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        transactional=False,
        api_version=version,
    )
    group.touched(request.member_id, state.deadlines, now)
    return check


def _is_too_long(metadata: str | None, limit: int) -> bool:
    """Kafka counts in 16-bit units, of which characters beyond the basic plane have two."""
    if metadata is None or 2 * len(metadata) <= limit:
        return False
    return len(metadata) + sum(character > "\uffff" for character in metadata) > limit


def _record(
    request: OffsetCommitRequest, topic: TopicInfo, asked: OffsetCommitRequestPartition, now: Instant
) -> StateRecord:
    expire_timestamp = NEVER_CHOSEN
    if request.retention_time_ms != RETENTION_UNCHOSEN:
        expire_timestamp = min(now.wall_ms + request.retention_time_ms, TIMESTAMP_MAX)
    return StateRecord(
        OffsetCommitKey(request.group_id, topic.name, asked.partition_index),
        CommittedOffset(
            asked.committed_offset,
            asked.committed_leader_epoch,
            asked.committed_metadata or "",
            now.wall_ms,
            expire_timestamp,
            topic.id if expire_timestamp == NEVER_CHOSEN else NO_UUID,  # a record has either, see ``stored_offsets``
        ),
    )
