"""The wall clock may go back: what was written then has a time that is still to come."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.consumer import ConsumerGroup, patterns, target
from cordwood.ids import TopicName
from cordwood.ports import Instant
from group.consumer_members import TestMember, group_of, settle
from group.group_harness import GroupHarness

HOUR_MS = 3_600_000


def turn_clock(harness: GroupHarness, ms: int) -> None:
    harness.now = Instant(harness.now.wall_ms + ms, harness.now.mono_ms)


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, -1, HOUR_MS])
def test_partitions_are_shared_out_anew_after_the_clock_was_set(jump_ms: int) -> None:
    harness = GroupHarness()
    harness.topic("t", 4)
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    settle(harness, first)
    turn_clock(harness, jump_ms)
    second.join()
    settle(harness, first, second)
    assert sorted([first.numbers, second.numbers]) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
def test_patterns_are_looked_at_after_the_clock_was_set(jump_ms: int) -> None:
    harness = GroupHarness()
    harness.topic("t1")
    member = TestMember(harness, "a", topics=None, pattern="t.*")
    member.join()
    settle(harness, member)
    turn_clock(harness, jump_ms)
    harness.topic("t2")
    for outcome in harness.machine.topics_changed([TopicName("t2")], harness.now):
        harness.finish(outcome)
    settle(harness, member)
    assert len(member.told) == 2


def test_patterns_of_a_later_time_are_looked_at_once() -> None:
    harness = GroupHarness()
    harness.topic("t")
    members = [TestMember(harness, f"m{n}", topics=None, pattern=f"t{n}?") for n in range(2)]
    for member in members:
        member.join()
    settle(harness, *members)
    turn_clock(harness, -HOUR_MS)
    members[0].beat()
    written = len(harness.stored)
    settle(harness, *members)
    assert len(harness.stored) == written
    assert {each.timestamp for each in group_of(harness).patterns.values()} <= {harness.now.wall_ms - 20_000}


def test_a_pattern_that_is_too_much_here_is_looked_at_once_and_keeps_its_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = GroupHarness()
    harness.topic("t")
    member = TestMember(harness, "a", topics=None, pattern="t.*")
    member.join()
    settle(harness, member)
    looked: list[str] = []

    def too_much(text: str) -> object:
        looked.append(text)
        raise Refused(Error.INVALID_REGULAR_EXPRESSION)

    monkeypatch.setattr(patterns, "compile_pattern", too_much)
    turn_clock(harness, -HOUR_MS)
    settle(harness, member)
    assert looked == ["t.*"]
    assert group_of(harness).patterns["t.*"].topics == {"t"}
    assert member.numbers == [0]


def test_an_assignment_is_due_after_its_interval_or_if_its_time_is_still_to_come() -> None:
    group = ConsumerGroup("g")
    group.epoch, group.assignment_timestamp = 2, 10_000
    due = [now_ms for now_ms in (9_999, 10_000, 10_999, 11_000) if target.is_due(group, 1000, now_ms)]
    assert due == [9_999, 11_000]
