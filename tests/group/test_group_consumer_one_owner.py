"""No partition has two owners while a group changes its protocol in the middle of something else."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.classic import ClassicGroup
from group.classic_clients import ClassicClient, error_of
from group.consumer_members import GROUP, TestMember, group_of
from group.group_harness import GroupHarness
from group.test_group_consumer_migration import joined, new_harness, run

ALL: dict[str, list[int]] = {"t": [0, 1, 2, 3]}


def replaced_before_others_have_given_up(harness: GroupHarness) -> tuple[ClassicClient, ClassicClient]:
    """One has everything, and the other, that shall have half of it, comes back with the classic protocol."""
    first = joined(harness)
    assert first.numbers == ALL["t"]
    TestMember(harness, "s", instance_id="i").join()
    second = ClassicClient(harness, instance_id="i")
    second.step()
    return first, second


def test_a_group_that_goes_back_before_all_have_what_they_shall_have_rebalances() -> None:
    harness = new_harness()
    first, second = replaced_before_others_have_given_up(harness)
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)
    for _ in range(3):
        second.step()
        assert not first.owned & second.owned
    run(harness, first, second)
    assert sorted([first.numbers, second.numbers]) == [[0, 2], [1, 3]]


def test_what_members_had_is_known_when_the_group_goes_back_and_forth() -> None:
    harness = new_harness()
    first, second = replaced_before_others_have_given_up(harness)
    newcomer = TestMember(harness, "k")
    newcomer.join()
    for _ in range(4):
        second.step()
        newcomer.settle()
        assert not newcomer.owned & first.owned
    run(harness, first, second, newcomer)
    assert sorted(len(each.numbers) for each in (first, second, newcomer)) == [1, 1, 2]


def aborted_generation(harness: GroupHarness) -> ClassicClient:
    """A member that reads on while it joins again, in a group whose newest generation came to nothing."""
    first = joined(harness)
    ClassicClient(harness).step()
    first.send_join(ALL)
    assert harness.state.groups[GROUP].state_name == "CompletingRebalance"
    ClassicClient(harness).step()
    assert harness.state.groups[GROUP].state_name == "PreparingRebalance"
    return first


def test_what_members_say_they_have_counts_when_a_generation_came_to_nothing() -> None:
    harness = new_harness()
    first = aborted_generation(harness)
    newcomer = TestMember(harness, "k")
    newcomer.join()
    assert newcomer.numbers == []
    held = group_of(harness).members[first.id].current.assigned
    assert {(topic_id, each) for topic_id, partitions in held.items() for each in partitions} == first.owned
    run(harness, first, newcomer, rounds=20)
    assert [len(first.numbers), len(newcomer.numbers)] == [2, 2]
    assert not first.owned & newcomer.owned


def test_what_was_assigned_counts_more_than_what_a_member_had_before() -> None:
    harness = new_harness()
    first, second = joined(harness), ClassicClient(harness)
    second.step()
    first.joining = first.send_join(ALL)
    for _ in range(2):
        second.step()
        first.step()
    assert [first.numbers, second.numbers] == [[0, 2], [1, 3]]
    TestMember(harness, "k").join()
    for client in (first, second):
        held = group_of(harness).members[client.id].current.assigned
        assert {(topic_id, each) for topic_id, partitions in held.items() for each in partitions} == client.owned


def test_whoever_waits_for_a_classic_group_still_does_after_a_refused_upgrade() -> None:
    harness = new_harness()
    first, second = joined(harness), ClassicClient(harness)
    second.step()
    assert second.joining is not None
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "k", topics=None, pattern="(").join()
    assert refusal.value.error is Error.INVALID_REGULAR_EXPRESSION
    assert second.joining.waits
    first.step()
    assert error_of(second.joining.answers[0]) is Error.NONE
