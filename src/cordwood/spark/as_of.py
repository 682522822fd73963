"""The points in time at which a table can be shown, as options of the source. Pure, except for the machine's zone."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from cordwood.errors import ConfigError

AsOf = Mapping[int, int] | datetime | date | str | int
"""Offsets by partition, each the first one that is not included; or a time.

A time is a datetime, a date (its first moment), text in ISO 8601, or a whole number of milliseconds since 1970. Text
without a zone, and a date, are in the session's zone, as in Spark's SQL; a datetime without one is in this machine's,
as in PySpark and Python.
"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHOICES: Final = (
    "give offsets by partition, such as {0: 120, 1: 97}; or a time: a datetime, a date, text such as "
    "2026-01-31T12:00:00Z, or milliseconds since 1970 as an int, such as int(time.time() * 1000)"
)


def limits(topic: str, as_of: AsOf | None, zone: str) -> dict[str, str]:
    """What to read, as options of the source.

    Args:
        zone: the session's, by its name, or as an offset such as +02:00.

    Raises:
        ConfigError: *as_of* cannot be used.
    """
    if as_of is None:
        return {"subscribe": topic}
    if isinstance(as_of, Mapping):
        return _at_offsets(topic, as_of)
    time_ms = _time_ms(as_of, zone)
    if time_ms < 0:
        raise ConfigError(f"as_of is {as_of!r}, which is before 1970")
    return {"subscribe": topic, "endingTimestamp": str(time_ms)}


def _at_offsets(topic: str, as_of: Mapping[int, int]) -> dict[str, str]:
    if not as_of:
        raise ConfigError("as_of has no partition; write it as {0: 120, 1: 97}")
    if not all(type(number) is int for number in (*as_of.keys(), *as_of.values())):
        raise ConfigError(
            f"as_of is {dict(as_of)!r}; partitions and offsets are whole numbers, such as {{0: 120, 1: 97}}"
        )
    offsets = {str(partition): offset for partition, offset in sorted(as_of.items())}
    return {"assign": json.dumps({topic: sorted(as_of)}), "endingOffsets": json.dumps({topic: offsets})}


def _time_ms(as_of: AsOf, zone: str) -> int:
    match as_of:
        case int() if not isinstance(as_of, bool):
            return as_of
        case datetime():
            return _rounded_up(as_of, as_of)
        case date():
            return _rounded_up(datetime.combine(as_of, time(), _zone(zone)), as_of)
        case str():
            return _rounded_up(_read(as_of, zone), as_of)
        case _:
            raise ConfigError(f"as_of is {as_of!r}; {_CHOICES}")


def _read(text: str, zone: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"as_of is {text!r}; {_CHOICES}") from None
    return found if found.tzinfo else found.replace(tzinfo=_zone(zone))


def _rounded_up(moment: datetime, as_of: object) -> int:
    """Milliseconds, rounded up, since a record of the same millisecond may be before the moment."""
    try:
        return -((_EPOCH - moment.astimezone(UTC)) // timedelta(milliseconds=1))
    except (OverflowError, ValueError):
        raise ConfigError(f"as_of is {as_of!r}, which is not within the years 1 to 9999") from None


def _zone(name: str) -> tzinfo:
    try:
        if name[:1] in "+-":
            found = datetime.fromisoformat("2000-01-01T00:00:00" + name).tzinfo
            assert found is not None
            return found
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # an unknown name raises a KeyError
        raise ConfigError(
            f"as_of has no zone, and spark.sql.session.timeZone, {name!r}, is none that Python knows; write the zone, "
            "such as 2026-01-31T12:00:00Z"
        ) from None
