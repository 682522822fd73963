"""What is stored of consumer groups, in which order, and what a reload makes of it."""

from uuid import UUID

from cordwood.group import consumer
from cordwood.group.consumer.member import Current, Description, Held
from cordwood.group.stored import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
)
from group.consumer_members import GROUP, TestMember, attributes, group_of, settle
from group.group_harness import GroupHarness

T = UUID(int=1)


def new_harness() -> GroupHarness:
    harness = GroupHarness()
    harness.topic("t", 2)
    return harness


def kinds(harness: GroupHarness, start: int) -> list[tuple[type, bool]]:
    """The kinds of the records from there on, and whether each has a value."""
    found = [harness.machine.decode(key, value) for key, value in harness.stored[start:]]
    return [(type(record.key), record.value is not None) for record in found if record is not None]


def test_the_records_of_a_first_join() -> None:
    harness = new_harness()
    TestMember(harness, "a").join()
    assert kinds(harness, 0) == [
        (ConsumerGroupMemberMetadataKey, True),
        (ConsumerGroupMetadataKey, True),
        (ConsumerGroupTargetAssignmentMemberKey, True),
        (ConsumerGroupTargetAssignmentMetadataKey, True),
        (ConsumerGroupCurrentMemberAssignmentKey, True),
    ]


def test_the_records_of_the_last_leave() -> None:
    harness = new_harness()
    member = TestMember(harness, "a")
    member.join()
    start = len(harness.stored)
    member.leave()
    assert kinds(harness, start) == [
        (ConsumerGroupCurrentMemberAssignmentKey, False),
        (ConsumerGroupTargetAssignmentMemberKey, False),
        (ConsumerGroupMemberMetadataKey, False),
        (ConsumerGroupMetadataKey, True),
    ]


def test_the_time_of_an_assignment_is_stored() -> None:
    harness = new_harness()
    TestMember(harness, "a").join()
    record = harness.machine.decode(*harness.stored[3])
    assert record is not None
    assert record.value == ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=2, assignment_timestamp=harness.now.wall_ms
    )


def test_a_reload_finds_the_group_and_its_deadlines() -> None:
    harness = new_harness()
    members = [TestMember(harness, name) for name in "ab"]
    for member in members:
        member.join()
    settle(harness, *members)
    harness.reload()
    assert members[0].beat().member_epoch == members[0].epoch
    harness.advance(45_000)
    assert group_of(harness).state_name == "Empty"


def test_a_reload_reminds_of_what_must_be_given_up() -> None:
    harness = new_harness()
    slow, other = TestMember(harness, "a", rebalance_timeout_ms=7000), TestMember(harness, "b")
    slow.join()
    other.join()
    harness.advance(1000)
    slow.beat()
    harness.reload()
    harness.advance(6999)
    assert "a" in group_of(harness).members
    harness.advance(1)
    assert "a" not in group_of(harness).members


def test_partitions_without_epochs_are_of_the_members_epoch() -> None:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7, assigned_partitions=[CurrentTopicPartitions(topic_id=T, partitions=[1, 2])]
    )
    assert Current.of_record(value).assigned == {T: {1: 7, 2: 7}}
    value.member_epoch = -2
    assert Current.of_record(value).assigned == {T: {1: 0, 2: 0}}


def test_values_survive_being_stored() -> None:
    held: Held = {T: {3: 1, 1: 2}, UUID(int=9): {0: 5}}
    current = Current(7, 6, assigned=held, revoking={T: {8: 1}})
    assert Current.of_record(current.as_record()) == current
    description = Description("i", "r", "c", "h", frozenset("ab"), "x.*", 5, "range")
    assert Description.of_record(description.as_record()) == description


def test_a_later_record_wins_over_an_earlier_owner() -> None:
    """A log that lost what came between may say that two members have a partition."""
    group = consumer.ConsumerGroup(GROUP)
    group.hold("a", Current(2, 1, assigned={T: {0: 2}}))
    group.hold("b", Current(3, 1, assigned={T: {0: 3}}))
    group.hold("a", Current(3, 2))
    assert group.owners.of(T, 0) == "b"


def test_a_description_tells_what_a_member_has_and_shall_have() -> None:
    harness = new_harness()
    first, second = TestMember(harness, "a"), TestMember(harness, "b", assignor="range")
    first.join()
    second.join()
    harness.advance(1000)
    first.beat()
    group = consumer.describe(harness.state, GROUP)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Reconciling", 3, 3)
    assert group.assignor_name == "range"
    told = {
        member.member_id: (
            [topic.partitions for topic in member.assignment.topic_partitions],
            [topic.partitions for topic in member.target_assignment.topic_partitions],
            member.member_type,
        )
        for member in group.members
    }
    assert told == {"a": ([[0, 1]], [[0]], 1), "b": ([], [[1]], 1)}
    assert group.members[0].assignment.topic_partitions[0].topic_name == "t"
    harness.drop_topic("t")
    assert not consumer.describe(harness.state, GROUP).members[0].assignment.topic_partitions


def test_a_copy_of_a_group_has_all_that_the_group_has() -> None:
    harness = new_harness()
    harness.topic("u", 3)
    members = [TestMember(harness, "a"), TestMember(harness, "b", [], "u"), TestMember(harness, "c", instance_id="i")]
    for member in members:
        member.join()
    settle(harness, *members)
    group = group_of(harness)
    group.topics_changed, group.new_topics, group.patterns_to_refresh = True, True, ["u"]
    other = group.copy()
    assert attributes(other) == attributes(group)
    empty = attributes(consumer.ConsumerGroup(GROUP))
    assert [name for name, value in attributes(group).items() if name != "id" and value == empty[name]] == []
    before = {name: repr(value) for name, value in attributes(group).items()}
    other.describe("a", None)
    other.resolve("u", None)
    other.aim("b", None)
    assert {name: repr(value) for name, value in attributes(group).items()} == before
