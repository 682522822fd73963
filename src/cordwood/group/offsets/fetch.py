"""OffsetFetch (9), versions 1-10: how far a group has read. This is one group's share of an answer.

- 2: all topics at once; 7: offsets that a transaction may still change can be waited for; 8: many groups, whose answers
  the broker's handler puts together; 9: members of consumer groups; 10: topics by id.

An offset that was never committed is -1, without an error, and so are all offsets of a group that does not exist. An
offset that was committed for an earlier topic of the same name does not count. A partition that is asked for twice is
answered once.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from cordwood.errors import Error
from cordwood.group.committed import CommittedOffset
from cordwood.group.state import GroupState
from cordwood.ids import NO_LEADER_EPOCH, NO_OFFSET, TopicId, TopicName
from cordwood.wire.messages import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponseGroup,
    OffsetFetchResponseGroupPartition,
    OffsetFetchResponseGroupTopic,
)
from cordwood.wire.types import NO_UUID

from .pending import has_pending

TOPIC_IDS_SINCE = 10

Offsets = Mapping[int, CommittedOffset]


def fetch_group(
    state: GroupState, request: OffsetFetchRequestGroup, version: int, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """The group's offsets in the partitions asked for, or in all.

    Raises:
        Refused: the caller is not a member, or not in this epoch.
    """
    group = state.groups.get(request.group_id)
    if group is not None:
        group.check_fetch(request.member_id, request.member_epoch)
    share = _Share(state, request.group_id, version >= TOPIC_IDS_SINCE, require_stable)
    topics = share.all_topics() if request.topics is None else [share.asked(topic) for topic in _once(request.topics)]
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)


def _once(topics: Iterable[OffsetFetchRequestGroupTopic]) -> list[OffsetFetchRequestGroupTopic]:
    """Each partition once: naming it takes a few bytes, and its answer may have metadata of kilobytes."""
    found: dict[tuple[str, UUID], dict[int, None]] = {}
    for topic in topics:
        found.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(topic.partition_indexes))
    return [
        OffsetFetchRequestGroupTopic(name=name, topic_id=topic_id, partition_indexes=list(partitions))
        for (name, topic_id), partitions in found.items()
    ]


class _Share:
    """One group's share of the answer."""

    def __init__(self, state: GroupState, group_id: str, by_id: bool, require_stable: bool) -> None:
        self._state = state
        self._group_id = group_id
        self._by_id = by_id
        self._require_stable = require_stable
        self._offsets = state.offsets.topics(group_id)

    def all_topics(self) -> list[OffsetFetchResponseGroupTopic]:
        """Topics that no longer have an id cannot be reported to clients that know topics by id."""
        found = [self._whole(name, offsets) for name, offsets in self._offsets.items()]
        return [topic for topic in found if topic.topic_id != NO_UUID] if self._by_id else found

    def _whole(self, name: str, offsets: Offsets) -> OffsetFetchResponseGroupTopic:
        info = self._state.image.topics.get(TopicName(name))
        topic_id = info.id if info is not None else NO_UUID
        return OffsetFetchResponseGroupTopic(
            name=name, topic_id=topic_id, partitions=self._partitions(name, NO_UUID, offsets, offsets)
        )

    def asked(self, topic: OffsetFetchRequestGroupTopic) -> OffsetFetchResponseGroupTopic:
        name: str | None = topic.name
        if self._by_id:
            name = self._state.image.topic_names.get(TopicId(topic.topic_id))
        if name is None:
            partitions = [_none(index, Error.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
        else:
            partitions = self._partitions(name, topic.topic_id, topic.partition_indexes, self._offsets.get(name, {}))
        return OffsetFetchResponseGroupTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

    def _partitions(
        self, topic: str, topic_id: UUID, indexes: Iterable[int], offsets: Offsets
    ) -> list[OffsetFetchResponseGroupPartition]:
        return [self._partition(topic, topic_id, index, offsets.get(index)) for index in indexes]

    def _partition(
        self, topic: str, topic_id: UUID, index: int, committed: CommittedOffset | None
    ) -> OffsetFetchResponseGroupPartition:
        if self._require_stable and has_pending(self._state, self._group_id, topic, index):
            return _none(index, Error.UNSTABLE_OFFSET_COMMIT)
        if committed is None or NO_UUID != committed.topic_id != topic_id != NO_UUID:
            return _none(index, Error.NONE)
        return OffsetFetchResponseGroupPartition(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )


def _none(index: int, error: Error) -> OffsetFetchResponseGroupPartition:
    return OffsetFetchResponseGroupPartition(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error,
    )
