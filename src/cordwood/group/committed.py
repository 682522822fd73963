"""How far each group has read: the offsets that it committed, by topic and partition."""

import sys
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from cordwood.wire.types import NO_UUID

NEVER_CHOSEN = -1
"""The expiry of offsets whose clients did not choose one: the broker's setting decides."""


class CommittedOffset(NamedTuple):
    """An offset as it was committed, with the note that came with it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NEVER_CHOSEN
    """For clients of old, who may choose it themselves."""
    topic_id: UUID = NO_UUID
    """Of the topic that had the name then; none where it is not known."""


class CommittedOffsets:
    """All offsets of all groups of a shard. Changed by ``put`` and ``remove`` alone, which replay calls.

    Invariant (``check``): a group or topic without offsets has no entry.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def topics(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """A group's offsets as they now are."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def groups(self) -> list[str]:
        return list(self._groups)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # Thousands of groups read the same topics: their names are kept once.
            partitions = topics[sys.intern(topic)] = {}
        partitions[partition] = committed

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
