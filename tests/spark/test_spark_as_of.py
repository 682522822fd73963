"""The moments that a table can be shown at."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import cast

import pytest

from cordwood.errors import ConfigError
from cordwood.spark.as_of import AsOf, limits

MIDNIGHT_MS = 1_699_920_000_000  # 2023-11-14, in UTC
HOUR_MS = 3_600_000


def ending(as_of: object, zone: str = "UTC") -> int:
    found = limits("orders", cast(AsOf, as_of), zone)
    assert found.keys() == {"subscribe", "endingTimestamp"}
    return int(found["endingTimestamp"])


@pytest.mark.parametrize(
    ("as_of", "zone", "expected"),
    [
        (MIDNIGHT_MS, "UTC", MIDNIGHT_MS),
        ("2023-11-14", "UTC", MIDNIGHT_MS),
        (" 2023-11-14T01:00 ", "UTC", MIDNIGHT_MS + HOUR_MS),
        (date(2023, 11, 14), "UTC", MIDNIGHT_MS),
        ("2023-11-14", "Europe/Berlin", MIDNIGHT_MS - HOUR_MS),
        (date(2023, 11, 14), "Europe/Berlin", MIDNIGHT_MS - HOUR_MS),
        ("2023-11-14 00:00:00", "-02:00", MIDNIGHT_MS + 2 * HOUR_MS),
        ("2023-11-14T00:00:00Z", "Europe/Berlin", MIDNIGHT_MS),
        ("2023-11-14T00:00:00+01:00", "UTC", MIDNIGHT_MS - HOUR_MS),
        (datetime(2023, 11, 14, tzinfo=UTC), "Europe/Berlin", MIDNIGHT_MS),
        (datetime(2023, 11, 14, tzinfo=timezone(timedelta(hours=1))), "UTC", MIDNIGHT_MS - HOUR_MS),
        ("2023-11-14T00:00:00.001Z", "UTC", MIDNIGHT_MS + 1),
        ("2023-11-14T00:00:00.000001Z", "UTC", MIDNIGHT_MS + 1),
        (0, "UTC", 0),
    ],
)
def test_a_time_is_what_it_says(as_of: object, zone: str, expected: int) -> None:
    assert ending(as_of, zone) == expected


def test_a_datetime_without_a_zone_is_of_this_machine() -> None:
    moment = datetime(2023, 11, 14, 12)
    assert ending(moment, "Asia/Tokyo") == int(moment.timestamp()) * 1000


@pytest.mark.parametrize("as_of", [1699920000.5, True, "yesterday", "", [0, 5], b"2023-11-14", object()])
def test_what_is_no_moment_says_what_may_be_given(as_of: object) -> None:
    with pytest.raises(ConfigError, match=r"as_of is .*; give offsets by partition.*datetime.*milliseconds since 1970"):
        ending(as_of)


@pytest.mark.parametrize(
    ("as_of", "reason"),
    [
        ({}, "no partition"),
        ({"0": 5}, "whole numbers"),
        ({0: 5.0}, "whole numbers"),
        ({0: None}, "whole numbers"),
        ("1969-12-31", "before 1970"),
        (-1, "before 1970"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years 1 to 9999"),
    ],
)
def test_what_can_not_be_is_refused(as_of: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ending(as_of)


def test_a_zone_that_nobody_knows_has_to_be_written() -> None:
    with pytest.raises(ConfigError, match="write the zone"):
        ending("2023-11-14", "Nowhere/Land")
    assert ending("2023-11-14T00:00:00Z", "Nowhere/Land") == MIDNIGHT_MS


def test_offsets_are_by_partition() -> None:
    found = limits("orders", {1: 97, 0: 120}, "UTC")
    assert json.loads(found["assign"]) == {"orders": [0, 1]}
    assert json.loads(found["endingOffsets"]) == {"orders": {"0": 120, "1": 97}}
    assert limits("orders", None, "UTC") == {"subscribe": "orders"}
