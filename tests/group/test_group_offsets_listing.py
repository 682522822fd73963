"""ListGroups: states and types as filters."""

import pytest

from cordwood.group import offsets
from group.classic_driver import ClassicDriver
from group.consumer_members import TestMember
from group.offsets_driver import OffsetsDriver


class Both(OffsetsDriver, ClassicDriver):
    """Offsets, and a classic group ``g``."""


@pytest.fixture
def driver() -> Both:
    """A group of each kind: empty and classic, stable and classic, stable and of the consumer protocol."""
    driver = Both()
    driver.stable(1)
    TestMember(driver, "m", group_id="new").join()
    driver.committed({("t", 0): 5}, "simple")
    return driver


def _names(driver: Both, states: list[str], types: list[str]) -> set[str]:
    return {group.group_id for group in offsets.list_groups(driver.state, states=states, types=types)}


def test_all_groups_are_listed(driver: Both) -> None:
    listed = offsets.list_groups(driver.state, states=[], types=[])
    assert {(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in listed} == {
        ("g", "consumer", "Stable", "classic"),
        ("new", "consumer", "Stable", "consumer"),
        ("simple", "", "Empty", "classic"),
    }


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        (["Stable"], [], {"g", "new"}),
        (["STABLE"], [], {"g", "new"}),
        (["empty", "stable"], [], {"g", "new", "simple"}),
        (["PreparingRebalance"], [], set()),
        (["nonsense"], [], set()),
        (["nonsense", "Empty"], [], {"simple"}),
        ([""], [], set()),
        ([], ["classic"], {"g", "simple"}),
        ([], ["Consumer"], {"new"}),
        ([], ["share"], set()),
        ([], ["nonsense", "CONSUMER"], {"new"}),
        (["Empty"], ["classic"], {"simple"}),
        (["Empty"], ["consumer"], set()),
    ],
)
def test_filters_ignore_case_and_know_no_wrong_names(
    driver: Both, states: list[str], types: list[str], names: set[str]
) -> None:
    assert _names(driver, states, types) == names
