"""Offsets under test: commits, fetches and deletions in one call, in terms of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from cordwood.coordinator.outcome import Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.group.committed import CommittedOffset
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponseGroup,
)
from group.group_harness import Asker, GroupHarness

NEWEST = 10
MINUTE_MS = 60_000

Said = int | tuple[int, int, str | None]
"""An offset, or (offset, leader epoch, metadata)."""

Offsets = Mapping[Any, Said]
"""By (topic or its id, partition)."""

Errors = dict[tuple[str | UUID, int], Error]


class OffsetsDriver(GroupHarness):
    """A shard that has been loaded, with topics ``t`` and ``u`` of four partitions."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.ids = {name: self.topic(name, 4) for name in ("t", "u")}
        self.finish(self.machine.loaded(self.now))

    # ------------------------------------------------------------------ requests

    def send_commit(
        self,
        said: Offsets,
        group: str = "g",
        *,
        version: int = 9,
        member: str = "",
        epoch: int = -1,
        instance: str | None = None,
        retention_ms: int = -1,
    ) -> Asker:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[commit_topic(topic, said) for topic in dict.fromkeys(topic for topic, _ in said)],
        )
        return self.call(offsets.commit, request, version)

    def commit(self, said: Offsets, group: str = "g", **how: object) -> Errors:
        """The error of each partition."""
        response = self.send_commit(said, group, **how).take(OffsetCommitResponse)  # type: ignore[arg-type]
        return {
            (topic.name or topic.topic_id, partition.partition_index): Error(partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        }

    def committed(self, said: Offsets, group: str = "g", **how: object) -> None:
        """Commit, which must go well."""
        assert set(self.commit(said, group, **how).values()) == {Error.NONE}

    def commit_refused(self, said: Offsets, group: str = "g", **how: object) -> Error:
        return self.send_commit(said, group, **how).take(Refused).error  # type: ignore[arg-type]

    def fetch(
        self,
        topics: Mapping[str | UUID, Sequence[int]] | None,
        group: str = "g",
        *,
        version: int = 9,
        member: str | None = None,
        epoch: int = -1,
    ) -> OffsetFetchResponseGroup:
        request = OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch)
        request.topics = None if topics is None else [_fetch_topic(*pair) for pair in topics.items()]
        return offsets.fetch_group(self.state, request, version, require_stable=False)

    def offsets(self, group: str = "g", version: int = 9) -> dict[tuple[str, int], int]:
        """All that a group has committed, as it is fetched."""
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in self.fetch(None, group, version=version).topics
            for partition in topic.partitions
        }

    def stored_offset(self, topic: str, partition: int, group: str = "g") -> CommittedOffset:
        found = self.state.offsets.get(group, topic, partition)
        assert found is not None
        return found

    def delete(self, partitions: Mapping[str, Sequence[int]], group: str = "g") -> Errors | Error:
        """The error of each partition, or of the request."""
        request = OffsetDeleteRequest(group_id=group, topics=[_delete_topic(*pair) for pair in partitions.items()])
        (answer,) = self.call(offsets.delete, request, 0).answers
        if isinstance(answer, Refused):
            return answer.error
        assert isinstance(answer, OffsetDeleteResponse)
        return {
            (topic.name, partition.partition_index): Error(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
        }

    def delete_group(self, group: str = "g") -> Error:
        try:
            records = offsets.delete_group(self.state, group)
        except Refused as refusal:
            return refusal.error
        self.write(*records)
        return Error.NONE

    # ------------------------------------------------------------------ what happens

    def write(self, *records: StateRecord) -> None:
        self.finish(Outcome(list(records)))

    def write_offsets(self, groups: Sequence[str], partitions: int) -> None:
        """Offsets of topic ``t`` for many groups, all at once."""
        committed = CommittedOffset(5, -1, "", self.now.wall_ms, -1, self.ids["t"])
        keys = (OffsetCommitKey(group, "t", index) for group in groups for index in range(partitions))
        self.write(*(StateRecord(key, committed) for key in keys))

    def delete_topic(self, name: str) -> None:
        """The metadata forgets a topic, and the shard hears of it."""
        self.drop_topic(name)
        self.finish(offsets.topics_deleted(self.state, [TopicName(name)], self.now))


def commit_topic(topic: str | UUID, said: Offsets) -> OffsetCommitRequestTopic:
    found = OffsetCommitRequestTopic(
        partitions=[_commit_partition(index, value) for (name, index), value in said.items() if name == topic]
    )
    if isinstance(topic, UUID):
        found.topic_id = topic
    else:
        found.name = topic
    return found


def _commit_partition(index: int, said: Said) -> OffsetCommitRequestPartition:
    offset, leader_epoch, metadata = (said, -1, None) if isinstance(said, int) else said
    return OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        committed_metadata=metadata,
    )


def _fetch_topic(topic: str | UUID, indexes: Sequence[int]) -> OffsetFetchRequestGroupTopic:
    if isinstance(topic, UUID):
        return OffsetFetchRequestGroupTopic(topic_id=topic, partition_indexes=list(indexes))
    return OffsetFetchRequestGroupTopic(name=topic, partition_indexes=list(indexes))


def _delete_topic(topic: str, indexes: Sequence[int]) -> OffsetDeleteRequestTopic:
    return OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
    )
