"""How far each group has read: the offsets that it committed, by topic and partition."""

import sys
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from cordwood.wire.types import NO_UUID

NEVER_CHOSEN: Final = -1
"""The expiry of offsets whose clients did not choose one: the broker's setting decides."""

OFFSET_BYTES: Final = 250
"""Roughly the memory that an offset takes, without its metadata."""


class CommittedOffset(NamedTuple):
    """An offset as it was committed, with the metadata that came with it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NEVER_CHOSEN
    """For old clients, which may choose it themselves."""
    topic_id: UUID = NO_UUID
    """The id of the topic that had the name at that time; NO_UUID if it is not known."""


class CommittedOffsets:
    """All offsets of all groups of a shard. Only ``put`` and ``remove`` change them, and only replay calls these.

    Invariants (``check``): a group or topic without offsets has no entry; a topic's readers are the groups that have
    offsets in it; ``weight_bytes`` is roughly the memory they take.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._readers: dict[str, dict[str, None]] = {}
        self._topic_ids: dict[str, UUID] = {}
        """For each topic that has readers, the id in the newest commit."""
        self.weight_bytes = 0

    def topics(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """A group's current offsets."""
        return self._groups.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def groups(self) -> list[str]:
        return list(self._groups)

    def readers(self, topic: str) -> Collection[str]:
        """The groups that have offsets in a topic."""
        return self._readers.get(topic, ())

    def topic_names(self) -> list[str]:
        """The topics in which some group has offsets."""
        return list(self._readers)

    def last_topic_id(self, topic: str) -> UUID:
        """The id that the topic had when an offset of it was last committed; NO_UUID if that commit did not say."""
        return self._topic_ids.get(topic, NO_UUID)

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # Thousands of groups read the same topics: their names are kept once.
            topic = sys.intern(topic)
            partitions = topics[topic] = {}
            self._readers.setdefault(topic, {})[group_id] = None
        earlier = partitions.get(partition)
        self.weight_bytes += len(committed.metadata) - (-OFFSET_BYTES if earlier is None else len(earlier.metadata))
        partitions[partition] = committed
        self._topic_ids[topic] = committed.topic_id

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """The offset may be gone already."""
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic)
        if partitions is None:
            return
        committed = partitions.pop(partition, None)
        if committed is not None:
            self.weight_bytes -= OFFSET_BYTES + len(committed.metadata)
        if not partitions:
            del topics[topic]
            self._no_reader(topic, group_id)
        if not topics:
            del self._groups[group_id]

    def _no_reader(self, topic: str, group_id: str) -> None:
        readers = self._readers[topic]
        del readers[group_id]
        if not readers:
            del self._readers[topic], self._topic_ids[topic]

    def check(self) -> None:
        readers: dict[str, set[str]] = {}
        for group_id, topics in self._groups.items():
            assert topics, "a group without offsets has no entry"
            for topic, partitions in topics.items():
                assert partitions, "a topic without offsets has no entry"
                readers.setdefault(topic, set()).add(group_id)
        assert readers == {topic: set(groups) for topic, groups in self._readers.items()}
        assert readers.keys() == self._topic_ids.keys()
        notes = [c.metadata for topics in self._groups.values() for ps in topics.values() for c in ps.values()]
        assert self.weight_bytes == sum(OFFSET_BYTES + len(note) for note in notes)
