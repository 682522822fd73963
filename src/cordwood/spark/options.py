"""The source's options, read and checked: what a query wants, as a value that can be sent anywhere.

The rules are those of Spark's Kafka source: which options exclude each other, which one wins, what is only for batches.
Where that source tolerates something that can only be a mistake, this one does not. Every error names the option, its
value, and what to write instead.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError

from .offsets import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimes,
    Everywhere,
    Limit,
    parse_offsets,
    parse_partitions,
    parse_times,
)
from .option_names import PREFIX, Use, check_names
from .schema import Columns
from .subscription import Assign, Subscription, parse

if TYPE_CHECKING:
    from .values import ValueDecoder

_STRATEGIES: Final = ("assign", "subscribe", "subscribePattern")
_UNITS_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME = re.compile(r"(\d+)\s*([a-z]*)")
_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a query wants to read, and how."""

    settings: RawSettings
    subscription: Subscription
    starting: Limit
    ending: Limit
    columns: Columns
    fail_on_data_loss: bool = True
    push_filters: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    offset_attempts: int = 3
    offset_interval_ms: int = 1000
    task_timeout_ms: int | None = None
    group: str | None = None
    direct: bool = True
    values: "ValueDecoder | None" = None
    """What keys and values are, if they are more than bytes."""

    @property
    def isolation(self) -> int:
        return self.settings.isolation

    @classmethod
    def of(cls, given: Mapping[str, str], use: Use) -> "SourceOptions":
        """
        Args:
            use: BATCH, STREAM, or READ if it is not known yet which of them.

        Raises:
            ConfigError: the text says what is wrong and what would be right.
        """
        check_names(given, use)
        reading = _Reading(given)
        starting, ending = reading.limits(use)
        most, least = reading.number("maxOffsetsPerTrigger"), reading.number("minOffsetsPerTrigger")
        if most is not None and least is not None and least > most:
            raise ConfigError(
                f"option minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {most}"
            )
        return cls(
            settings=reading.settings(),
            subscription=reading.subscription(),
            starting=starting,
            ending=ending,
            columns=reading.columns(),
            fail_on_data_loss=reading.flag("failOnDataLoss", default=True),
            push_filters=reading.flag("pushFilters", default=False),
            min_partitions=reading.number("minPartitions", most=2**31 - 1),
            max_records_per_partition=reading.number("maxRecordsPerPartition"),
            max_offsets_per_trigger=most,
            min_offsets_per_trigger=least,
            max_trigger_delay_ms=reading.duration_ms("maxTriggerDelay", default=15 * 60_000),
            offset_attempts=reading.number_or(3, "fetchOffset.numRetries", least=1),
            offset_interval_ms=reading.number_or(1000, "fetchOffset.retryIntervalMs", least=0),
            task_timeout_ms=reading.number("kafkaConsumer.pollTimeoutMs", most=2**31 - 1),
            group=reading.group(),
            direct=reading.choice("direct", ("auto", "never")) == "auto",
        )


class _Reading:
    """Options by name, whatever their case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def number(self, name: str, *, least: int = 1, most: int = _MAX) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not least <= int(text) <= most:
            raise ConfigError(f"option {name} is {text!r}; write a whole number, at least {least}")
        return int(text)

    def number_or(self, default: int, name: str, *, least: int) -> int:
        number = self.number(name, least=least, most=2**31 - 1)
        return default if number is None else number

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"option {name} is {text!r}; write true or false")
        return text.lower() == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of *choices*; the first one if the option is not given."""
        text = self.text(name)
        if text is None:
            return choices[0]
        if text.lower() not in choices:
            raise ConfigError(f"option {name} is {text!r}; write {' or '.join(choices)}")
        return text.lower()

    def duration_ms(self, name: str, *, default: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        found = _TIME.fullmatch(text.lower())
        if found is None or (found[2] or "ms") not in _UNITS_MS:
            raise ConfigError(f"option {name} is {text!r}; write a time with its unit, such as 90s, 15m or 1h")
        return int(int(found[1]) * _UNITS_MS[found[2] or "ms"])

    def group(self) -> str | None:
        name = self.text("group")
        if name == "":
            raise ConfigError("option group is empty; write the name of a consumer group, or leave it out")
        return name

    def columns(self) -> Columns:
        text, headers = self.text("columns"), self.flag("includeHeaders")
        if text is None:
            return Columns.of(headers=headers)
        names = [name.strip() for name in text.split(",") if name.strip()]
        try:
            return Columns.of([*names, "headers"] if headers and "headers" not in names else names)
        except ConfigError as error:
            raise ConfigError(f"option columns: {error}") from None

    def subscription(self) -> Subscription:
        given = [name for name in _STRATEGIES if self.text(name) is not None]
        if not given:
            raise ConfigError(f"say what to read: one of the options {', '.join(_STRATEGIES)} is needed")
        if len(given) > 1:
            raise ConfigError(f"only one of the options {' and '.join(given)} can be given")
        (name,) = given
        text = self.text(name) or ""
        return Assign(parse_partitions(name, text)) if name == "assign" else parse(name, text)

    def settings(self) -> RawSettings:
        properties = {
            name.removeprefix(PREFIX): value for name, value in self._given.items() if name.startswith(PREFIX)
        }
        # Our Fetch is for one partition, so the smaller of the two limits applies.
        sizes = [properties[name] for name in ("fetch.max.bytes", "max.partition.fetch.bytes") if name in properties]
        if sizes and all(size.strip().isdigit() for size in sizes):
            properties["fetch.max.bytes"] = str(min(int(size) for size in sizes))
        try:
            return RawSettings.of_properties(properties)
        except ConfigError as error:
            raise ConfigError(f"option {PREFIX}{error}") from None

    # Where to begin and where to end

    def limits(self, use: Use) -> tuple[Limit, Limit]:
        begin = EARLIEST if use == Use.BATCH else LATEST
        starting, ending = self._limit("starting", begin), self._limit("ending", LATEST)
        if use == Use.BATCH:
            _check_batch(starting, LATEST, "a batch cannot begin at the latest offset: there is nothing after it")
            _check_batch(ending, EARLIEST, "a batch cannot end at the earliest offset: there is nothing before it")
            _check_pair(starting, ending)
        return starting, ending

    def _limit(self, which: str, default: int) -> Limit:
        by_time, by_times, by_offset = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
        strategy = self.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
        lenient = which == "ending" or strategy == "latest"
        time_ms = self.number(by_time, least=0)
        if time_ms is not None:
            return AtTimes(by_time, time_ms, lenient)
        if (times := self.text(by_times)) is not None:
            return AtTimes(by_times, parse_times(by_times, times), lenient)
        text = self.text(by_offset)
        named = {"earliest": EARLIEST, "latest": LATEST, None: default}
        if text is None or text.lower() in named:
            return Everywhere(named[text.lower() if text else None])
        return AtOffsets(by_offset, parse_offsets(by_offset, text))


def _check_batch(limit: Limit, forbidden: int, reason: str) -> None:
    if limit == Everywhere(forbidden):
        raise ConfigError(f"option {'startingOffsets' if forbidden == LATEST else 'endingOffsets'}: {reason}")
    if isinstance(limit, AtOffsets):
        for (topic, partition), offset in sorted(limit.offsets.items()):
            if offset == forbidden:
                raise ConfigError(f"option {limit.option}: {forbidden} for {topic}-{partition}: {reason}")


def _check_pair(starting: Limit, ending: Limit) -> None:
    """If both limits give offsets, they must name the same partitions, and none may end before it begins."""
    match starting, ending:
        case (AtOffsets(first, begin), AtOffsets(second, end)):
            pass
        case (AtTimes(first, dict() as begin), AtTimes(second, dict() as end)):
            pass
        case _:
            return
    if begin.keys() != end.keys():
        (topic, partition) = min(begin.keys() ^ end.keys())
        raise ConfigError(
            f"options {first} and {second} must name the same partitions; only one has {topic}-{partition}"
        )
    for (topic, partition), offset in sorted(begin.items()):
        if 0 <= end[topic, partition] < offset:
            raise ConfigError(
                f"option {first} is {offset} for {topic}-{partition}, after {second}, which is {end[topic, partition]}"
            )
