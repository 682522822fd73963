"""Did the cluster keep its promises? Rules over the history of a run that has come to rest.

- The replicas of a partition are the same, byte for byte, and so are their leader epochs.
- Each log is dense from 0, has no record twice, and each producer's records in the order of sending.
- What was committed is still in the log, at its offset; so is what was acknowledged (acks=all).
- A consumer saw the log from its start, without gap or repetition, and nothing that is not in it now.
- No producer id was given twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cordwood.ids import NodeId, TopicPartition
from cordwood.record.batch import batches
from cordwood.sim.checker import log_rules, producer_id_rules
from cordwood.sim.cluster.witness import Committed
from cordwood.sim.disk import SimDisk
from cordwood.sim.history import Acknowledged, History, LogDump, Reading, dump

EPOCHS = "leader-epoch-checkpoint"


@dataclass(slots=True)
class Replica:
    """What one broker's disk holds of one partition."""

    records: LogDump = field(default_factory=list)
    data: bytes = b""
    epochs: dict[int, int] = field(default_factory=dict)
    """Where each leader epoch begins, as noted by the replica."""


Replicas = Mapping[TopicPartition, Mapping[NodeId, Replica]]


def replica(disk: SimDisk, partition: TopicPartition) -> Replica:
    """Read the replica without using any of the code under test except that of batches."""
    directory = str(partition)
    if not disk.exists(directory):
        return Replica()
    names = disk.list(directory)
    data = b"".join(disk.read(f"{directory}/{name}") for name in names if name.endswith(".log"))
    epochs = disk.read(f"{directory}/{EPOCHS}").decode().splitlines()[2:] if EPOCHS in names else []
    pairs = [line.split() for line in epochs]
    return Replica(dump(disk, partition), data, {int(epoch): int(start) for epoch, start in pairs})


def violations(
    history: History, committed: Mapping[TopicPartition, Sequence[Committed]], replicas: Replicas
) -> list[str]:
    """Every violation, in words. An empty list means a good run."""
    logs = {partition: next(iter(found.values())).records for partition, found in replicas.items()}
    return [
        *history.complaints,
        *producer_id_rules(history),
        *(text for partition, found in replicas.items() for text in _same(partition, found)),
        *(text for partition, log in logs.items() for text in log_rules(history, partition, log)),
        *(text for partition, seen in committed.items() for text in _committed(partition, seen, logs[partition])),
        *(text for told in history.acknowledged for text in _acknowledged(told, logs[told.partition])),
        *(text for reading in history.readings for text in _reading(reading, logs[reading.partition])),
    ]


def _same(partition: TopicPartition, found: Mapping[NodeId, Replica]) -> Iterator[str]:
    (first, expected), *others = found.items()
    for node, other in others:
        if other.records != expected.records:
            yield f"{partition}: brokers {first} and {node} have other records: {_difference(expected, other)}"
        elif other.data != expected.data:
            yield f"{partition}: brokers {first} and {node} have the same records in other bytes"
    for node, each in found.items():
        yield from _epochs(partition, node, each)


def _epochs(partition: TopicPartition, node: NodeId, found: Replica) -> Iterator[str]:
    """Where each epoch with records begins. An epoch without records may be known only to its leader."""
    starts: dict[int, int] = {}
    for _, header in batches(memoryview(found.data)):
        starts.setdefault(header.leader_epoch, header.base_offset)
    for epoch, start in starts.items():
        if found.epochs.get(epoch) != start:
            yield f"{partition}: epoch {epoch} begins at {start}, and {node} has noted {found.epochs.get(epoch)}"


def _difference(one: Replica, other: Replica) -> str:
    for number, (left, right) in enumerate(zip(one.records, other.records, strict=False)):
        if left != right:
            return f"record {number} is {left} and {right}"
    return f"they have {len(one.records)} and {len(other.records)}"


def _committed(partition: TopicPartition, committed: Sequence[Committed], log: LogDump) -> Iterator[str]:
    for record in committed:
        if record.offset >= len(log) or log[record.offset] != (record.offset, record.value):
            yield f"{partition}: {record.value!r} was committed at offset {record.offset}, and is lost"
            return


def _acknowledged(told: Acknowledged, log: LogDump) -> Iterator[str]:
    stored = log[told.offset : told.offset + len(told.values)]
    if told.offset < 0 or [tuple(record) for record in stored] != list(enumerate(told.values, told.offset)):
        yield (
            f"{told.partition}: {told.producer} was told that {told.values[0]!r} is at offset {told.offset}, "
            "and it is not"
        )


def _reading(reading: Reading, log: LogDump) -> Iterator[str]:
    who = f"{reading.partition}: {reading.consumer}"
    for expected, seen in enumerate(reading.seen):
        if seen.offset != expected:
            yield f"{who} saw offset {seen.offset} where {expected} was next"
            return
        if seen.offset >= len(log) or log[seen.offset].value != seen.value:
            yield f"{who} saw {seen.value!r} at offset {seen.offset}, and the log has something else there"
            return
