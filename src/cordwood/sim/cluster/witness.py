"""Sees all brokers at once, which no member of the cluster can, and remembers what they must never take back.

- In one leader epoch of a partition one broker leads.
- What a leader has committed stays the same under every later leader: a new leader has all of it, and whatever it
  commits at an offset is what was committed there before.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.log import Log
from cordwood.partition.partition import Partition
from cordwood.record.batch import batches
from cordwood.record.build import records
from cordwood.sim.cluster.node import SimNode
from cordwood.sim.history import History

_READ_BYTES = 1 << 20


class Committed(NamedTuple):
    """A record that all in-sync replicas had, and the epoch of the leader that appended it."""

    offset: int
    epoch: int
    value: bytes


class Witness:
    """What was seen so far."""

    def __init__(self, history: History, topics: Collection[TopicName]) -> None:
        self._history = history
        self._topics = topics
        self._leaders: dict[tuple[TopicId, int, int], NodeId] = {}
        """By topic, partition and leader epoch."""
        self._newest: dict[tuple[TopicId, int], int] = {}
        """The newest leader epoch of each partition."""
        self._checked: dict[tuple[NodeId, TopicPartition], int] = {}
        """Up to which offset a broker's committed records have been compared, in its current life."""
        self.committed: dict[TopicPartition, list[Committed]] = {}
        self.elections = 0
        self.on_election: Callable[[NodeId], None] = _nothing
        """Called with every leader of a watched partition, when it begins to lead."""

    def forget(self, node: NodeId) -> None:
        """A broker begins a new life."""
        for key in [key for key in self._checked if key[0] == node]:
            del self._checked[key]

    def look(self, node: SimNode) -> None:
        """A broker has done something."""
        driver = node.driver
        if driver is None:
            return
        for partition in driver.broker.replicas.all():
            if partition.leader == node.id:
                self._look_at_leader(node.id, partition)

    def _look_at_leader(self, node: NodeId, partition: Partition) -> None:
        name, epoch = partition.name, partition.leader_epoch
        reign = partition.topic_id, name.partition, epoch
        is_watched = name.topic in self._topics
        if reign not in self._leaders:
            self._leaders[reign] = node
            self._checked[node, name] = 0
            self._begins(node, partition)
        elif self._leaders[reign] != node:
            self._history.complain(f"{name}: {self._leaders[reign]} and {node} both lead in epoch {epoch}")
            self._leaders[reign] = node
        if is_watched and partition.high_watermark > self._checked.get((node, name), 0):
            self._compare(node, partition)

    def _begins(self, node: NodeId, partition: Partition) -> None:
        """A broker begins to lead. If it was paused in between, others may have led since its epoch began."""
        self.elections += 1
        key = partition.topic_id, partition.name.partition
        if partition.leader_epoch > self._newest.get(key, -1):
            self._newest[key] = partition.leader_epoch
            if partition.name.topic in self._topics:
                self._has_all(node, partition)
                self.on_election(node)

    def _has_all(self, node: NodeId, partition: Partition) -> None:
        committed = self.committed.setdefault(partition.name, [])
        end = partition.log.end_offset
        if end < len(committed):
            self._history.complain(
                f"{partition.name}: {node} leads in epoch {partition.leader_epoch} and its log ends at {end}, "
                f"but {len(committed)} records were committed"
            )

    def _compare(self, node: NodeId, partition: Partition) -> None:
        name, end = partition.name, partition.high_watermark
        committed = self.committed.setdefault(name, [])
        for record in read(partition.log, self._checked.get((node, name), 0), end):
            if record.offset == len(committed):
                committed.append(record)
            elif record.offset > len(committed) or committed[record.offset] != record:
                self._history.complain(f"{name}: {node} has committed {record}, and before it was another")
                break
        self._checked[node, name] = end


def read(log: Log, start: int, end: int) -> Iterator[Committed]:
    """The records of a log from one offset to another."""
    offset = start
    while offset < end and (piece := log.read(offset, _READ_BYTES, up_to_offset=end)) is not None:
        for batch, header in batches(memoryview(piece.read())):
            for record in records(batch, header, limit=1 << 24):
                if start <= record.offset < end:
                    yield Committed(record.offset, header.leader_epoch, record.value or b"")
            offset = header.next_offset


def _nothing(_: NodeId) -> None:
    pass
