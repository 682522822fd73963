"""The ways out of a consumer group, and static members, who come back."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.consumer.leaving import RETRY_MS
from group.consumer_members import TestMember, group_of, refused, settle
from group.group_harness import GroupHarness

SESSION_MS = 45_000


@pytest.fixture
def harness() -> GroupHarness:
    harness = GroupHarness()
    harness.topic("t", 4)
    return harness


def two_members(harness: GroupHarness) -> tuple[TestMember, TestMember]:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    settle(harness, first, second)
    return first, second


def test_what_a_member_had_that_left_is_given_to_the_others(harness: GroupHarness) -> None:
    first, second = two_members(harness)
    first.leave()
    assert group_of(harness).state_name == "Assigning"
    second.settle()
    assert second.numbers == [0, 1, 2, 3]


def test_a_group_without_members_is_empty_and_can_be_deleted(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    with pytest.raises(Refused) as refusal:
        group_of(harness).check_delete()
    assert refusal.value.error is Error.NON_EMPTY_GROUP
    member.leave()
    group = group_of(harness)
    assert (group.state_name, group.is_empty, group.targets) == ("Empty", True, {})
    group.check_delete()
    for record in group.tombstones():
        harness.machine.apply(record)
    assert not harness.state.groups


def test_who_is_not_a_member_can_not_leave(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    assert refused(TestMember(harness, "b").send(member_epoch=-1)) is Error.UNKNOWN_MEMBER_ID
    assert refused(TestMember(harness, "b", instance_id="i").send(member_epoch=-1)) is Error.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_removed(harness: GroupHarness) -> None:
    first, second = two_members(harness)
    for _ in range(9):
        harness.advance(SESSION_MS // 9)
        second.settle()
    assert list(group_of(harness).members) == ["b"]
    assert refused(first.send(member_epoch=first.epoch)) is Error.UNKNOWN_MEMBER_ID
    settle(harness, second)
    assert second.numbers == [0, 1, 2, 3]


def wait_for_session(harness: GroupHarness, other: TestMember) -> None:
    """Let a session's time pass, in which all are silent but one."""
    for _ in range(9):
        harness.advance(SESSION_MS // 9)
        other.settle()


def test_a_silent_member_is_removed_as_soon_as_that_can_be_written(harness: GroupHarness) -> None:
    _, second = two_members(harness)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    wait_for_session(harness, second)
    assert list(group_of(harness).members) == ["a", "b"]
    harness.advance(RETRY_MS)
    assert list(group_of(harness).members) == ["b"]


def test_a_silent_member_that_could_not_be_removed_may_speak_again(harness: GroupHarness) -> None:
    first, second = two_members(harness)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    wait_for_session(harness, second)
    first.settle()
    harness.advance(RETRY_MS)
    assert list(group_of(harness).members) == ["a", "b"]


def test_who_could_not_leave_is_missed_when_its_session_is_over(harness: GroupHarness) -> None:
    first, second = two_members(harness)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    assert refused(first.send(member_epoch=-1)) is Error.COORDINATOR_NOT_AVAILABLE
    wait_for_session(harness, second)
    assert list(group_of(harness).members) == ["b"]


def test_a_slow_member_is_removed_as_soon_as_that_can_be_written(harness: GroupHarness) -> None:
    slow, other = TestMember(harness, "a", rebalance_timeout_ms=10_000), TestMember(harness, "b")
    slow.join()
    other.join()
    harness.advance(1000)
    slow.beat()
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    harness.advance(10_000)
    assert "a" in group_of(harness).members
    slow.beat()
    harness.advance(RETRY_MS)
    assert list(group_of(harness).members) == ["b"], "that it speaks does not help it"


def test_a_member_that_does_not_give_up_in_time_is_removed(harness: GroupHarness) -> None:
    slow, other = TestMember(harness, "a", rebalance_timeout_ms=10_000), TestMember(harness, "b")
    slow.join()
    other.join()
    harness.advance(1000)
    slow.beat()
    assert slow.owned != slow.told
    harness.advance(9999)
    slow.beat()
    assert "a" in group_of(harness).members
    harness.advance(1)
    assert "a" not in group_of(harness).members
    other.settle()
    assert other.numbers == [0, 1, 2, 3]
    assert refused(slow.send(member_epoch=slow.epoch)) is Error.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_up_in_time_stays(harness: GroupHarness) -> None:
    slow, other = TestMember(harness, "a", rebalance_timeout_ms=10_000), TestMember(harness, "b")
    slow.join()
    other.join()
    harness.advance(1000)
    slow.settle()
    harness.advance(10_000)
    assert "a" in group_of(harness).members


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions(harness: GroupHarness) -> None:
    static, other = TestMember(harness, "a", instance_id="i"), TestMember(harness, "b")
    static.join()
    other.join()
    settle(harness, static, other)
    before, epoch = static.numbers, static.epoch
    static.leave(-2)
    harness.advance(5000)
    other.settle()
    assert (other.epoch, len(other.numbers)) == (epoch, 2)
    assert refused(static.send(member_epoch=epoch)) is Error.FENCED_MEMBER_EPOCH
    back = TestMember(harness, "a2", instance_id="i")
    back.join()
    assert (back.epoch, back.numbers) == (epoch, before)
    assert refused(static.send(member_epoch=epoch)) is Error.FENCED_INSTANCE_ID
    assert refused(static.send(member_epoch=-1)) is Error.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_removed(harness: GroupHarness) -> None:
    static = TestMember(harness, "a", instance_id="i")
    static.join()
    harness.advance(SESSION_MS - 1000)
    static.leave(-2)
    harness.advance(999)
    assert group_of(harness).members
    harness.advance(1)
    assert not group_of(harness).members


def test_the_deadline_of_a_replaced_static_member_does_not_hit_its_successor(harness: GroupHarness) -> None:
    static = TestMember(harness, "a", instance_id="i")
    static.join()
    static.leave(-2)
    harness.advance(SESSION_MS - 1)
    back = TestMember(harness, "b", instance_id="i")
    back.join()
    harness.advance(SESSION_MS - 1)
    assert list(group_of(harness).members) == ["b"]
    assert back.beat().member_epoch == 2


@pytest.mark.parametrize("member_id", ["a", "b"])
def test_an_instance_id_in_use_is_not_given_away(harness: GroupHarness, member_id: str) -> None:
    TestMember(harness, "a", instance_id="i").join()
    with pytest.raises(Refused) as refusal:
        TestMember(harness, member_id, instance_id="i").join()
    assert refusal.value.error is Error.UNRELEASED_INSTANCE_ID


def test_a_static_member_can_leave_for_good(harness: GroupHarness) -> None:
    static = TestMember(harness, "a", instance_id="i")
    static.join()
    static.leave(-1)
    assert not group_of(harness).members
    assert not group_of(harness).static_members
    TestMember(harness, "b", instance_id="i").join()


def test_a_static_member_may_come_back_under_the_same_id(harness: GroupHarness) -> None:
    static = TestMember(harness, "a", instance_id="i")
    static.join()
    static.leave(-2)
    static.join()
    assert (static.epoch, static.numbers) == (2, [0, 1, 2, 3])


def test_a_static_member_that_left_while_it_gave_up_gets_its_target_when_it_is_back(harness: GroupHarness) -> None:
    static, other = TestMember(harness, "a", instance_id="i", rebalance_timeout_ms=2000), TestMember(harness, "b")
    static.join()
    other.join()
    harness.advance(1000)
    static.beat()
    static.leave(-2)
    harness.advance(5000)
    other.beat()
    assert len(other.numbers) == 2, "what it was giving up is free"
    back = TestMember(harness, "a2", instance_id="i")
    back.join()
    assert (back.epoch, len(back.numbers)) == (3, 2)
    assert not back.owned & other.owned
