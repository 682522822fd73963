"""Static members (KIP-345): who comes back, who is fenced, and who must rebalance for it."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.classic import State
from cordwood.group.timers import JoinPhase
from cordwood.wire.messages import JoinGroupResponse, SyncGroupResponse
from group.classic_driver import DELAY_MS, GROUP, RANGE, REBALANCE_MS, SESSION_MS, ClassicDriver

BOTH = {"range": b"topics", "other": b""}


def _stable(driver: ClassicDriver, protocols: dict[str, bytes] = RANGE) -> list[str]:
    """Static members ``a`` and ``b``, of whom the first leads."""
    askers = [driver.join(instance=instance, protocols=protocols) for instance in "ab"]
    driver.advance(2 * DELAY_MS)
    members = [asker.take(JoinGroupResponse).member_id for asker in askers]
    driver.assign(members, generation=1)
    return members


def _back(driver: ClassicDriver, instance: str, version: int = 9) -> JoinGroupResponse:
    return driver.join(instance=instance, version=version).take(JoinGroupResponse)


def test_a_static_member_needs_no_second_call() -> None:
    driver = ClassicDriver()
    assert driver.join(instance="a").waits
    assert driver.members[0].startswith("a-")


def test_a_follower_that_comes_back_disturbs_nobody() -> None:
    driver = ClassicDriver()
    leader, follower = _stable(driver)
    back = _back(driver, "b")
    assert (back.error_code, back.generation_id, back.leader, back.members) == (0, 1, leader, [])
    assert back.member_id.startswith("b-")
    assert back.member_id != follower
    assert driver.in_state is State.STABLE
    assert driver.sync(back.member_id, 1).take(SyncGroupResponse).assignment == f"of {follower}".encode()
    assert driver.beat(leader, 1, "a") == Error.NONE


def test_a_leader_that_comes_back_leads_and_need_not_assign() -> None:
    driver = ClassicDriver()
    _, follower = _stable(driver)
    back = _back(driver, "a")
    assert back.skip_assignment
    assert back.leader == back.member_id
    assert [member.member_id for member in back.members] == [back.member_id, follower]


def test_an_old_client_that_led_and_comes_back_hears_of_its_former_self_as_the_leader() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    back = _back(driver, "a", version=8)
    assert (back.leader, back.members, back.skip_assignment) == (leader, [], False)
    assert driver.group.roster.leader == back.member_id


def test_the_former_self_is_fenced() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    _back(driver, "a")
    assert driver.beat(leader, 1, "a") == Error.FENCED_INSTANCE_ID
    assert driver.beat(leader, 1) == Error.UNKNOWN_MEMBER_ID
    assert driver.sync(leader, 1, instance="a").take(SyncGroupResponse).error_code == Error.FENCED_INSTANCE_ID
    assert driver.refused(driver.join(leader, instance="a")) == Error.FENCED_INSTANCE_ID
    assert driver.leave((leader, "a")) == [Error.FENCED_INSTANCE_ID]
    with pytest.raises(Refused) as caught:
        driver.group.check_commit(leader, "a", 1, transactional=False, api_version=9)
    assert caught.value.error == Error.FENCED_INSTANCE_ID


def test_an_instance_that_nobody_has_is_unknown() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    assert driver.beat(leader, 1, "zz") == Error.UNKNOWN_MEMBER_ID
    assert driver.leave((leader, "zz")) == [Error.UNKNOWN_MEMBER_ID]


def test_a_reload_knows_who_came_back() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    back = driver.join(instance="b", protocols={"range": b"changed"}).take(JoinGroupResponse)
    driver.reload()
    assert driver.members == [leader, back.member_id]
    assert driver.group.roster.members[back.member_id].metadata("range") == b"changed"


def test_a_write_that_fails_leaves_the_former_self_in_place() -> None:
    driver = ClassicDriver()
    leader, follower = _stable(driver, BOTH)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    refusal = driver.join(instance="a", protocols=RANGE).take(JoinGroupResponse)
    assert (refusal.error_code, refusal.member_id) == (Error.COORDINATOR_NOT_AVAILABLE, "")
    assert (refusal.generation_id, refusal.leader) == (1, leader)
    assert driver.members == [leader, follower]
    assert driver.group.roster.members[leader].protocols == BOTH
    assert driver.beat(leader, 1, "a") == Error.NONE
    driver.advance(SESSION_MS)
    assert driver.in_state is State.EMPTY


def test_a_return_that_changes_the_protocol_makes_the_group_rebalance() -> None:
    driver = ClassicDriver()
    _stable(driver, BOTH)
    assert driver.join(instance="b", protocols={"other": b""}).waits
    assert driver.in_state is State.PREPARING


def test_a_return_while_the_leader_assigns_begins_anew() -> None:
    driver = ClassicDriver()
    askers = [driver.join(instance=instance) for instance in "ab"]
    driver.advance(2 * DELAY_MS)
    _, follower = (asker.take(JoinGroupResponse).member_id for asker in askers)
    parked = driver.sync(follower, 1, instance="b")
    assert driver.join(instance="b").waits
    assert parked.take(SyncGroupResponse).error_code == Error.FENCED_INSTANCE_ID
    assert driver.in_state is State.PREPARING


def test_a_parked_join_is_fenced_by_the_next_of_its_instance() -> None:
    driver = ClassicDriver()
    first = driver.join(instance="a")
    former = driver.members[0]
    second = driver.join(instance="a")
    fenced = first.take(JoinGroupResponse)
    assert (fenced.error_code, fenced.member_id) == (Error.FENCED_INSTANCE_ID, former)
    driver.advance(DELAY_MS)
    assert second.take(JoinGroupResponse).generation_id == 1
    assert len(driver.members) == 1


def test_a_return_during_a_rebalance_counts_as_having_joined() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    asker = driver.join(leader, instance="a")
    assert asker.waits
    assert _back(driver, "b").generation_id == 2
    assert not asker.waits


def test_static_members_are_awaited_beyond_the_join_phase() -> None:
    driver = ClassicDriver()
    askers = [driver.join(instance=instance, rebalance_ms=7000) for instance in "ab"]
    driver.advance(2 * DELAY_MS)
    leader, follower = (asker.take(JoinGroupResponse).member_id for asker in askers)
    driver.assign([leader, follower], generation=1)
    driver.beat(follower, 1, "b")
    again = driver.join(follower, instance="b", protocols={"range": b"new"}, rebalance_ms=7000)
    driver.advance(7000)
    assert driver.members == [leader, follower]
    assert again.take(JoinGroupResponse).leader == follower, "the leader must be one who has joined"
    assert len(again.take(JoinGroupResponse).members) == 2


def test_if_only_absent_static_members_are_left_the_group_waits_for_their_sessions() -> None:
    driver = ClassicDriver()
    asker = driver.join(instance="a", session_ms=30_000, rebalance_ms=7000)
    driver.advance(DELAY_MS)
    leader = asker.take(JoinGroupResponse).member_id
    driver.assign([leader], generation=1)
    _, late = driver.enter(rebalance_ms=7000)
    other = driver.members[1]
    driver.leave(other)
    assert driver.refused(late) == Error.UNKNOWN_MEMBER_ID
    driver.advance(20_000)
    assert JoinPhase(GROUP) in driver.state.deadlines
    assert driver.members == [leader]
    driver.advance(10_000)
    assert driver.in_state is State.EMPTY


def test_an_administrator_removes_a_member_by_its_instance() -> None:
    driver = ClassicDriver()
    leader, _ = _stable(driver)
    assert driver.leave(("", "b"), ("", "nobody")) == [Error.NONE, Error.UNKNOWN_MEMBER_ID]
    assert driver.members == [leader]
    assert driver.in_state is State.PREPARING


def test_static_members_are_not_awaited_beyond_the_sync_phase() -> None:
    driver = ClassicDriver()
    askers = [driver.join(instance=instance, session_ms=600_000) for instance in "ab"]
    driver.advance(2 * DELAY_MS)
    leader, follower = (asker.take(JoinGroupResponse).member_id for asker in askers)
    driver.sync(leader, 1, {leader: b"all"}, instance="a")
    driver.advance(REBALANCE_MS)
    assert driver.members == [leader]
    assert driver.beat(follower, 1, "b") == Error.UNKNOWN_MEMBER_ID
    assert driver.beat(leader, 1, "a") == Error.REBALANCE_IN_PROGRESS


def test_a_return_that_asked_for_its_assignment_is_not_missed() -> None:
    """Kafka goes on waiting for the id that it had before, and rebalances when nobody of that name has asked."""
    driver = ClassicDriver()
    askers = [driver.join(instance=instance, session_ms=600_000) for instance in "ab"]
    driver.advance(2 * DELAY_MS)
    leader, _ = (asker.take(JoinGroupResponse).member_id for asker in askers)
    driver.sync(leader, 1, {leader: b"all"}, instance="a")
    back = driver.join(instance="b", session_ms=600_000).take(JoinGroupResponse)
    driver.sync(back.member_id, 1, instance="b")
    driver.advance(REBALANCE_MS)
    assert driver.in_state is State.STABLE, "all have asked, so nobody is missed"


def test_instances_of_one_name_take_turns() -> None:
    driver = ClassicDriver()
    _stable(driver)
    seen = {_back(driver, "b").member_id for _ in range(5)}
    assert len(seen) == 5
    assert len(driver.members) == 2
