"""Offsets of partitions: as Spark stores them, as options give them, and as the limits where a query begins and ends.

Spark compares two offsets of a stream by their text, so their keys have a fixed order: topics by name, partitions by
number. The format is that of Spark's Kafka source, ``{"topic":{"0":17}}``: either can continue from a checkpoint made
by the other. Pure.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from cordwood.errors import ConfigError

LATEST: Final = -1
EARLIEST: Final = -2

Partition = tuple[str, int]
Offsets = dict[Partition, int]
Json = dict[str, dict[str, int]]

T = TypeVar("T")

_TIMES: Final = '{"orders":{"0":1700000000000,"1":1700000000000}}'


@dataclass(frozen=True, slots=True)
class Everywhere:
    """LATEST or EARLIEST for each partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition, or LATEST or EARLIEST."""

    option: str
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first record that is not older than a time in ms: one time for all partitions, or one for each of them."""

    option: str
    times_ms: int | Offsets
    latest_if_none: bool
    """What to do about a partition without such a record: take its end, or refuse."""

    def time_ms(self, partition: Partition) -> int:
        return self.times_ms if isinstance(self.times_ms, int) else self.times_ms[partition]


Limit = Everywhere | AtOffsets | AtTimes


def to_json(offsets: Mapping[Partition, int]) -> Json:
    """
    >>> to_json({("b", 0): 1, ("a", 10): 2, ("a", 9): 3})
    {'a': {'9': 3, '10': 2}, 'b': {'0': 1}}
    """
    made: Json = {}
    for (topic, partition), offset in sorted(offsets.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return made


def of_json(offsets: Json) -> Offsets:
    """The inverse of ``to_json``, whatever the order of the keys.

    >>> of_json({"a": {"9": 3}})
    {('a', 9): 3}
    """
    return {
        (topic, int(partition)): offset for topic, entries in offsets.items() for partition, offset in entries.items()
    }


def parse_offsets(option: str, text: str) -> Offsets:
    """The value of an option that has an offset for each partition."""
    found = _parsed(option, text, '{"orders":{"0":23,"1":-1}}', _by_partition)
    for (topic, partition), offset in found.items():
        if offset < EARLIEST:
            raise ConfigError(
                f"option {option}: {offset} for {topic}-{partition} is not an offset; "
                "-1 stands for the latest, -2 for the earliest"
            )
    return found


def parse_times(option: str, text: str) -> Offsets:
    """The value of an option that has a time in ms for each partition."""
    found = _parsed(option, text, _TIMES, _by_partition)
    for (topic, partition), time_ms in found.items():
        if time_ms < 0:
            raise ConfigError(
                f"option {option}: {time_ms} for {topic}-{partition} is not a time; write ms since 1970, as in {_TIMES}"
            )
    return found


def parse_partitions(option: str, text: str) -> frozenset[Partition]:
    """The value of ``assign``."""

    def read(value: object) -> frozenset[Partition]:
        return frozenset((topic, _int(number)) for topic, numbers in _items(value) for number in _list(numbers))

    example = '{"orders":[0,1]}'
    found = _parsed(option, text, example, read)
    if not found:
        raise ConfigError(f"option {option} names no partition; write it as {example}")
    return found


def _parsed(option: str, text: str, example: str, read: Callable[[object], T]) -> T:
    try:
        return read(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise ConfigError(f"option {option} is {text[:200]!r}; write it as {example}") from None


def _by_partition(value: object) -> Offsets:
    return {(topic, number): _int(entry) for topic, entries in _items(value) for number, entry in _numbered(entries)}


def _items(value: object) -> list[tuple[str, object]]:
    if not isinstance(value, dict):
        raise TypeError
    return list(value.items())


def _numbered(value: object) -> list[tuple[int, object]]:
    return [(_int(int(number)), entry) for number, entry in _items(value)]


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise TypeError
    return value
