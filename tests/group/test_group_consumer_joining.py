"""Joining and staying in a consumer group: epochs, first assignments, the time between two of them."""

import pytest

from cordwood.errors import Error, Refused
from group.consumer_members import TestMember, group_of, refused, settle, topics
from group.group_harness import GroupHarness


@pytest.fixture
def harness() -> GroupHarness:
    harness = GroupHarness()
    harness.topic("t", 4)
    return harness


def test_the_first_member_gets_everything_at_once_at_epoch_2(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    answer = member.join()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
    assert member.numbers == [0, 1, 2, 3]
    assert group_of(harness).state_name == "Stable"


def test_a_second_member_waits_for_the_assignment_interval(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    assert second.join().member_epoch == 2
    assert (second.numbers, group_of(harness).state_name) == ([], "Assigning")
    harness.advance(999)
    assert second.beat().member_epoch == 2
    harness.advance(1)
    assert second.beat().member_epoch == 3
    assert (second.numbers, group_of(harness).state_name) == ([], "Reconciling")


def test_whoever_waits_reports_more_often(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    assert first.join().heartbeat_interval_ms == 5000
    assert second.join().heartbeat_interval_ms == 500, "the next assignment is still to be made"
    harness.advance(1000)
    assert second.beat().heartbeat_interval_ms == 500, "what it shall have is not free"
    first.settle()
    assert second.beat().heartbeat_interval_ms == 5000
    assert first.beat().heartbeat_interval_ms == 5000
    assert (len(first.numbers), len(second.numbers)) == (2, 2)


def test_without_an_assignment_interval_nobody_waits() -> None:
    harness = GroupHarness(group_consumer_assignment_interval_ms=0)
    harness.topic("t", 4)
    TestMember(harness, "a").join()
    assert TestMember(harness, "b").join().member_epoch == 3


def test_four_partitions_and_two_members_are_two_each(harness: GroupHarness) -> None:
    members = [TestMember(harness, name) for name in "ab"]
    for member in members:
        member.join()
    settle(harness, *members)
    assert [len(member.numbers) for member in members] == [2, 2]
    assert sorted(members[0].numbers + members[1].numbers) == [0, 1, 2, 3]


def test_of_five_members_on_four_partitions_one_is_idle_and_takes_over(harness: GroupHarness) -> None:
    members = [TestMember(harness, name) for name in "abcde"]
    for member in members:
        member.join()
    settle(harness, *members)
    assert sorted(len(member.numbers) for member in members) == [0, 1, 1, 1, 1]
    silent = next(member for member in members if member.numbers)
    others = [member for member in members if member is not silent]
    settle(harness, *others, rounds=10)
    assert [len(member.numbers) for member in others] == [1, 1, 1, 1]


def test_nobody_is_given_a_partition_before_its_owner_has_given_it_up(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    harness.advance(1000)
    first.beat()
    assert (first.epoch, len(first.numbers), len(first.owned)) == (2, 2, 4)
    second.beat()
    assert (second.epoch, second.numbers) == (3, [])
    first.beat()  # it has them still
    second.beat()
    assert (first.epoch, second.numbers) == (2, [])
    first.give_up()
    first.beat()
    second.beat()
    assert (first.epoch, len(second.numbers)) == (3, 2)
    assert not first.owned & second.owned


def test_a_heartbeat_that_says_nothing_is_told_nothing(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    stored = len(harness.stored)
    assert member.beat(say_owned=False).assignment is None
    assert len(harness.stored) == stored


def test_whoever_says_everything_hears_everything(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    assert member.beat(say_owned=True, **member.said()).assignment is not None


def test_the_broker_gives_ids_in_version_0_alone(harness: GroupHarness) -> None:
    member = TestMember(harness, "", version=0)
    assert member.join().member_id
    assert len(member.id) == 22
    assert refused(TestMember(harness, "").send(member_epoch=0)) is Error.INVALID_REQUEST


def test_an_unknown_member_is_told_so(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    assert refused(TestMember(harness, "b").send(member_epoch=2)) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_a_group_that_is_not_there_is_not_found(harness: GroupHarness, epoch: int) -> None:
    member = TestMember(harness, "a", instance_id="i")
    assert refused(member.send(member_epoch=epoch)) is Error.GROUP_ID_NOT_FOUND


def test_a_full_group_takes_nobody_else() -> None:
    harness = GroupHarness(group_consumer_max_size=1)
    harness.topic("t", 4)
    member = TestMember(harness, "a")
    member.join()
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "b").join()
    assert refusal.value.error is Error.GROUP_MAX_SIZE_REACHED
    assert member.join().member_epoch == 2


def test_an_epoch_from_the_future_is_fenced(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    assert refused(TestMember(harness, "a").send(member_epoch=3)) is Error.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_good_if_the_answer_with_the_new_one_was_lost(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    harness.advance(1000)
    assert second.beat().member_epoch == 3
    second.epoch = 2
    assert refused(second.send(member_epoch=2)) is Error.FENCED_MEMBER_EPOCH
    assert second.beat().member_epoch == 3


def test_the_previous_epoch_is_no_good_with_partitions_that_were_given_up_since(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    before = topics(first.owned)
    second.join()
    harness.advance(1000)
    first.settle()
    assert first.epoch == 3
    assert refused(first.send(member_epoch=2, topic_partitions=before)) is Error.FENCED_MEMBER_EPOCH


def test_a_group_can_have_settings_of_its_own(harness: GroupHarness) -> None:
    harness.image.group_configs["g"] = {
        "consumer.heartbeat.interval.ms": "7000",
        "consumer.session.timeout.ms": "50000",
        "consumer.assignment.interval.ms": "0",
    }
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    assert first.join().heartbeat_interval_ms == 7000
    assert second.join().member_epoch == 3
    harness.advance(49_999)
    assert len(group_of(harness).members) == 2
    harness.advance(1)
    assert group_of(harness).is_empty


def test_the_epoch_before_the_previous_one_is_fenced(harness: GroupHarness) -> None:
    members = [TestMember(harness, name) for name in "abc"]
    for member in members:
        member.join()
        harness.advance(1000)
        members[0].settle()
    assert members[0].epoch == 4
    assert refused(members[0].send(member_epoch=2, topic_partitions=[])) is Error.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_with_what_was_its_own(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    assert member.join().member_epoch == 2
    assert member.numbers == [0, 1, 2, 3]


def test_a_new_subscription_is_a_new_epoch(harness: GroupHarness) -> None:
    harness.topic("u", 2)
    member = TestMember(harness, "a")
    member.join()
    harness.advance(1000)
    assert member.beat(subscribed_topic_names=["t", "u"]).member_epoch == 3
    assert len(member.told) == 6


def test_what_is_not_subscribed_to_any_more_is_given_up_before_the_next_assignment(harness: GroupHarness) -> None:
    harness.topic("u", 2)
    member = TestMember(harness, "a", topics=["t", "u"])
    member.join()
    member.beat(subscribed_topic_names=["u"])
    assert (member.epoch, len(member.told), len(member.owned)) == (2, 2, 6)
    assert group_of(harness).state_name == "Assigning"


def test_the_assignor_that_most_ask_for_is_used(harness: GroupHarness) -> None:
    members = [TestMember(harness, name, assignor="range" if name < "c" else "uniform") for name in "abc"]
    for member in members:
        member.join()
    asked = group_of(harness).subscriptions
    assert asked.preferred_assignor(["uniform", "range"]) == "range"
    assert asked.preferred_assignor(["uniform"]) == "uniform"
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "d", assignor="mine").join()
    assert refusal.value.error is Error.UNSUPPORTED_ASSIGNOR


def test_a_member_of_topics_that_do_not_exist_waits_for_them(harness: GroupHarness) -> None:
    member = TestMember(harness, "a", topics=["later"])
    member.join()
    assert (member.epoch, member.numbers, group_of(harness).state_name) == (2, [], "Stable")


def test_a_member_that_is_too_much_for_a_record_is_told_so_and_not_in_the_group(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    harness.fail_next_write(Refused(Error.RECORD_LIST_TOO_LARGE))
    with pytest.raises(Refused) as refusal:
        member.join()
    assert refusal.value.error is Error.UNKNOWN_SERVER_ERROR
    assert not harness.state.groups
    member.join()
