"""What a consumer group may grow to, and how much is done at once."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.consumer import ConsumerGroup, patterns
from cordwood.group.consumer.subscriptions import NAMES_MAX
from group.consumer_members import GROUP, TestMember
from group.group_harness import GroupHarness


def group_of(harness: GroupHarness) -> ConsumerGroup:
    group = harness.state.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def refused(member: TestMember) -> Error:
    with pytest.raises(Refused) as refusal:
        member.join()
    return refusal.value.error


def test_members_who_want_the_same_share_the_names() -> None:
    harness = GroupHarness()
    for name in ("a", "b"):
        TestMember(harness, name, topics=["x", "y"]).join()
    first, second = (member.description.topics for member in group_of(harness).members.values())
    assert first is second


def test_names_are_counted_once_for_those_who_want_the_same() -> None:
    harness = GroupHarness()
    names = [f"x{number}" for number in range(NAMES_MAX - 2)]
    for name in ("a", "b", "c"):
        TestMember(harness, name, topics=names).join()
    TestMember(harness, "d", topics=["x1", "z"]).join()
    assert group_of(harness).subscriptions.name_count == NAMES_MAX
    assert refused(TestMember(harness, "e", topics=["x1"])) is Error.INVALID_REQUEST
    assert NAMES_MAX >= 10_000


def test_patterns_are_refreshed_a_few_at_a_time_until_all_are() -> None:
    harness = GroupHarness()
    count = 2 * patterns.REFRESHED_AT_ONCE + 1
    members = [TestMember(harness, f"m{n}", topics=None, pattern=f"t{n}?") for n in range(count)]
    for member in members:
        member.join()
    harness.topic("t", 1)
    harness.machine.state.groups[GROUP].new_topics = True  # type: ignore[attr-defined]
    harness.advance(patterns.REFRESH_INTERVAL_MIN_MS + 1)
    found = []
    for _ in range(3):
        members[0].beat()
        found.append(sum("t" in resolved.topics for resolved in group_of(harness).patterns.values()))
    assert found == [patterns.REFRESHED_AT_ONCE, 2 * patterns.REFRESHED_AT_ONCE, count]
    assert not group_of(harness).patterns_to_refresh


def test_a_refresh_that_could_not_be_written_begins_anew() -> None:
    harness = GroupHarness()
    member = TestMember(harness, "m", topics=None, pattern="t")
    member.join()
    harness.topic("t", 1)
    group_of(harness).new_topics = True
    harness.advance(patterns.REFRESH_INTERVAL_MIN_MS + 1)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    with pytest.raises(Refused):
        member.beat()
    member.beat()
    assert group_of(harness).patterns["t"].topics == {"t"}


def test_there_are_no_more_members_than_fit_into_a_batch() -> None:
    harness = GroupHarness(message_max_bytes=300)
    errors = []
    for number in range(4):
        try:
            TestMember(harness, f"m{number}").join()
        except Refused as refusal:
            errors.append(refusal.error)
    assert errors == [Error.GROUP_MAX_SIZE_REACHED]
