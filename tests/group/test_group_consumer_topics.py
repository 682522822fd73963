"""Topics that come, grow and go, and subscriptions by pattern."""

from dataclasses import replace

import pytest

from cordwood.errors import Error, Refused
from cordwood.group import consumer
from cordwood.group.consumer.member import MemberState
from cordwood.ids import TopicName
from group.classic_clients import ClassicClient, error_of
from group.consumer_members import TestMember, group_of, refused, settle
from group.group_harness import GroupHarness
from group.test_group_consumer_migration import joined, new_harness, run


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


def changed(harness: GroupHarness, *names: str) -> None:
    harness.finish(consumer.topics_changed(harness.state, [TopicName(name) for name in names], harness.now))


def test_new_partitions_are_given_to_members(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    members = [TestMember(harness, name) for name in "ab"]
    for member in members:
        member.join()
    settle(harness, *members)
    harness.topic("t", 4)
    changed(harness, "t")
    settle(harness, *members)
    assert [len(member.numbers) for member in members] == [2, 2]


def test_a_change_that_nobody_was_told_of_is_not_looked_for(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    member = TestMember(harness, "a")
    member.join()
    harness.topic("t", 4)
    settle(harness, member)
    assert member.numbers == [0]


def test_a_topic_that_is_subscribed_to_may_come_later(harness: GroupHarness) -> None:
    member = TestMember(harness, "a", topics=["later"])
    member.join()
    settle(harness, member)
    assert not member.told
    harness.topic("later", 2)
    changed(harness, "later")
    settle(harness, member)
    assert member.numbers == [0, 1]


def test_a_topic_that_is_gone_is_given_up(harness: GroupHarness) -> None:
    harness.topic("t", 2)
    kept = harness.topic("u", 2)
    member = TestMember(harness, "a", topics=["t", "u"])
    member.join()
    harness.drop_topic("t")
    changed(harness, "t")
    settle(harness, member)
    assert member.owned == {(kept, 0), (kept, 1)}


def test_a_topic_that_was_made_anew_is_another_one(harness: GroupHarness) -> None:
    harness.topic("t", 2)
    member = TestMember(harness, "a")
    member.join()
    harness.drop_topic("t")
    new = harness.topic("t", 2)
    changed(harness, "t")
    settle(harness, member)
    assert member.owned == {(new, 0), (new, 1)}


def test_other_topics_change_nothing(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    member = TestMember(harness, "a")
    member.join()
    harness.topic("other", 1)
    changed(harness, "other")
    stored = len(harness.stored)
    settle(harness, member)
    assert len(harness.stored) == stored


def test_topics_that_changed_during_a_restart_are_looked_at(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    member = TestMember(harness, "a")
    member.join()
    harness.topic("t", 2)
    harness.reload()
    settle(harness, member)
    assert member.numbers == [0, 1]


def test_a_change_is_looked_at_again_if_it_could_not_be_written(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    member = TestMember(harness, "a")
    member.join()
    harness.topic("t", 2)
    changed(harness, "t")
    harness.advance(1000)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    with pytest.raises(Refused):
        member.beat()
    member.beat()
    assert member.numbers == [0, 1]


# ---------------------------------------------------------------------- patterns


def test_a_pattern_is_resolved_when_it_comes(harness: GroupHarness) -> None:
    harness.topic("orders-1", 2)
    harness.topic("orders-2", 1)
    harness.topic("payments", 1)
    member = TestMember(harness, "a", topics=None, pattern="orders-.*")
    member.join()
    assert len(member.told) == 3
    assert group_of(harness).is_subscribed_to("orders-2")
    assert not group_of(harness).is_subscribed_to("payments")


def test_names_and_a_pattern_go_together(harness: GroupHarness) -> None:
    harness.topic("orders", 1)
    harness.topic("payments", 1)
    member = TestMember(harness, "a", topics=["payments"], pattern="ord.*")
    member.join()
    assert len(member.told) == 2


def test_a_new_topic_that_matches_is_found(harness: GroupHarness) -> None:
    harness.topic("orders-1", 1)
    member = TestMember(harness, "a", topics=None, pattern="orders-.*")
    member.join()
    harness.topic("orders-2", 1)
    changed(harness, "orders-2")
    settle(harness, member)
    assert len(member.told) == 2


def test_a_pattern_is_looked_at_now_and_then() -> None:
    harness = GroupHarness(group_consumer_regex_refresh_interval_ms=20_000)
    harness.topic("orders-1", 1)
    member = TestMember(harness, "a", topics=None, pattern="orders-.*")
    member.join()
    harness.topic("orders-2", 1)
    settle(harness, member, rounds=4)
    assert len(member.told) == 1
    settle(harness, member, rounds=2)
    assert len(member.told) == 2


def test_what_is_no_pattern_is_refused(harness: GroupHarness) -> None:
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "a", topics=None, pattern="a(").join()
    assert refusal.value.error is Error.INVALID_REGULAR_EXPRESSION
    assert not harness.state.groups


def test_a_pattern_is_forgotten_with_the_last_who_used_it(harness: GroupHarness) -> None:
    harness.topic("t", 2)
    first, second = (TestMember(harness, name, topics=None, pattern="t") for name in "ab")
    first.join()
    second.join()
    first.beat(subscribed_topic_regex="", subscribed_topic_names=["t"])
    assert list(group_of(harness).patterns) == ["t"]
    second.leave()
    assert not group_of(harness).patterns
    assert not group_of(harness).matched


def test_a_member_can_change_its_pattern(harness: GroupHarness) -> None:
    harness.topic("t", 1)
    other = harness.topic("u", 1)
    member = TestMember(harness, "a", topics=None, pattern="t")
    member.join()
    member.beat(subscribed_topic_regex="u")
    assert not member.told
    settle(harness, member)
    assert member.owned == {(other, 0)}


def test_two_members_of_one_pattern_share(harness: GroupHarness) -> None:
    harness.topic("t", 2)
    members = [TestMember(harness, name, topics=None, pattern="t") for name in "ab"]
    for member in members:
        member.join()
    settle(harness, *members)
    assert [len(member.told) for member in members] == [1, 1]


def marked_for_a_look() -> tuple[GroupHarness, ClassicClient, TestMember]:
    """A group of both protocols, with partitions that it does not know of yet."""
    harness = new_harness()
    client, member = joined(harness), TestMember(harness, "s", instance_id="i")
    member.join()
    run(harness, client, member)
    harness.topic("t", 6)
    changed(harness, "t")
    assert group_of(harness).topics_changed
    return harness, client, member


def test_new_partitions_are_not_forgotten_when_a_downgrade_can_not_be_written() -> None:
    harness, client, member = marked_for_a_look()
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    successor = ClassicClient(harness, instance_id="i")
    assert error_of(successor.send_join().answers[0]) is Error.COORDINATOR_NOT_AVAILABLE
    assert group_of(harness).topics_changed
    run(harness, client, member)
    assert sorted([*client.numbers, *member.numbers]) == list(range(6))


def test_new_partitions_are_not_forgotten_when_the_member_that_saw_them_is_refused() -> None:
    harness, client, member = marked_for_a_look()
    group = group_of(harness)
    group.hold("s", replace(group.members["s"].current, state=MemberState.UNKNOWN))
    assert refused(member.send(member_epoch=member.epoch)) is Error.FENCED_MEMBER_EPOCH
    assert group_of(harness).topics_changed
    del client


def test_patterns_are_not_forgotten_when_the_member_whose_turn_it_was_is_refused(harness: GroupHarness) -> None:
    harness.topic("t1")
    member = TestMember(harness, "a", topics=None, pattern="t.*")
    member.join()
    settle(harness, member)
    harness.topic("t2")
    changed(harness, "t2")
    group = group_of(harness)
    group.hold("a", replace(group.members["a"].current, state=MemberState.UNKNOWN))
    assert refused(member.send(member_epoch=member.epoch)) is Error.FENCED_MEMBER_EPOCH
    assert group.new_topics
    member.join()
    assert len(member.told) == 2
