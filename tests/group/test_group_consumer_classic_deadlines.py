"""Deadlines of classic members in consumer groups end with their reason, and with the group."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.classic import ClassicGroup
from cordwood.group.timers import ClassicJoin, ClassicSync, RebalanceTimeout, SessionTimeout
from cordwood.wire.messages import JoinGroupResponse
from group.consumer_members import GROUP, TestMember, group_of
from group.group_harness import GroupHarness
from group.test_group_consumer_migration import joined, new_harness

OF_CONSUMER_GROUPS = (ClassicJoin, ClassicSync, RebalanceTimeout, SessionTimeout)


def deadlines_left(harness: GroupHarness) -> list[object]:
    return [key for key in harness.state.deadlines if isinstance(key, OF_CONSUMER_GROUPS)]


def test_the_time_to_join_again_begins_anew_in_a_group_that_was_classic_meanwhile() -> None:
    harness = new_harness()
    client = joined(harness)
    newcomer = TestMember(harness, "k")
    newcomer.join()
    assert client.beat() is Error.REBALANCE_IN_PROGRESS
    newcomer.leave()
    assert not deadlines_left(harness)
    for _ in range(6):
        harness.advance(3000)
        client.step()
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)
    newcomer = TestMember(harness, "k2")
    newcomer.join()
    for _ in range(4):
        assert client.beat() is Error.REBALANCE_IN_PROGRESS
        harness.advance(1000)
        newcomer.settle()
    assert client.id in group_of(harness).members


def test_the_time_to_sync_ends_with_the_consumer_group() -> None:
    harness = new_harness()
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    client.generation = client.send_join().take(JoinGroupResponse).generation_id
    assert ClassicSync(GROUP, client.id) in harness.state.deadlines
    newcomer.leave()
    assert not deadlines_left(harness)


def test_who_has_no_step_to_take_any_more_need_not_join_again() -> None:
    harness = new_harness("upgrade")
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    assert client.beat() is Error.REBALANCE_IN_PROGRESS
    assert ClassicJoin(GROUP, client.id) in harness.state.deadlines
    client.step()
    assert client.beat() is Error.NONE
    harness.state.deadlines.set(ClassicJoin(GROUP, client.id), harness.now.mono_ms + 1000)
    assert client.beat() is Error.NONE
    assert ClassicJoin(GROUP, client.id) not in harness.state.deadlines


def test_members_are_still_missed_after_a_downgrade_that_could_not_be_written() -> None:
    harness = new_harness()
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    assert isinstance(newcomer.send(member_epoch=-1), Refused)
    sessions = {key for key in deadlines_left(harness) if isinstance(key, SessionTimeout)}
    assert sessions == {SessionTimeout(GROUP, client.id), SessionTimeout(GROUP, "k")}
    harness.advance(10_000)
    assert list(group_of(harness).members) == ["k"]


def test_a_refused_step_changes_no_deadline() -> None:
    harness = GroupHarness()
    harness.topic("t", 4)
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    harness.advance(5000)
    first.beat()
    due_ms = harness.state.deadlines.get(RebalanceTimeout(GROUP, "a"))
    assert due_ms is not None
    first.give_up()
    harness.config = type(harness.config).parse({"cordwood.max.groups.bytes": "1"})
    with pytest.raises(Refused):
        first.beat(subscribed_topic_names=["t", "u" * 1000])
    assert harness.state.deadlines.get(RebalanceTimeout(GROUP, "a")) == due_ms
