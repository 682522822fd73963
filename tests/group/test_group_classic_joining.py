"""JoinGroup: who gets in, when the generation begins, and who is told what."""

import re

import pytest

from cordwood.errors import Error
from cordwood.group import classic
from cordwood.group.classic import State
from cordwood.group.classic.states import FOLLOWING
from cordwood.wire.messages import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from group.classic_driver import DELAY_MS, GROUP, RANGE, REBALANCE_MS, SESSION_MS, ClassicDriver

UUID = "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"


def test_only_transitions_of_the_table_are_possible() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    assert State.EMPTY not in FOLLOWING[State.STABLE]
    with pytest.raises(AssertionError):
        driver.group.move(State.EMPTY, driver.now)


# ---------------------------------------------------------------------- refusals


def test_a_group_without_a_name_is_invalid() -> None:
    assert ClassicDriver().refused(ClassicDriver().join(group_id="")) == Error.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5999, 1_800_001, 0, -1])
def test_session_timeouts_have_limits(session_ms: int) -> None:
    driver = ClassicDriver()
    response = driver.join("me", session_ms=session_ms).take(JoinGroupResponse)
    assert response.error_code == Error.INVALID_SESSION_TIMEOUT
    assert response.member_id == "me"
    assert driver.state.groups == {}


@pytest.mark.parametrize("session_ms", [6000, 1_800_000])
def test_session_timeouts_at_their_limits_are_allowed(session_ms: int) -> None:
    assert ClassicDriver().new_id(session_ms=session_ms)


def test_a_member_id_that_was_not_given_out_is_unknown() -> None:
    driver = ClassicDriver()
    assert driver.refused(driver.join("x")) == Error.UNKNOWN_MEMBER_ID
    assert GROUP not in driver.state.groups
    driver.stable(1)
    assert driver.refused(driver.join("x")) == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", RANGE), ("consumer", {})])
def test_an_empty_group_wants_a_protocol(protocol_type: str, protocols: dict[str, bytes]) -> None:
    driver = ClassicDriver()
    asker = driver.join(protocol_type=protocol_type, protocols=protocols)
    assert driver.refused(asker) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.state.groups == {}
    assert driver.stored == []


def test_a_new_member_must_know_what_all_others_know() -> None:
    driver = ClassicDriver()
    driver.stable(2)
    for protocols, protocol_type in (({"other": b""}, "consumer"), (RANGE, "connect"), ({}, "consumer")):
        asker = driver.join(protocols=protocols, protocol_type=protocol_type)
        assert driver.refused(asker) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.in_state is State.STABLE


def test_an_only_member_can_not_change_to_protocols_that_it_did_not_know() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    assert driver.refused(driver.join(member, protocols={"other": b""})) == Error.INCONSISTENT_GROUP_PROTOCOL


def test_refusals_name_no_protocol() -> None:
    driver = ClassicDriver()
    assert driver.join("x", version=6).take(JoinGroupResponse).protocol_name == ""
    assert driver.join("x", version=7).take(JoinGroupResponse).protocol_name is None


# ---------------------------------------------------------------------- member ids


def test_new_members_are_given_an_id_and_must_come_again() -> None:
    driver = ClassicDriver()
    response = driver.join(version=4, client_id="robin").take(JoinGroupResponse)
    assert response.error_code == Error.MEMBER_ID_REQUIRED
    assert re.fullmatch("robin-" + UUID, response.member_id)
    assert driver.members == []
    assert driver.join(response.member_id, version=4).waits
    assert driver.members == [response.member_id]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_clients_are_in_at_once(version: int) -> None:
    driver = ClassicDriver()
    assert driver.join(version=version).waits
    assert len(driver.members) == 1


def test_in_version_0_the_session_timeout_is_the_rebalance_timeout() -> None:
    driver = ClassicDriver()
    driver.join(version=0, session_ms=7000, rebalance_ms=-1)
    (member,) = driver.group.roster.members.values()
    assert member.rebalance_timeout_ms == 7000


def test_an_id_that_does_not_come_back_is_forgotten() -> None:
    driver = ClassicDriver()
    member_id = driver.new_id(session_ms=SESSION_MS)
    driver.advance(SESSION_MS - 1)
    assert member_id in driver.group.pending
    driver.advance(1)
    assert driver.group.pending == {}
    assert driver.refused(driver.join(member_id)) == Error.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_ids_that_were_given_out() -> None:
    driver = ClassicDriver()
    (leader,) = driver.stable(1)
    late = driver.new_id()
    asker = driver.join(leader)
    assert asker.waits
    assert driver.join(late).take(JoinGroupResponse).generation_id == 2
    assert len(asker.take(JoinGroupResponse).members) == 2


def test_a_rebalance_goes_on_when_an_id_did_not_come_back() -> None:
    driver = ClassicDriver()
    (leader,) = driver.stable(1)
    driver.new_id(session_ms=6000)
    asker = driver.join(leader)
    driver.advance(6000)
    assert asker.take(JoinGroupResponse).generation_id == 2


def test_long_and_foreign_client_names_make_ids_that_can_be_sent() -> None:
    driver = ClassicDriver()
    for name in ("ü" * 16_000, "𝔘" * 8000, "x" * 32_767, ""):
        member_id = driver.join(client_id=name).take(JoinGroupResponse).member_id
        assert len(member_id.encode()) < 2000
        assert re.search(UUID, member_id)


def test_an_id_given_to_a_dynamic_member_is_not_for_a_static_one() -> None:
    driver = ClassicDriver()
    member_id = driver.new_id()
    assert driver.refused(driver.join(member_id, instance="i")) == Error.UNKNOWN_SERVER_ERROR


# ---------------------------------------------------------------------- the first generation


def test_a_new_group_waits_for_more_members() -> None:
    driver = ClassicDriver()
    _, asker = driver.enter()
    driver.advance(DELAY_MS - 1)
    assert asker.waits
    driver.advance(1)
    assert asker.take(JoinGroupResponse).generation_id == 1


def test_the_first_delay_begins_again_while_members_come() -> None:
    driver = ClassicDriver()
    askers = [driver.enter()[1]]
    for _ in range(3):
        driver.advance(DELAY_MS - 1)
        askers.append(driver.enter()[1])
        driver.advance(1)
        assert all(asker.waits for asker in askers)
    driver.advance(DELAY_MS)
    assert not any(asker.waits for asker in askers)


def test_the_first_delay_is_no_longer_than_the_rebalance_timeout() -> None:
    driver = ClassicDriver()
    askers = [driver.enter(rebalance_ms=7000)[1]]
    for _ in range(2):
        driver.advance(DELAY_MS - 1)
        askers.append(driver.enter(rebalance_ms=7000)[1])
        driver.advance(1)
    driver.advance(999)
    assert all(asker.waits for asker in askers)
    driver.enter(rebalance_ms=7000)
    driver.advance(1)
    assert not any(asker.waits for asker in askers)


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    driver = ClassicDriver(group_initial_rebalance_delay_ms=0)
    _, asker = driver.enter()
    driver.advance(0)
    assert asker.take(JoinGroupResponse).generation_id == 1


def test_only_the_leader_is_told_who_is_in_the_group() -> None:
    driver = ClassicDriver()
    (first, one), (second, two) = driver.enter({"range": b"1"}), driver.enter({"range": b"2"})
    driver.advance(2 * DELAY_MS)
    led, followed = one.take(JoinGroupResponse), two.take(JoinGroupResponse)
    assert led.leader == followed.leader == first
    assert [(m.member_id, m.metadata) for m in led.members] == [(first, b"1"), (second, b"2")]
    assert followed.members == []
    assert (followed.member_id, followed.protocol_type, followed.protocol_name) == (second, "consumer", "range")
    assert driver.in_state is State.COMPLETING


def test_a_new_member_whose_call_is_kept_too_long_is_dropped() -> None:
    driver = ClassicDriver()
    (leader,) = driver.stable(1)
    driver.join(leader, rebalance_ms=600_000)
    driver.assign([leader], generation=2)
    late, asker = driver.enter()
    for _ in range(59):
        driver.advance(5000)
        assert driver.beat(leader, 2) == Error.REBALANCE_IN_PROGRESS
    assert asker.waits
    driver.advance(5000)
    assert driver.refused(asker) == Error.UNKNOWN_MEMBER_ID
    assert late not in driver.members


# ---------------------------------------------------------------------- choosing a protocol


def test_most_votes_choose_the_protocol_among_those_that_all_know() -> None:
    driver = ClassicDriver()
    entered = [
        driver.enter({"b": b"", "a": b""}),
        driver.enter({"best": b"", "a": b"", "b": b""}),
        driver.enter({"a": b"", "b": b"", "best": b""}),
    ]
    driver.advance(2 * DELAY_MS)
    assert [asker.take(JoinGroupResponse).protocol_name for _, asker in entered] == ["a", "a", "a"]


def test_a_protocol_named_twice_counts_once() -> None:
    driver = ClassicDriver()
    twice = [JoinGroupRequestProtocol(name="a", metadata=said) for said in (b"1", b"2")]
    request = JoinGroupRequest(group_id=GROUP, session_timeout_ms=SESSION_MS, protocol_type="consumer", protocols=twice)
    asker = driver.call(classic.join, request, 3)
    driver.advance(DELAY_MS)
    assert asker.take(JoinGroupResponse).members[0].metadata == b"1"


# ---------------------------------------------------------------------- joining again


def test_a_new_member_makes_a_stable_group_rebalance() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    new, asker = driver.enter()
    assert driver.in_state is State.PREPARING
    assert driver.beat(leader, 1) == Error.REBALANCE_IN_PROGRESS
    again = [driver.join(leader), driver.join(follower)]
    assert [a.take(JoinGroupResponse).generation_id for a in [asker, *again]] == [2, 2, 2]
    assert driver.group.roster.leader == leader
    assert driver.members == [leader, follower, new]


def test_a_follower_that_says_nothing_new_hears_of_its_generation() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    response = driver.join(follower).take(JoinGroupResponse)
    assert (response.generation_id, response.leader, response.members) == (1, leader, [])
    assert driver.in_state is State.STABLE


def test_a_leader_that_joins_a_stable_group_makes_it_rebalance() -> None:
    driver = ClassicDriver()
    leader, _ = driver.stable(2)
    assert driver.join(leader).waits
    assert driver.in_state is State.PREPARING


def test_a_follower_that_says_something_else_makes_the_group_rebalance() -> None:
    driver = ClassicDriver()
    _, follower = driver.stable(2)
    assert driver.join(follower, protocols={"range": b"other"}).waits
    assert driver.in_state is State.PREPARING


def test_the_order_of_protocols_is_part_of_what_a_member_says() -> None:
    driver = ClassicDriver()
    both = {"range": b"", "other": b""}
    (_, one), (follower, two) = driver.enter(both), driver.enter(both)
    driver.advance(2 * DELAY_MS)
    assert not one.waits
    assert not two.waits
    assert driver.join(follower, protocols={"other": b"", "range": b""}).waits
    assert driver.in_state is State.PREPARING


def test_whoever_missed_the_answer_while_the_leader_assigns_hears_it_again() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    assert len(driver.join(leader).take(JoinGroupResponse).members) == 2
    assert driver.join(follower).take(JoinGroupResponse).generation_id == 1
    assert driver.in_state is State.COMPLETING


def test_something_else_said_while_the_leader_assigns_begins_anew() -> None:
    driver = ClassicDriver()
    _, follower = driver.completing(2)
    assert driver.join(follower, protocols={"range": b"other"}).waits
    assert driver.in_state is State.PREPARING


def test_a_parked_call_is_answered_when_its_member_joins_again() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    first = driver.join(leader)
    second = driver.join(leader)
    assert driver.refused(first) == Error.REBALANCE_IN_PROGRESS
    assert second.waits
    driver.join(follower)
    assert second.take(JoinGroupResponse).generation_id == 2


# ---------------------------------------------------------------------- time


def test_who_does_not_join_again_in_time_is_dropped() -> None:
    driver = ClassicDriver()
    leader, follower, other = driver.stable(3)
    asker = driver.join(follower, protocols={"range": b"other"})
    for _ in range(REBALANCE_MS // 5000 - 1):
        driver.advance(5000)
        assert driver.beat(leader, 1) == driver.beat(other, 1) == Error.REBALANCE_IN_PROGRESS
    assert asker.waits
    driver.advance(5000)
    response = asker.take(JoinGroupResponse)
    assert (response.generation_id, response.leader) == (2, follower)
    assert driver.members == [follower]
    assert driver.beat(leader, 2) == Error.UNKNOWN_MEMBER_ID


def test_the_most_patient_member_sets_the_rebalance_timeout() -> None:
    driver = ClassicDriver()
    driver.enter(rebalance_ms=7000)
    driver.enter(rebalance_ms=90_000)
    assert driver.group.roster.rebalance_timeout_ms == 90_000


def test_members_who_wait_for_us_need_not_be_heard_of() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    asker = driver.join(leader)
    for _ in range(5):
        driver.advance(8000)
        assert driver.beat(follower, 1) == Error.REBALANCE_IN_PROGRESS
    assert asker.waits
    driver.join(follower)
    assert asker.take(JoinGroupResponse).generation_id == 2


def test_after_the_join_phase_sessions_begin_anew() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.advance(SESSION_MS - 1)
    driver.join(follower)
    driver.advance(SESSION_MS - 1)
    assert driver.members == [leader, follower]


# ---------------------------------------------------------------------- size


def test_a_full_group_takes_nobody() -> None:
    driver = ClassicDriver(group_max_size=2)
    driver.stable(2)
    for options in ({}, {"version": 3}):
        asker = driver.join(**options)  # type: ignore[arg-type]
        assert driver.refused(asker) == Error.GROUP_MAX_SIZE_REACHED
    assert driver.refused(driver.join(instance="i")) == Error.GROUP_MAX_SIZE_REACHED
    assert driver.in_state is State.STABLE


def test_a_new_group_takes_no_more_than_its_size() -> None:
    driver = ClassicDriver(group_max_size=2)
    ids = [driver.new_id() for _ in range(3)]
    askers = [driver.join(member_id) for member_id in ids]
    assert [asker.waits for asker in askers] == [True, True, False]
    assert driver.refused(askers[2]) == Error.GROUP_MAX_SIZE_REACHED
    assert driver.group.pending == {}


def test_a_group_that_is_too_large_after_a_reload_shrinks() -> None:
    driver = ClassicDriver()
    first, second, third = driver.stable(3)
    driver.config = ClassicDriver(group_max_size=2).config
    driver.reload()
    assert driver.in_state is State.PREPARING
    askers = [driver.join(member) for member in (third, first)]
    assert all(asker.waits for asker in askers)
    assert driver.refused(driver.join(second)) == Error.GROUP_MAX_SIZE_REACHED
    assert [asker.take(JoinGroupResponse).generation_id for asker in askers] == [2, 2]
    assert sorted(driver.members) == sorted([first, third])
