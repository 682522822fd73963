"""How far each group has read: the offsets that it committed, by topic and partition."""

from typing import NamedTuple
from uuid import UUID

from cordwood.wire.types import NO_UUID


class CommittedOffset(NamedTuple):
    """An offset as it was committed, with the note that came with it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = -1
    """For clients of old, who chose it themselves; -1 where the broker's setting decides."""
    topic_id: UUID = NO_UUID


class CommittedOffsets:
    """All offsets of all groups of a shard. Changed by ``put`` and ``remove`` alone, which replay calls."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def topics(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """A group's offsets, not to be changed."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def groups(self) -> list[str]:
        return list(self._groups)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """It may be gone already."""
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._groups.pop(group_id, None)

    def check(self) -> None:
        for topics in self._groups.values():
            assert topics, "a group without offsets has no entry"
            for partitions in topics.values():
                assert partitions, "a topic without offsets has no entry"
