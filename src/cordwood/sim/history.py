"""What the clients of a run saw, and what was in the logs: the evidence for the checker.

A run is divided into eras by power failures. A process that merely dies loses nothing that was written, so it ends no
era. A power failure may take everything that was not synced, and the next era begins with what is left.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from cordwood.ids import TopicName, TopicPartition
from cordwood.record.batch import batches
from cordwood.record.build import records
from cordwood.sim.disk import SimDisk

_RECORDS_BYTES_MAX = 1 << 24


class Stored(NamedTuple):
    """A record in a log, as the disk has it."""

    offset: int
    value: bytes


LogDump = list[Stored]


class Acknowledged(NamedTuple):
    """The broker told a producer that its batch is at these offsets."""

    producer: str
    partition: TopicPartition
    offset: int
    values: tuple[bytes, ...]
    era: int


class Seen(NamedTuple):
    """A consumer received this record."""

    offset: int
    value: bytes
    era: int


@dataclass(slots=True)
class Reading:
    """What one consumer saw of one partition since it began, or began again."""

    consumer: str
    partition: TopicPartition
    era: int = 0
    """The era in which it began."""
    seen: list[Seen] = field(default_factory=list)


@dataclass(slots=True)
class Era:
    """The logs at the end of the era, how often the process died in it, and what was left of the last era."""

    logs: dict[TopicPartition, LogDump] = field(default_factory=dict)
    kept: dict[TopicPartition, LogDump] = field(default_factory=dict)
    deaths: int = 0


@dataclass(slots=True)
class History:
    """Everything known about a run when it is over."""

    safe_topics: frozenset[TopicName] = frozenset()
    """Topics that are synced before they acknowledge."""
    eras: list[Era] = field(default_factory=lambda: [Era()])
    acknowledged: list[Acknowledged] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    sent: dict[tuple[str, TopicPartition], list[bytes]] = field(default_factory=dict)
    """Every producer's records in the order of sending."""
    producer_ids: list[int] = field(default_factory=list)
    lives: int = 0
    """How often a broker has started."""
    complaints: list[str] = field(default_factory=list)
    """Answers that no client should ever have received."""

    @property
    def era(self) -> int:
        return len(self.eras) - 1

    def complain(self, text: str) -> None:
        self.complaints.append(text)


def dump(disk: SimDisk, partition: TopicPartition) -> LogDump:
    """The records in a partition's files, read without using any of the code under test except that of batches."""
    directory = str(partition)
    if not disk.exists(directory):
        return []
    stored: LogDump = []
    for name in disk.list(directory):
        if name.endswith(".log"):
            stored += _records(disk.read(f"{directory}/{name}"))
    return stored


def _records(data: bytes) -> LogDump:
    return [
        Stored(record.offset, record.value or b"")
        for batch, header in batches(memoryview(data))
        for record in records(batch, header, limit=_RECORDS_BYTES_MAX)
    ]
