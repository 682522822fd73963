"""How the config APIs show and alter the levels of a broker's loggers. Pure: levels in, entries or levels out.

Levels are not stored: a broker starts with those of its command line.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from cordwood.errors import Error, Refused

from .alter import Change, Operation
from .describe import Entry
from .layers import Source
from .setting import Kind

LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Kafka's names, from the most verbose to the least."""
ROOT: Final = "root"


def describe_loggers(levels: Mapping[str, str], names: Collection[str] | None = None) -> list[Entry]:
    """The loggers (those in *names*, or all), by name."""
    wanted = [name for name in sorted(levels) if not names or name in names]
    return [
        Entry(name, levels[name], Source.BROKER_LOGGER, Kind.STRING, False, False, (), "How much it says.")
        for name in wanted
    ]


def alter_loggers(levels: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str | None]:
    """The levels to set; None for a logger that should have its parent's.

    Raises:
        Refused: with Kafka's error code; then nothing should be set.
    """
    if len({change.name for change in changes}) < len(changes):
        raise Refused(Error.INVALID_REQUEST, "a logger is changed twice in one request")
    return {change.name: _level(levels, change) for change in changes}


def _level(levels: Mapping[str, str], change: Change) -> str | None:
    if change.operation not in (Operation.SET, Operation.DELETE):
        raise Refused(Error.INVALID_REQUEST, f"operation {change.operation} is none for a logger: set or delete it")
    if change.operation == Operation.SET and change.value is None:
        raise Refused(Error.INVALID_REQUEST, f"{change.name} has no value")
    if change.name not in levels:
        raise Refused(
            Error.INVALID_CONFIG, f"there is no logger '{change.name}'; there are {', '.join(sorted(levels))}"
        )
    if change.operation == Operation.DELETE:
        if change.name == ROOT:
            raise Refused(Error.INVALID_REQUEST, f"the logger {ROOT} has no parent whose level it could have")
        return None
    if change.value not in LEVELS:
        text = f"{change.value} is no level for {change.name}; it must be one of {', '.join(LEVELS)}"
        raise Refused(Error.INVALID_CONFIG, text)
    return change.value
