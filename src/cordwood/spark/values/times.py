"""The times that Spark has: those of the years 1 to 9999, as in Python. Arrow has more, and does not report it.

And the zones in which they may be written.
"""

import re
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from cordwood.errors import ConfigError

TIMESTAMP_MIN_US: Final = -62_135_596_800_000_000
TIMESTAMP_MAX_US: Final = 253_402_300_799_999_999
_DATE_MIN: Final = -719_162
_DATE_MAX: Final = 2_932_896
_UTC: Final = (
    "UTC",
    "Z",
    "GMT",
    "UCT",
    "Zulu",
    "Universal",
    "Etc/UTC",
    "Etc/GMT",
    "Etc/UCT",
    "Etc/Zulu",
    "Etc/Universal",
)


def zone_of(text: str | None) -> tzinfo:
    """The zone that the option timeZone names; without it, UTC.

    Raises:
        ConfigError: the zone is unknown.
    """
    if text is None or text in _UTC:
        return UTC
    try:
        if re.fullmatch(r"[+-]\d\d:\d\d", text):
            return datetime.strptime(text, "%z").tzinfo or UTC
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ConfigError(f"timeZone is {text!r}; write a zone such as Europe/Berlin, +01:00 or UTC") from None


def has_times(kind: pa.DataType) -> bool:
    """Is there a time or a date anywhere in the type?"""
    if pa.types.is_struct(kind):
        return any(has_times(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_times(kind.value_type)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def has_zones(kind: pa.DataType) -> bool:
    """Does the type contain a timestamp that is the same in every zone?"""
    if pa.types.is_struct(kind):
        return any(has_zones(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_zones(kind.value_type)
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def in_range(values: pa.Array) -> bool:
    """Is every time in it one that Spark has? Structs and lists are searched, too."""
    kind = values.type
    if pa.types.is_struct(kind):
        return all(in_range(values.field(number)) for number in range(kind.num_fields))
    if pa.types.is_list(kind):
        return in_range(values.flatten())
    if pa.types.is_timestamp(kind):
        return _between(values.cast(pa.int64()), TIMESTAMP_MIN_US, TIMESTAMP_MAX_US)
    return not pa.types.is_date32(kind) or _between(values.cast(pa.int32()), _DATE_MIN, _DATE_MAX)


def _between(numbers: pa.Array, least: int, most: int) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or (least <= found["min"] and found["max"] <= most)
