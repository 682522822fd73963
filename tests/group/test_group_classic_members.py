"""Heartbeat and LeaveGroup: how members stay and go."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group import classic
from cordwood.group.classic import State
from cordwood.wire.messages import (
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from group.classic_driver import DELAY_MS, GROUP, SESSION_MS, ClassicDriver

# ---------------------------------------------------------------------- heartbeats


def test_heartbeats_keep_a_member() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        assert driver.beat(member, 1) == Error.NONE
    driver.advance(SESSION_MS)
    assert driver.beat(member, 1) == Error.UNKNOWN_MEMBER_ID
    assert driver.in_state is State.EMPTY


def test_a_heartbeat_names_its_generation_and_its_member() -> None:
    driver = ClassicDriver()
    assert driver.beat("x", 1) == Error.UNKNOWN_MEMBER_ID
    assert driver.beat("x", 1, group_id="") == Error.INVALID_GROUP_ID
    (member,) = driver.stable(1)
    assert driver.beat("x", 1) == Error.UNKNOWN_MEMBER_ID
    assert driver.beat(member, 0) == driver.beat(member, 2) == Error.ILLEGAL_GENERATION
    assert driver.beat(driver.new_id(), 1) == Error.UNKNOWN_MEMBER_ID


def test_heartbeats_in_each_state() -> None:
    driver = ClassicDriver()
    (member,) = driver.completing(1)
    assert driver.beat(member, 1) == Error.NONE
    driver.assign([member], generation=1)
    assert driver.beat(member, 1) == Error.NONE
    driver.enter()
    assert driver.beat(member, 1) == Error.REBALANCE_IN_PROGRESS


def test_a_member_that_is_silent_makes_the_others_rebalance() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.advance(SESSION_MS - 1)
    assert driver.beat(follower, 1) == Error.NONE
    driver.advance(1)
    assert driver.members == [follower]
    assert driver.beat(follower, 1) == Error.REBALANCE_IN_PROGRESS
    response = driver.join(follower).take(JoinGroupResponse)
    assert (response.generation_id, response.leader) == (2, follower)
    assert driver.beat(leader, 2) == Error.UNKNOWN_MEMBER_ID


def test_a_silent_member_holds_up_a_rebalance_no_longer_than_its_session() -> None:
    driver = ClassicDriver()
    leader, _ = driver.stable(2)
    asker = driver.join(leader)
    driver.advance(SESSION_MS)
    assert asker.take(JoinGroupResponse).generation_id == 2


def test_a_silent_leader_ends_the_sync_phase() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    waiting = driver.sync(follower, 1)
    driver.advance(SESSION_MS)
    assert waiting.take(SyncGroupResponse).error_code == Error.REBALANCE_IN_PROGRESS
    assert leader not in driver.members


# ---------------------------------------------------------------------- leaving


def test_who_leaves_is_gone_and_the_others_rebalance() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    assert driver.leave(leader) == [Error.NONE]
    assert driver.in_state is State.PREPARING
    assert driver.join(follower).take(JoinGroupResponse).leader == follower


def test_the_last_to_leave_empties_the_group() -> None:
    driver = ClassicDriver()
    members = driver.stable(3)
    assert driver.leave(*members) == [Error.NONE] * 3
    assert (driver.in_state, driver.group.generation) == (State.EMPTY, 2)
    assert driver.group.protocol_type == "consumer"
    assert not [key for key in driver.state.deadlines if getattr(key, "group_id", None) == GROUP]


def test_each_leaver_has_an_answer() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    pending = driver.new_id()
    errors = driver.leave(follower, "stranger", pending, follower, "")
    unknown = Error.UNKNOWN_MEMBER_ID
    assert errors == [Error.NONE, unknown, Error.NONE, unknown, unknown]
    assert driver.members == [leader]
    assert driver.group.pending == {}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_leaves_are_of_one_member_and_have_one_error(version: int) -> None:
    driver = ClassicDriver()
    member, _ = driver.stable(2)
    request = LeaveGroupRequest(group_id=GROUP, member_id=member)
    for error in (Error.NONE, Error.UNKNOWN_MEMBER_ID):
        response = driver.ask(classic.leave, request, version, LeaveGroupResponse)
        assert (response.error_code, response.members) == (error, [])


def test_leaving_a_group_that_is_not_there_is_an_error_of_each_member() -> None:
    driver = ClassicDriver()
    assert driver.leave("a", "b") == [Error.UNKNOWN_MEMBER_ID] * 2
    empty = driver.ask(classic.leave, LeaveGroupRequest(members=[LeaveGroupRequestMember()]), 5, LeaveGroupResponse)
    assert (empty.error_code, empty.members) == (Error.INVALID_GROUP_ID, [])


def test_nobody_leaves_if_nobody_is_named() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    assert driver.leave() == []
    assert driver.in_state is State.STABLE


def test_whoever_leaves_while_it_waits_is_answered() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    syncing = driver.sync(follower, 1)
    driver.leave(follower)
    assert syncing.take(SyncGroupResponse).error_code == Error.UNKNOWN_MEMBER_ID
    driver.leave(leader)
    member, joining = driver.enter()
    driver.leave(member)
    response = joining.take(JoinGroupResponse)
    assert (response.error_code, response.member_id) == (Error.UNKNOWN_MEMBER_ID, "")


def test_a_leave_that_everybody_waited_for_completes_the_rebalance() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    asker = driver.join(leader)
    driver.leave(follower)
    assert asker.take(JoinGroupResponse).generation_id == 2


def test_in_the_first_delay_all_may_leave() -> None:
    driver = ClassicDriver()
    member, _ = driver.enter()
    driver.leave(member)
    assert driver.in_state is State.PREPARING
    driver.advance(DELAY_MS)
    assert (driver.in_state, driver.group.generation) == (State.EMPTY, 1)


def test_a_leave_that_can_not_be_written_is_refused_and_yet_happens() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    driver.fail_next_write(Refused(Error.NOT_COORDINATOR))
    request = LeaveGroupRequest(group_id=GROUP, members=[LeaveGroupRequestMember(member_id=member)])
    assert driver.call(classic.leave, request, 5).take(Refused).error == Error.NOT_COORDINATOR
    assert driver.in_state is State.EMPTY
