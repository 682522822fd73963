"""Where to start reading, as a person says it: ``earliest``, ``latest``, an offset, a time."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

# An offset of 13 digits would take a million records a second for eleven days; a time in ms has had 13 since 2001.
TIME_DIGITS = 13

HELP = (
    "earliest; latest; an offset (1500); that many before the end (-10); a time (2026-01-31T12:00, local unless it "
    "says otherwise, or ms since 1970); or how long ago (1h, 30m, 2d)"
)


class Where(Enum):
    """What the number of a position counts."""

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
    if (ago := re.fullmatch(r"-?([0-9]+)([smhd])", text)) is not None:
        return _at_time(now_ms - int(ago[1]) * UNITS_MS[ago[2]])
    return _at_time(int(datetime.fromisoformat(text).timestamp() * 1000))


def _at_time(time_ms: int) -> Position:
    """Kafka has other meanings for times before 1970."""
    return Position(Where.TIME_MS, max(0, time_ms))
