"""The judge of groups finds what is wrong: histories that are right, and the same broken by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from clients.groups.events import Event, Kind, Place
from clients.groups.history import faults, owned, secured

PLACE = Place("t", 0)
OTHER = Place("t", 1)


def told(at: float, member: str, kind: Kind, *offsets: int, place: Place = PLACE) -> Event:
    return Event(at, member, kind, () if kind in ("closed", "killed") else (place,), offsets)


# One reads ten records and gives the partition up; two reads ten more, and is killed with three of them uncommitted;
# three goes on where two has committed last, and leaves.
RIGHT: Sequence[Event] = (
    told(1, "one", "assigned"),
    told(2, "one", "read", 0, 10),
    told(3, "one", "committing", 10),
    told(4, "one", "committed", 10),
    told(5, "one", "revoked"),
    told(6, "two", "assigned"),
    told(7, "two", "read", 10, 17),
    told(8, "two", "committing", 17),
    told(9, "two", "committed", 17),
    told(10, "two", "read", 17, 20),
    told(11, "two", "killed"),
    told(12, "three", "assigned"),
    told(13, "three", "read", 17, 25),
    told(14, "three", "committing", 25),
    told(15, "three", "committed", 25),
    told(16, "three", "closed"),
)


def with_changes(*changes: Event | None, events: Sequence[Event] = RIGHT) -> list[Event]:
    """The right history with events replaced by others of the same member and time, or added."""
    by_time = {event.at: event for event in events}
    by_time.update({change.at: change for change in changes if change is not None})
    return list(by_time.values())


def without(*times: float, events: Sequence[Event] = RIGHT) -> list[Event]:
    return [event for event in events if event.at not in times]


def test_right_history_has_no_faults() -> None:
    assert faults(RIGHT, {PLACE: 25}) == []
    assert faults(reversed(RIGHT), {PLACE: 25}) == [], "the order in which it was heard does not matter"


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        (with_changes(replace(RIGHT[5], at=4.5)), "t-0 had two owners: one until 5.000 (revoked), two since 4.500"),
        (without(5), "t-0 had two owners: one until inf (open), two since 6.000"),
        ([*without(16), told(15.5, "four", "assigned")], "t-0 had two owners: three until inf (open), four since 15.5"),
        (with_changes(told(7, "two", "read", 11, 17)), "two at t-0 began at 11, not at 10"),
        (with_changes(told(7, "two", "read", 9, 17)), "two at t-0 began at 9, not at 10"),
        (with_changes(told(10, "two", "read", 18, 20)), "two at t-0 went on at 18, not at 17"),
        (with_changes(told(10, "two", "read", 16, 20)), "two at t-0 went on at 16, not at 17"),
        (with_changes(told(13, "three", "read", 20, 25)), "three at t-0 began at 20, not at 17"),
        (with_changes(told(13, "three", "read", 10, 25)), "three at t-0 began at 10, not at 17"),
        (without(14, 15), "three at t-0 left at 25, but 17 was committed"),
        (with_changes(told(5.5, "one", "read", 10, 11)), "one read t-0 at 5.500, which it did not own"),
        (with_changes(told(11.5, "two", "read", 20, 21)), "two read t-0 at 11.500, which it did not own"),
    ],
)
def test_fault_is_found(events: list[Event], fault: str) -> None:
    assert any(found.startswith(fault) for found in faults(events)), faults(events)


def test_two_owners_are_found_behind_a_short_tenure() -> None:
    events = [told(1, "one", "assigned"), told(2, "two", "assigned"), told(3, "two", "revoked")]
    events += [told(4, "three", "assigned")]
    assert len(faults(events)) == 2


def test_end_must_be_reached() -> None:
    assert faults(RIGHT, {PLACE: 26}) == ["t-0 was committed up to 25, and ends at 26"]
    assert faults(RIGHT, {PLACE: 25, OTHER: 3}) == ["t-1 was never read"]
    assert faults(RIGHT, {PLACE: 25, OTHER: 0}) == []


def test_commit_that_nobody_answered_may_have_been_taken() -> None:
    asked = told(10.5, "two", "committing", 20)
    assert faults([*RIGHT, asked], {PLACE: 25}) == []
    assert faults(with_changes(asked, told(13, "three", "read", 20, 25))) == []
    assert faults(with_changes(asked, told(13, "three", "read", 18, 25))) == [
        "three at t-0 began at 18, not at 17 or 20"
    ]


def test_killed_member_that_read_nothing_changes_nothing() -> None:
    passing = [told(11.1, "four", "assigned"), told(11.2, "four", "killed")]
    assert faults([*RIGHT, *passing], {PLACE: 25}) == []


def test_lost_tenure_counts_up_to_its_last_proof() -> None:
    lost = told(12.5, "two", "lost")
    assert faults(with_changes(lost, events=without(11)), {PLACE: 25}) == []
    early = replace(RIGHT[11], at=8.5)
    assert faults(with_changes(lost, early, events=without(11, 12))) == [
        "t-0 had two owners: two until 9.000 (lost), three since 8.500"
    ]


def test_partitions_are_followed_one_by_one() -> None:
    other = [replace(event, places=(OTHER,) if event.places else ()) for event in RIGHT]
    assert faults([*RIGHT, *other], {PLACE: 25, OTHER: 25}) == []
    assert faults([*RIGHT, *other[:-1][:12]], {PLACE: 25}) == []


def test_owned_is_what_is_left() -> None:
    assert owned(RIGHT[:1]) == {PLACE}
    assert owned([told(1, "a", "assigned"), told(2, "a", "assigned", place=OTHER), told(3, "a", "revoked")]) == {OTHER}
    assert owned([told(1, "a", "assigned"), told(2, "a", "killed")]) == set()


@pytest.mark.parametrize("end", ["killed", "lost"])
def test_what_a_member_read_that_is_gone_is_not_secured(end: Kind) -> None:
    assert secured(RIGHT[:10]) == {PLACE: 20}, "two owns it, and commits when it leaves"
    assert secured([*RIGHT[:10], told(11, "two", end)]) == {PLACE: 17}
    assert secured(RIGHT[:13]) == {PLACE: 25}
    assert secured(RIGHT) == {PLACE: 25}


def test_each_partition_is_secured_by_itself() -> None:
    both = Event(3, "one", "committed", (PLACE, OTHER), (5, 7))
    events = [told(1, "one", "assigned"), told(2, "one", "read", 0, 9), both, told(4, "one", "revoked")]
    assert secured(events) == {PLACE: 5, OTHER: 7}
    assert secured(events[:2]) == {PLACE: 9}
