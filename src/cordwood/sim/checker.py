"""Was every promise kept? Rules over the history of a run, each a function that names the violations.

- A log is dense from 0, has no record twice, and each producer's records in the order of sending.
- What was acknowledged is in the log, at the offset given. It stays there: always if only the process died; after a
  power failure, if the topic is synced before it acknowledges.
- After a power failure, a log is a prefix of what it was: nothing is changed, nothing is missing in the middle.
- A consumer sees a log from its start, without gap or repetition, and nothing that is not in it.
- No producer id is given twice.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from cordwood.ids import TopicPartition
from cordwood.sim.history import Acknowledged, Era, History, LogDump, Reading


def violations(history: History) -> list[str]:
    """Every violation, in words. An empty list means a good run."""
    return [
        *history.complaints,
        *producer_id_rules(history),
        *(text for number in range(len(history.eras)) for text in _era(history, number)),
        *(text for acknowledged in history.acknowledged for text in _acknowledged(history, acknowledged)),
        *(text for reading in history.readings for text in _reading(history, reading)),
    ]


def producer_id_rules(history: History) -> Iterator[str]:
    for producer_id, count in Counter(history.producer_ids).items():
        if count > 1:
            yield f"producer id {producer_id} was given {count} times"


def _era(history: History, number: int) -> Iterator[str]:
    era = history.eras[number]
    for partition, log in era.logs.items():
        yield from log_rules(history, partition, log)
        if number:
            yield from _kept(history.eras[number - 1], era, partition)


def log_rules(history: History, partition: TopicPartition, log: LogDump) -> Iterator[str]:
    offsets = [record.offset for record in log]
    if offsets != list(range(len(log))):
        yield f"{partition}: the log's offsets are not dense from 0: {_around_gap(offsets)}"
    for value, count in Counter(record.value for record in log).items():
        if count > 1:
            yield f"{partition}: {value!r} is in the log {count} times"
    place = {record.value: record.offset for record in log}
    for (producer, of), values in history.sent.items():
        if of == partition:
            stored = [(place[value], value) for value in values if value in place]
            for (earlier, first), (later, second) in pairwise(stored):
                if earlier > later:
                    yield f"{partition}: {producer} sent {first!r} before {second!r}, and the log has them after"


def _around_gap(offsets: list[int]) -> str:
    for expected, offset in enumerate(offsets):
        if expected != offset:
            return f"{offset} where {expected} belongs"
    raise AssertionError("there is no gap")


def _kept(before: Era, after: Era, partition: TopicPartition) -> Iterator[str]:
    """What a power failure between two eras did to a log."""
    log, kept = before.logs.get(partition, []), after.kept.get(partition, [])
    if log[: len(kept)] != kept:
        yield f"{partition}: after the loss of power the log is not a first part of what it was"


def _acknowledged(history: History, told: Acknowledged) -> Iterator[str]:
    what = f"{told.partition}: {told.producer} was told that {told.values[0]!r} is at offset {told.offset}"
    if not _holds(history.eras[told.era].logs, told):
        yield f"{what}, and it was not"
        return
    if told.partition.topic in history.safe_topics:
        for number in range(told.era + 1, len(history.eras)):
            if not _holds(history.eras[number].kept, told):
                yield f"{what}, synced, and loss of power {number} took it"
                return


def _holds(logs: dict[TopicPartition, LogDump], told: Acknowledged) -> bool:
    stored = logs.get(told.partition, [])[told.offset : told.offset + len(told.values)]
    return [(record.offset, record.value) for record in stored] == list(enumerate(told.values, told.offset))


def _reading(history: History, reading: Reading) -> Iterator[str]:
    who = f"{reading.partition}: {reading.consumer}"
    for expected, seen in enumerate(reading.seen):
        if seen.offset != expected:
            yield f"{who} saw offset {seen.offset} where {expected} was next"
            return
        log = history.eras[seen.era].logs.get(reading.partition, [])
        if seen.offset >= len(log) or log[seen.offset].value != seen.value:
            yield f"{who} saw {seen.value!r} at offset {seen.offset}, and the log has something else there"
            return
    yield from _seen_is_safe(history, reading, who)


def _seen_is_safe(history: History, reading: Reading, who: str) -> Iterator[str]:
    """Nobody reads from a synced topic what a power failure can take away."""
    if reading.partition.topic not in history.safe_topics:
        return
    for seen in reading.seen:
        later = seen.era + 1
        if later < len(history.eras):
            kept = history.eras[later].kept.get(reading.partition, [])
            if seen.offset >= len(kept) or kept[seen.offset].value != seen.value:
                yield f"{who} saw {seen.value!r} at offset {seen.offset} before it was synced, and then it was lost"
                return
