"""Was anything lost? Judges the history of a cluster that went through faults: a program of its own.

    python tests/cluster/checker.py history.jsonl …

All files together are one history; each line is one event, and the order of lines matters for each producer and each
reader alone. It imports nothing of the broker, so that no mistake can hide on both sides.

Every record has a value that no other record has. The kinds of lines:

    {"kind": "producer", "producer": p, "ordered": …, "repeats": …}
        how a producer behaves: *ordered* (it has one record under way, or is idempotent), *repeats* (it tries again
        without being idempotent, so a record may be stored twice)
    {"kind": "sent", "producer": p, "topic": t, "partition": n, "value": v}
        in the order of sending, before anything else is said of the record
    {"kind": "acknowledged", "producer": p, "value": v, "offset": o}
        the offset is -1 if the producer was told that it had been stored before, but not where
    {"kind": "refused", "producer": p, "value": v}          certainly not stored
    {"kind": "unknown", "producer": p, "value": v}          nobody told what became of it; it may be stored
    {"kind": "read", "reader": r, "topic": t, "partition": n, "offset": o, "value": v}
    {"kind": "group", "group": g, "readers": [r, …]}        these read until nothing was left: together, everything
    {"kind": "trimmed", "topic": t, "partition": n, "offset": o}     what lies before may be gone
    {"kind": "replica", "broker": b, "topic": t, "partition": n, "start": o, "end": o}
    {"kind": "batch", "broker": b, "topic": t, "partition": n, "first": o, "last": o, "digest": d,
     "records": [[o, v], …]}
        a replica's log in the end, batch by batch; the digest is that of all of the batch's bytes
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

SHOWN_MAX: Final = 20
SOMEWHERE: Final = -1
"""The offset of a record that is stored, nobody knows where."""


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class Producer:
    """What one producer sent, in its order, and what it was told."""

    name: str
    ordered: bool = True
    repeats: bool = False
    sent: dict[str, Place] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


class Batch(NamedTuple):
    """A batch of a replica's log: its offsets, the digest of its bytes, its records."""

    first: int
    last: int
    digest: str
    records: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Replica:
    """One broker's log of a partition, as it was in the end."""

    broker: int
    place: Place
    start: int
    end: int
    batches: list[Batch] = field(default_factory=list)

    def records(self) -> Iterator[tuple[int, str]]:
        for batch in self.batches:
            yield from batch.records

    def __str__(self) -> str:
        return f"{self.place} on broker {self.broker}"


class Read(NamedTuple):
    """A record that a reader got."""

    place: Place
    offset: int
    value: str


@dataclass(slots=True)
class History:
    """All that is known of a run."""

    producers: dict[str, Producer] = field(default_factory=dict)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    trimmed: dict[Place, int] = field(default_factory=dict)
    replicas: dict[tuple[Place, int], Replica] = field(default_factory=dict)

    def places(self) -> dict[Place, list[Replica]]:
        """The replicas of each partition."""
        found: defaultdict[Place, list[Replica]] = defaultdict(list)
        for (place, _), replica in sorted(self.replicas.items()):
            found[place].append(replica)
        return found


class HistoryError(Exception):
    """A line makes no sense, alone or after those before it."""


Line = Mapping[str, Any]


def parse(lines: Iterable[str]) -> History:
    history = History()
    for number, text in enumerate(lines, 1):
        if text.strip():
            try:
                line = json.loads(text)
                _TAKERS[line["kind"]](history, line)
            except (KeyError, TypeError, ValueError, HistoryError) as error:
                raise HistoryError(f"line {number} makes no sense ({type(error).__name__}: {error}): {text}") from None
    return history


def _place(line: Line) -> Place:
    return Place(line["topic"], line["partition"])


def _take_producer(history: History, line: Line) -> None:
    name = line["producer"]
    if name in history.producers:
        raise HistoryError(f"{name} is there already")
    history.producers[name] = Producer(name, ordered=line["ordered"], repeats=line["repeats"])


def _take_sent(history: History, line: Line) -> None:
    producer = history.producers[line["producer"]]
    if line["value"] in producer.sent:
        raise HistoryError(f"{producer.name} sent {line['value']} already")
    producer.sent[line["value"]] = _place(line)


def _take_acknowledged(history: History, line: Line) -> None:
    producer = _told(history, line)
    producer.acknowledged[line["value"]] = line["offset"]


def _take_refused(history: History, line: Line) -> None:
    _told(history, line).refused.add(line["value"])


def _take_unknown(history: History, line: Line) -> None:
    _told(history, line)


def _told(history: History, line: Line) -> Producer:
    """The producer, which has sent the record and was not told of it before."""
    producer, value = history.producers[line["producer"]], line["value"]
    if value not in producer.sent:
        raise HistoryError(f"{producer.name} never sent {value}")
    if value in producer.acknowledged or value in producer.refused:
        raise HistoryError(f"{producer.name} was told of {value} before")
    return producer


def _take_read(history: History, line: Line) -> None:
    history.reads.setdefault(line["reader"], []).append(Read(_place(line), line["offset"], line["value"]))


def _take_group(history: History, line: Line) -> None:
    history.groups[line["group"]] = list(line["readers"])


def _take_trimmed(history: History, line: Line) -> None:
    history.trimmed[_place(line)] = max(line["offset"], history.trimmed.get(_place(line), 0))


def _take_replica(history: History, line: Line) -> None:
    replica = Replica(line["broker"], _place(line), start=line["start"], end=line["end"])
    history.replicas[replica.place, replica.broker] = replica


def _take_batch(history: History, line: Line) -> None:
    records = tuple((int(offset), str(value)) for offset, value in line["records"])
    batch = Batch(line["first"], line["last"], line["digest"], records)
    history.replicas[_place(line), line["broker"]].batches.append(batch)


_TAKERS: Final = {
    "producer": _take_producer,
    "sent": _take_sent,
    "acknowledged": _take_acknowledged,
    "refused": _take_refused,
    "unknown": _take_unknown,
    "read": _take_read,
    "group": _take_group,
    "trimmed": _take_trimmed,
    "replica": _take_replica,
    "batch": _take_batch,
}


# The rules. Each gives a sentence for everything that is wrong.


def logs_are_whole(history: History) -> Iterator[str]:
    """A log goes from its start to its end without a gap, and nothing is missing before its start."""
    for replica in history.replicas.values():
        if replica.start > history.trimmed.get(replica.place, 0):
            yield f"{replica} starts at {replica.start}, and nobody has trimmed it"
        expected = replica.start
        for number, batch in enumerate(replica.batches):
            # A log may be trimmed inside of its first batch, which stays whole then.
            if batch.first > expected or (batch.first < expected and number > 0):
                yield f"{replica} goes on with {batch.first} where {expected} should be"
            if [offset for offset, _ in batch.records] != list(range(batch.first, batch.last + 1)):
                yield f"{replica} has a batch {batch.first} to {batch.last} with other records than these"
            expected = batch.last + 1
        if expected != replica.end:
            yield f"{replica} ends at {replica.end}, but its batches end at {expected}"


def replicas_are_identical(history: History) -> Iterator[str]:
    """From where all of them begin, byte for byte."""
    for replicas in history.places().values():
        start = max(replica.start for replica in replicas)
        first, *others = replicas
        wanted = [batch for batch in first.batches if batch.last >= start]
        for other in others:
            yield from _differences(first, wanted, other, [batch for batch in other.batches if batch.last >= start])


def _differences(left: Replica, ours: Sequence[Batch], right: Replica, theirs: Sequence[Batch]) -> Iterator[str]:
    if left.end != right.end:
        yield f"{left} ends at {left.end}, {right} at {right.end}"
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            yield f"{left} and {right} differ from {min(mine.first, other.first)} on"
            return
    if len(ours) != len(theirs) and left.end == right.end:
        yield f"{left} has {len(ours)} batches, {right} has {len(theirs)}"


def acknowledged_records_are_there(history: History) -> Iterator[str]:
    """On every replica, at the offset that the producer was told."""
    at = {key: dict(replica.records()) for key, replica in history.replicas.items()}
    held = {key: set(records.values()) for key, records in at.items()}
    brokers = {place: [replica.broker for replica in found] for place, found in history.places().items()}
    for producer in history.producers.values():
        for value, offset in producer.acknowledged.items():
            place = producer.sent[value]
            if 0 <= offset < history.trimmed.get(place, 0):
                continue
            if place not in brokers:
                yield f"{value} was acknowledged, and there is no replica of {place}"
            for broker in brokers.get(place, ()):
                if offset == SOMEWHERE:
                    if value not in held[place, broker]:
                        yield f"{value} was acknowledged, and broker {broker} does not have it in {place}"
                    continue
                found = at[place, broker].get(offset)
                if found != value:
                    holds = "nothing" if found is None else found
                    yield f"{value} was acknowledged at {offset} of {place}, where broker {broker} has {holds}"


def records_are_stored_once(history: History) -> Iterator[str]:
    """Except for those of producers that say they may repeat themselves."""
    repeating = {value for producer in history.producers.values() if producer.repeats for value in producer.sent}
    for replica in history.replicas.values():
        seen: dict[str, int] = {}
        for offset, value in replica.records():
            if value in seen and value not in repeating:
                yield f"{value} is twice in {replica}: at {seen[value]} and at {offset}"
            seen.setdefault(value, offset)


def records_are_in_order(history: History) -> Iterator[str]:
    """What an ordered producer sent to a partition lies there in the order of sending."""
    owners = {value: producer for producer in history.producers.values() for value in producer.sent}
    ranks = {value: rank for producer in history.producers.values() for rank, value in enumerate(producer.sent)}
    for replica in history.replicas.values():
        last: dict[str, str] = {}
        for _, value in replica.records():
            producer = owners.get(value)
            if producer is None or not producer.ordered or producer.repeats:
                continue
            before = last.get(producer.name)
            if before is not None and ranks[before] > ranks[value]:
                yield f"{before} comes before {value} in {replica}, and was sent after it"
            last[producer.name] = value
    yield from _acknowledged_out_of_order(history)


def _acknowledged_out_of_order(history: History) -> Iterator[str]:
    """Also where a producer may repeat itself: the offsets that it was told go up."""
    for producer in history.producers.values():
        last: dict[Place, tuple[int, str]] = {}
        for value, place in producer.sent.items():
            if producer.ordered and (offset := producer.acknowledged.get(value, SOMEWHERE)) != SOMEWHERE:
                before_offset, before = last.get(place, (-1, ""))
                if offset <= before_offset:
                    yield f"{value} was acknowledged at {offset} of {place}, {before} before it at {before_offset}"
                last[place] = (offset, value)


def nothing_was_invented(history: History) -> Iterator[str]:
    """Everything stored was sent, to this partition, and was not refused."""
    homes = {value: place for producer in history.producers.values() for value, place in producer.sent.items()}
    refused = {value for producer in history.producers.values() for value in producer.refused}
    for replica in history.replicas.values():
        for offset, value in replica.records():
            if value not in homes:
                yield f"{replica} has {value} at {offset}, which nobody sent"
            elif homes[value] != replica.place:
                yield f"{replica} has {value} at {offset}, which was sent to {homes[value]}"
            elif value in refused:
                yield f"{replica} has {value} at {offset}, which was refused"


def what_was_read_stays(history: History) -> Iterator[str]:
    """A record that any reader has seen is in every replica, at its place, and all readers saw the same."""
    seen: dict[tuple[Place, int], tuple[str, str]] = {}
    for reader, reads in history.reads.items():
        for place, offset, value in reads:
            first_reader, first = seen.setdefault((place, offset), (reader, value))
            if first != value:
                yield f"{reader} read {value} at {offset} of {place}, where {first_reader} read {first}"
    at = {key: dict(replica.records()) for key, replica in history.replicas.items()}
    for place, replicas in history.places().items():
        trimmed = history.trimmed.get(place, 0)
        for (where, offset), (reader, value) in seen.items():
            if where != place or offset < trimmed:
                continue
            for replica in replicas:
                if (found := at[place, replica.broker].get(offset)) != value:
                    holds = "nothing" if found is None else found
                    yield f"{reader} read {value} at {offset}, where {replica} has {holds}"


def groups_read_everything(history: History) -> Iterator[str]:
    """What the readers of a group saw, taken together, is all that there is."""
    for group, readers in history.groups.items():
        seen = {(read.place, read.offset) for reader in readers for read in history.reads.get(reader, ())}
        topics = {read.place.topic for reader in readers for read in history.reads.get(reader, ())}
        for place, replicas in history.places().items():
            if place.topic in topics:
                missing = [offset for offset, _ in replicas[0].records() if (place, offset) not in seen]
                if missing:
                    yield f"{group} never read {len(missing)} records of {place}, the first one at {missing[0]}"


RULES: Final = (
    logs_are_whole,
    replicas_are_identical,
    acknowledged_records_are_there,
    records_are_stored_once,
    records_are_in_order,
    nothing_was_invented,
    what_was_read_stays,
    groups_read_everything,
)


def faults(history: History) -> list[str]:
    """All that is wrong, each with the name of its rule."""
    return [f"{rule.__name__}: {fault}" for rule in RULES for fault in rule(history)]


def summary(history: History) -> str:
    """The history in one line."""
    sent = sum(len(producer.sent) for producer in history.producers.values())
    acknowledged = sum(len(producer.acknowledged) for producer in history.producers.values())
    read = sum(map(len, history.reads.values()))
    batches = sum(len(replica.batches) for replica in history.replicas.values())
    return (
        f"{sent:,} records sent, {acknowledged:,} acknowledged, {read:,} read; "
        f"{len(history.replicas)} replicas with {batches:,} batches"
    )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python checker.py HISTORY.jsonl …", file=sys.stderr)
        return 2
    try:
        history = parse(line for name in arguments for line in Path(name).read_text("utf-8").splitlines())
    except (OSError, HistoryError) as error:
        print(f"checker: {error}", file=sys.stderr)
        return 2
    found = faults(history)
    for fault in found[:SHOWN_MAX]:
        print(fault)
    if len(found) > SHOWN_MAX:
        print(f"… and {len(found) - SHOWN_MAX} more")
    print(f"{summary(history)}: {'nothing is wrong' if not found else f'{len(found)} faults'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
