"""Where to start reading, as a person writes it: ``earliest``, ``latest``, an offset, a time, or how long ago."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

# Days, hours, minutes and seconds, as 1h30m or in ISO 8601, which Kafka's tools use.
UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)
DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
ISO_DURATION = re.compile(r"P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?")

# To reach an offset of 13 digits takes a million records a second for eleven days; a time in ms has had 13 since 2001.
TIME_DIGITS = 13

HELP = (
    "earliest; latest; an offset (1500); that many before the end (-10); a time (2026-01-31T12:00, local unless it "
    "says otherwise, or ms since 1970); or how long ago (1h, 30m, 2d12h)"
)
DURATION_HELP = "a duration, such as 90s, 1h30m, 2d or PT1H30M"


class Where(Enum):
    """What the number of a position means."""

    EARLIEST = auto()
    LATEST = auto()
    OFFSET = auto()
    BEFORE_END = auto()
    TIME_MS = auto()


@dataclass(frozen=True, slots=True)
class Position:
    """A place in every partition."""

    where: Where
    number: int = 0


def parse_position(text: str, *, now_ms: int) -> Position:
    """What *text* means; ``ValueError`` if it means nothing.

    >>> parse_position("-1h", now_ms=10_000_000)
    Position(where=<Where.TIME_MS: 5>, number=6400000)
    """
    if text in ("earliest", "latest"):
        return Position(Where[text.upper()])
    if re.fullmatch(r"[0-9]{1,18}", text):
        return Position(Where.TIME_MS if len(text) >= TIME_DIGITS else Where.OFFSET, int(text))
    if re.fullmatch(r"-[0-9]{1,18}", text):
        return Position(Where.BEFORE_END, -int(text))
    if (ago_ms := _duration_ms(text.removeprefix("-"))) is not None:
        return before(now_ms, ago_ms)
    return _at_time(int(datetime.fromisoformat(text).timestamp() * 1000))


def parse_duration_ms(text: str) -> int:
    """How long *text* says; ``ValueError`` if it says nothing.

    >>> parse_duration_ms("1h30m") == parse_duration_ms("PT1H30M") == 5_400_000
    True
    """
    if (duration_ms := _duration_ms(text)) is None:
        raise ValueError(text)
    return duration_ms


def before(now_ms: int, ago_ms: int) -> Position:
    return _at_time(now_ms - ago_ms)


def _duration_ms(text: str) -> int | None:
    found = DURATION.fullmatch(text) or ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(int(count or 0) * unit_ms for count, unit_ms in zip(found.groups(), UNITS_MS, strict=True))


def _at_time(time_ms: int) -> Position:
    """Times before 1970 have other meanings in Kafka."""
    return Position(Where.TIME_MS, max(0, time_ms))
