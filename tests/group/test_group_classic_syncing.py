"""SyncGroup, and what of a generation is written: assignments, failures, reloads."""

import pytest

from cordwood.coordinator.outcome import Outcome
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group import classic
from cordwood.group.classic import ClassicGroup, State, Turn, prepare, start_sessions
from cordwood.group.classic.rebalance import REST_MS
from cordwood.group.stored import GroupMetadataKey, GroupMetadataValue, decode_record
from cordwood.group.timers import SyncPhase
from cordwood.wire.messages import JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
from group.classic_driver import DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, ClassicDriver
from group.group_harness import Asker


def _stored(driver: ClassicDriver) -> list[GroupMetadataValue | None]:
    records = [decode_record(key, value) for key, value in driver.stored]
    return [record.value for record in records if record and isinstance(record.key, GroupMetadataKey)]  # type: ignore[misc]


# ---------------------------------------------------------------------- assignments


def test_followers_wait_for_the_leader_and_all_get_what_it_gives() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    waiting = driver.sync(follower, 1)
    assert waiting.waits
    led = driver.sync(leader, 1, {leader: b"1", follower: b"2"}).take(SyncGroupResponse)
    assert (led.assignment, led.protocol_type, led.protocol_name) == (b"1", "consumer", "range")
    assert waiting.take(SyncGroupResponse).assignment == b"2"
    assert driver.in_state is State.STABLE


def test_whoever_asks_late_gets_its_assignment_at_once() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.sync(leader, 1, {follower: b"2"})
    assert driver.sync(follower, 1).take(SyncGroupResponse).assignment == b"2"
    assert driver.sync(follower, 1).take(SyncGroupResponse).assignment == b"2"


def test_members_that_the_leader_forgot_have_nothing_and_strangers_are_ignored() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    assert driver.sync(leader, 1, {"stranger": b"x"}).take(SyncGroupResponse).assignment == b""
    assert driver.sync(follower, 1).take(SyncGroupResponse).assignment == b""


def test_what_a_follower_assigns_is_ignored() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    waiting = driver.sync(follower, 1, {follower: b"mine", leader: b"mine"})
    driver.sync(leader, 1, {follower: b"2"})
    assert waiting.take(SyncGroupResponse).assignment == b"2"


@pytest.mark.parametrize(
    ("generation", "protocol_type", "protocol", "version", "error"),
    [
        (0, "consumer", "range", 5, Error.ILLEGAL_GENERATION),
        (2, "consumer", "range", 5, Error.ILLEGAL_GENERATION),
        (1, "connect", "range", 5, Error.INCONSISTENT_GROUP_PROTOCOL),
        (1, "consumer", "other", 5, Error.INCONSISTENT_GROUP_PROTOCOL),
        (1, None, "range", 5, Error.INCONSISTENT_GROUP_PROTOCOL),
        (1, "consumer", None, 5, Error.INCONSISTENT_GROUP_PROTOCOL),
        (1, None, None, 4, Error.NONE),
    ],
)
def test_a_sync_names_its_generation_and_protocol(
    generation: int, protocol_type: str | None, protocol: str | None, version: int, error: Error
) -> None:
    driver = ClassicDriver()
    (leader,) = driver.completing(1)
    asker = driver.sync(leader, generation, protocol_type=protocol_type, protocol=protocol, version=version)
    assert asker.take(SyncGroupResponse).error_code == error


def test_nobody_else_can_sync() -> None:
    driver = ClassicDriver()
    assert driver.sync("x", 1).take(SyncGroupResponse).error_code == Error.UNKNOWN_MEMBER_ID
    assert driver.sync("x", 1, group_id="").take(SyncGroupResponse).error_code == Error.INVALID_GROUP_ID
    driver.completing(1)
    assert driver.sync("x", 1).take(SyncGroupResponse).error_code == Error.UNKNOWN_MEMBER_ID


def test_while_members_join_there_is_nothing_to_sync() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    assert driver.sync(follower, 1).take(SyncGroupResponse).error_code == Error.REBALANCE_IN_PROGRESS


def test_a_new_rebalance_ends_waiting_syncs() -> None:
    driver = ClassicDriver()
    _, follower = driver.completing(2)
    waiting = driver.sync(follower, 1)
    driver.enter()
    assert waiting.take(SyncGroupResponse).error_code == Error.REBALANCE_IN_PROGRESS
    assert driver.in_state is State.PREPARING


def test_a_parked_sync_is_answered_when_its_member_syncs_again() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    first, second = driver.sync(follower, 1), driver.sync(follower, 1)
    assert first.take(SyncGroupResponse).error_code == Error.REBALANCE_IN_PROGRESS
    driver.sync(leader, 1, {follower: b"2"})
    assert second.take(SyncGroupResponse).assignment == b"2"


def test_a_leader_that_does_not_assign_in_time_is_dropped() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    waiting = driver.sync(follower, 1)
    for _ in range(REBALANCE_MS // 5000):
        assert driver.beat(leader, 1) == Error.NONE
        driver.advance(5000)
    assert waiting.take(SyncGroupResponse).error_code == Error.REBALANCE_IN_PROGRESS
    assert driver.members == [follower]
    assert driver.in_state is State.PREPARING


def test_a_follower_that_does_not_ask_in_time_is_dropped_from_a_stable_group() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.sync(leader, 1)
    for _ in range(REBALANCE_MS // 5000):
        assert driver.beat(leader, 1) == driver.beat(follower, 1) == Error.NONE
        driver.advance(5000)
    assert driver.members == [leader]
    assert driver.in_state is State.PREPARING


def test_a_sync_that_comes_too_late_is_a_strangers_and_the_others_rebalance() -> None:
    driver = ClassicDriver()
    leader, late = driver.completing(2)
    driver.sync(leader, 1)
    for _ in range(REBALANCE_MS // 5000):
        assert driver.beat(leader, 1) == driver.beat(late, 1) == Error.NONE
        driver.advance(5000)
    assert driver.sync(late, 1).take(SyncGroupResponse).error_code == Error.UNKNOWN_MEMBER_ID
    assert driver.beat(leader, 1) == Error.REBALANCE_IN_PROGRESS
    again = driver.join(leader).take(JoinGroupResponse)
    assert (again.generation_id, [member.member_id for member in again.members]) == (2, [leader])


def test_a_sync_just_in_time_keeps_the_group_stable() -> None:
    driver = ClassicDriver()
    leader, late = driver.completing(2)
    driver.sync(leader, 1, {late: b"2"})
    for _ in range(REBALANCE_MS // 5000 - 1):
        assert driver.beat(leader, 1) == driver.beat(late, 1) == Error.NONE
        driver.advance(5000)
    assert driver.beat(leader, 1) == driver.beat(late, 1) == Error.NONE
    driver.advance(4999)
    assert driver.sync(late, 1).take(SyncGroupResponse).assignment == b"2"
    driver.advance(1)
    assert driver.beat(leader, 1) == driver.beat(late, 1) == Error.NONE


def test_each_sync_phase_has_all_its_time() -> None:
    """The deadline of a phase that another has followed means nothing."""
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.advance(5000)
    driver.join(leader, protocols={"range": b"other"})
    driver.join(follower)
    for _ in range(REBALANCE_MS // 5000 - 1):
        assert driver.beat(leader, 2) == driver.beat(follower, 2) == Error.NONE
        driver.advance(5000)
    assert driver.beat(leader, 2) == driver.beat(follower, 2) == Error.NONE
    driver.advance(4999)
    assert driver.members == [leader, follower]
    driver.advance(1)
    assert driver.in_state is State.EMPTY, "nobody has asked for its assignment"


def test_the_deadline_of_a_sync_phase_ends_with_it() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.advance(5000)
    driver.join(follower, protocols={"range": b"other"})
    for _ in range(REBALANCE_MS // 5000 - 1):
        assert driver.beat(leader, 1) == Error.REBALANCE_IN_PROGRESS
        driver.advance(5000)
    assert driver.members == [leader, follower]
    assert SyncPhase(GROUP) not in driver.state.deadlines


def test_when_all_have_asked_nobody_is_missed() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    for _ in range(2 * REBALANCE_MS // 5000):
        assert driver.beat(leader, 1) == driver.beat(follower, 1) == Error.NONE
        driver.advance(5000)


def test_who_waits_for_the_leader_need_not_be_heard_of_until_it_is_answered() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.sync(follower, 1)
    for _ in range(3):
        driver.advance(SESSION_MS - 1)
        assert driver.beat(leader, 1) == Error.NONE
    driver.sync(leader, 1)
    driver.advance(SESSION_MS - 1)
    assert driver.beat(follower, 1) == Error.NONE


# ---------------------------------------------------------------------- what is written


def test_a_group_is_written_when_it_begins_when_it_has_assignments_and_when_it_empties() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.leave(leader, follower)
    new, settled, empty = _stored(driver)
    assert new == GroupMetadataValue(current_state_timestamp=new.current_state_timestamp)  # type: ignore[union-attr]
    assert settled is not None
    assert (settled.generation, settled.protocol_type, settled.protocol, settled.leader) == (
        1,
        "consumer",
        "range",
        leader,
    )
    member = settled.members[1]
    assert (member.member_id, member.client_id, member.client_host) == (follower, "client", "/127.0.0.1")
    assert (member.session_timeout, member.rebalance_timeout) == (SESSION_MS, REBALANCE_MS)
    assert (member.subscription, member.assignment) == (b"topics", f"of {follower}".encode())
    assert empty == GroupMetadataValue(
        protocol_type="consumer", generation=2, current_state_timestamp=driver.now.wall_ms
    )


def test_records_are_of_version_3_as_kafkas_are() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    assert {value[:2] for _, value in driver.stored if value is not None} == {b"\0\x03"}


def test_a_reload_brings_a_stable_group_back() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.reload()
    assert driver.in_state is State.STABLE
    assert driver.beat(leader, 1) == driver.beat(follower, 1) == Error.NONE
    assert driver.sync(follower, 1).take(SyncGroupResponse).assignment == f"of {follower}".encode()


def test_after_a_reload_members_have_their_session_timeout_to_be_heard_of() -> None:
    driver = ClassicDriver()
    leader, follower = driver.stable(2)
    driver.reload()
    driver.advance(SESSION_MS - 1)
    assert driver.beat(leader, 1) == Error.NONE
    driver.advance(1)
    assert driver.members == [leader]
    assert driver.in_state is State.PREPARING
    assert driver.beat(follower, 1) == Error.UNKNOWN_MEMBER_ID


def test_a_reload_forgets_a_rebalance_and_members_of_the_last_generation_go_on() -> None:
    driver = ClassicDriver()
    (leader,) = driver.stable(1)
    new, _ = driver.enter()
    driver.reload()
    assert driver.in_state is State.STABLE
    assert driver.beat(leader, 1) == Error.NONE
    assert driver.refused(driver.join(new)) == Error.UNKNOWN_MEMBER_ID


def test_assignments_that_can_not_be_written_are_nobodys() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    waiting = driver.sync(follower, 1)
    driver.fail_next_write(Refused(Error.NOT_COORDINATOR))
    led = driver.sync(leader, 1, {leader: b"1", follower: b"2"})
    for asker in (waiting, led):
        assert asker.take(Refused).error == Error.NOT_COORDINATOR
    assert driver.in_state is State.PREPARING
    assert all(member.assignment == b"" for member in driver.group.roster.members.values())
    driver.join(leader)
    joining = driver.join(follower)
    driver.advance(REST_MS)
    assert joining.take(JoinGroupResponse).generation_id == 2


def test_members_without_patience_do_not_drive_a_group_that_can_not_be_written() -> None:
    """They come again as soon as they are refused; time passes only while they wait."""
    driver = ClassicDriver()
    (leader,) = driver.completing(1)
    begun_ms, generation = driver.now.mono_ms, 1
    for _ in range(100):
        driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        assert driver.sync(leader, generation).take(Refused).error == Error.COORDINATOR_NOT_AVAILABLE
        joining = driver.join(leader)
        while joining.waits:
            driver.advance(10)
        generation = joining.take(JoinGroupResponse).generation_id
    assert generation == 101
    assert driver.now.mono_ms - begun_ms >= 100 * REST_MS
    assert driver.sync(leader, generation, {leader: b"1"}).take(SyncGroupResponse).assignment == b"1"


def test_a_group_that_rests_waits_for_those_who_have_not_joined() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.sync(leader, 1)
    joining = driver.join(leader)
    driver.advance(REST_MS)
    assert joining.waits, "the other has all its time"
    assert driver.join(follower).take(JoinGroupResponse).generation_id == 2, "it has rested enough"
    assert joining.take(JoinGroupResponse).generation_id == 2


def test_who_leaves_a_group_that_rests_is_not_waited_for() -> None:
    driver = ClassicDriver()
    leader, follower = driver.completing(2)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.sync(leader, 1)
    joining = driver.join(leader)
    assert driver.leave(follower) == [Error.NONE]
    assert joining.waits
    driver.advance(REST_MS)
    assert joining.take(JoinGroupResponse).generation_id == 2


def test_a_group_that_rests_is_empty_when_all_have_left() -> None:
    driver = ClassicDriver()
    (leader,) = driver.completing(1)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.sync(leader, 1)
    driver.leave(leader)
    assert driver.in_state is State.EMPTY


def test_assignments_too_large_to_write_are_a_servers_error() -> None:
    driver = ClassicDriver()
    (leader,) = driver.completing(1)
    driver.fail_next_write(Refused(Error.RECORD_LIST_TOO_LARGE))
    assert driver.sync(leader, 1).take(Refused).error == Error.UNKNOWN_SERVER_ERROR


def test_a_group_whose_beginning_can_not_be_written_does_not_begin() -> None:
    for version in (3, 9):
        driver = ClassicDriver()
        driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
        assert driver.join(version=version).take(Refused).error == Error.COORDINATOR_NOT_AVAILABLE
        assert driver.state.groups == {}
        assert not [key for key in driver.state.deadlines if getattr(key, "group_id", None) == GROUP]


def test_a_group_is_empty_even_if_that_can_not_be_written() -> None:
    driver = ClassicDriver()
    (leader,) = driver.stable(1)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.advance(SESSION_MS)
    assert (driver.in_state, driver.group.generation) == (State.EMPTY, 2)
    driver.reload()
    assert driver.members == [leader]
    driver.advance(SESSION_MS)
    assert driver.in_state is State.EMPTY


def test_a_record_that_the_group_did_not_propose_replaces_it() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    value = GroupMetadataValue(protocol_type="consumer", generation=9, current_state_timestamp=5)
    driver.finish(Outcome([StateRecord(GroupMetadataKey(group=GROUP), value)]))
    assert (driver.in_state, driver.group.generation, driver.members) == (State.EMPTY, 9, [])


def test_a_group_of_members_that_come_from_elsewhere_is_written_and_goes_on() -> None:
    driver = ClassicDriver()
    driver.stable(2)
    members = list(driver.group.roster.members.values())
    group = ClassicGroup.of_members(GROUP, 7, members, driver.now, "consumer")
    driver.state.groups[GROUP] = group
    turn = Turn(driver.state, group, driver.now, Outcome([group.propose()]))
    start_sessions(turn)
    driver.finish(turn.outcome)
    assert (driver.in_state, group.generation, group.protocol) == (State.STABLE, 7, "range")
    turn = Turn(driver.state, group, driver.now)
    prepare(turn, "it moved")
    driver.finish(turn.outcome)
    askers = [driver.join(member.id) for member in members]
    assert [asker.take(JoinGroupResponse).generation_id for asker in askers] == [8, 8]


def test_when_the_shard_is_over_whoever_waits_is_told() -> None:
    driver = ClassicDriver()
    _, joining = driver.enter()
    other = ClassicDriver()
    _, follower = other.completing(2)
    syncing = other.sync(follower, 1)
    driver.finish(classic.unloaded(driver.state))
    other.finish(classic.unloaded(other.state))
    assert driver.refused(joining) == Error.NOT_COORDINATOR
    assert syncing.take(SyncGroupResponse).error_code == Error.NOT_COORDINATOR


def test_a_join_to_an_emptied_group_begins_its_next_generation() -> None:
    driver = ClassicDriver()
    driver.leave(*driver.stable(1))
    _, asker = driver.enter()
    driver.advance(DELAY_MS)
    assert asker.take(JoinGroupResponse).generation_id == 3


def test_what_was_written_stays_when_its_commit_fails_later() -> None:
    """Then the shard is over, and whoever waits for the commit is refused."""
    driver = ClassicDriver()
    (leader,) = driver.completing(1)
    asker = Asker(api_version=4)
    request = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=leader)
    outcome = classic.sync(driver.state, request, asker, driver.now)
    driver.machine.apply(outcome.records[0])
    assert outcome.failed is not None
    outcome.failed(Refused(Error.NOT_COORDINATOR))
    assert asker.take(Refused).error == Error.NOT_COORDINATOR
    assert driver.in_state is State.STABLE
