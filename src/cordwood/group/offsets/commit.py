"""OffsetCommit (8), versions 2-10: a group says how far it has read.

- 2-4: the client may choose the retention; 6: leader epochs; 7: static members; 9: members of consumer groups; 10:
  topics by id.

Partitions that do not exist are refused one by one, before anything else is checked; so is metadata that is too long.
The group decides whether the sender may commit at all; if not, all the rest is refused.

A commit whose records do not fit into one batch is refused as a whole, with INVALID_COMMIT_OFFSET_SIZE, which was made
for this. (Kafka 4 answers UNKNOWN_SERVER_ERROR, which tells nobody anything.)
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.coordinator.outcome import Caller, Gathers, Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.committed import NEVER_CHOSEN, CommittedOffset
from cordwood.group.groups import CheckPartition, Group
from cordwood.group.memory import GROUP_BYTES
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.ids import TopicId, TopicName
from cordwood.ports import Instant
from cordwood.wire import encode
from cordwood.wire.frame import Encoded
from cordwood.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from cordwood.wire.types import NO_UUID

TOPIC_IDS_SINCE: Final = 10
NO_ERROR: Final = 0
REMEMBERED_ANSWERS: Final = 4096
GROUP_ID_NOT_FOUND_SINCE: Final = 9
RETENTION_UNCHOSEN: Final = -1
TIMESTAMP_MAX: Final = (1 << 63) - 1
RECORD_BYTES_LEAST: Final = 40
"""What an offset's record takes at the very least, besides the names and the metadata in it."""


LOOKED_AT_FROM_BYTES: Final = 4096
"""Smaller commits are left for the log to refuse: looking up its limit takes longer than making the records."""

_BY_KEY: Final = Gathers.BY_KEY
_new: Final = tuple.__new__  # makes a named tuple in a third of the time


def commit(state: GroupState, request: OffsetCommitRequest, caller: Caller, now: Instant) -> Outcome:
    """The outcome is gathered, unless it creates a group: that must exist for the next request."""
    version, group_id = caller.api_version, request.group_id
    group = state.groups.get(group_id)
    check: CheckPartition | None = None
    is_checked = False
    records: list[StateRecord] = []
    errors: list[int] = []
    size = 0
    by_name = state.image.topics if version < TOPIC_IDS_SINCE else None
    for topic in request.topics:
        found = _find(state.image, topic, version) if by_name is None else by_name.get(TopicName(topic.name))
        count = 0 if found is None else len(found.partitions)
        for asked in topic.partitions:
            index, note = asked.partition_index, asked.committed_metadata or ""
            if found is None or not 0 <= index < count:
                errors.append(_unknown(found, version))
                continue
            if not is_checked:
                is_checked, check = True, _check_group(state, group, request, version, now)
            if note and _is_too_long(note, state.config.offset_metadata_max_bytes):
                errors.append(Error.OFFSET_METADATA_TOO_LARGE)
                continue
            if check is not None:
                check(found.name, found.id, index)
            errors.append(NO_ERROR)
            size += len(group_id) + len(found.name) + len(note) + RECORD_BYTES_LEAST
            if size > LOOKED_AT_FROM_BYTES and size > state.batch_bytes_max:
                raise Refused(Error.INVALID_COMMIT_OFFSET_SIZE, "These offsets do not fit into one batch.")
            key = _new(OffsetCommitKey, (group_id, found.name, index))
            records.append(_new(StateRecord, (key, _offset(request, found, asked, note, now))))
    gathers = _BY_KEY if records and group is not None else None
    return Outcome(records, [(caller, _answer(request, version, errors))], None, gathers)


def refused_commit(
    image: MetadataImage, request: OffsetCommitRequest, version: int, refusal: Refused
) -> OffsetCommitResponse:
    """The answer to a commit that was refused: every partition that exists has that error."""
    is_too_large = refusal.error is Error.RECORD_LIST_TOO_LARGE
    error = Error.INVALID_COMMIT_OFFSET_SIZE if is_too_large else refusal.error
    errors: list[int] = []
    for topic in request.topics:
        found = _find(image, topic, version)
        known = range(len(found.partitions) if found is not None else 0)
        errors += [error if asked.partition_index in known else _unknown(found, version) for asked in topic.partitions]
    return _response(request, errors)


def _answer(request: OffsetCommitRequest, version: int, errors: Sequence[int]) -> OffsetCommitResponse | Encoded:
    """Most commits are of one partition and succeed: their answers are remembered, which saves 2 of 15 µs."""
    if errors == [NO_ERROR] and len(request.topics) == 1:
        (topic,) = request.topics
        return _fine(version, topic.name, topic.topic_id.int, topic.partitions[0].partition_index)
    return _response(request, errors)


@lru_cache(REMEMBERED_ANSWERS)
def _fine(version: int, name: str, topic_id: int, index: int) -> Encoded:
    topic = OffsetCommitResponseTopic(
        name=name, topic_id=UUID(int=topic_id), partitions=[OffsetCommitResponsePartition(partition_index=index)]
    )
    response = OffsetCommitResponse(topics=[topic])
    return Encoded(OffsetCommitResponse, version, encode(response, version))


def _response(request: OffsetCommitRequest, errors: Sequence[int]) -> OffsetCommitResponse:
    """The answer with these errors, in the order of the request's partitions."""
    following = iter(errors)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=asked.partition_index, error_code=next(following))
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _unknown(topic: TopicInfo | None, version: int) -> Error:
    """The error for a partition that does not exist, perhaps because its topic does not."""
    by_id = topic is None and version >= TOPIC_IDS_SINCE
    return Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION


def _find(image: MetadataImage, topic: OffsetCommitRequestTopic, version: int) -> TopicInfo | None:
    if version >= TOPIC_IDS_SINCE:
        return image.topic_by_id(TopicId(topic.topic_id))
    return image.topics.get(TopicName(topic.name))


def _check_group(
    state: GroupState, group: Group | None, request: OffsetCommitRequest, version: int, now: Instant
) -> CheckPartition | None:
    """May the sender commit for the group? One that does not exist is created by a sender that is not a member."""
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


def _is_too_long(note: str, limit: int) -> bool:
    """Kafka counts in 16-bit units, and characters beyond the basic plane have two of them."""
    return 2 * len(note) > limit and len(note) + sum(character > "\uffff" for character in note) > limit


def _offset(
    request: OffsetCommitRequest, topic: TopicInfo, asked: OffsetCommitRequestPartition, note: str, now: Instant
) -> CommittedOffset:
    expire_timestamp, topic_id = NEVER_CHOSEN, topic.id
    if request.retention_time_ms != RETENTION_UNCHOSEN:
        expire_timestamp = min(now.wall_ms + request.retention_time_ms, TIMESTAMP_MAX)
        topic_id = TopicId(NO_UUID)  # a record has either a topic id or an expiry, see ``stored_offsets``
    offset, leader_epoch = asked.committed_offset, asked.committed_leader_epoch
    return _new(CommittedOffset, (offset, leader_epoch, note, now.wall_ms, expire_timestamp, topic_id))
