"""What others ask of a classic group: commits, expiry, subscriptions, deletion, description."""

import pytest

from cordwood.coordinator.outcome import Outcome
from cordwood.errors import Error, Refused
from cordwood.group import classic
from cordwood.group.classic import ClassicGroup, State
from cordwood.group.stored import GroupMetadataKey, GroupMetadataValue
from cordwood.wire import encode
from cordwood.wire.messages import ConsumerProtocolSubscription, JoinGroupResponse
from group.classic_driver import DELAY_MS, GROUP, SESSION_MS, ClassicDriver


def _commit(group: ClassicGroup, member: str = "", epoch: int = -1, *, transactional: bool = False) -> Error:
    try:
        group.check_commit(member, None, epoch, transactional=transactional, api_version=9)
    except Refused as refusal:
        return refusal.error
    return Error.NONE


def _subscription(*topics: str, version: int = 0) -> bytes:
    body = encode(ConsumerProtocolSubscription(topics=list(topics)), version)
    return version.to_bytes(2, "big") + body


def _subscribed(*said: bytes, protocol_type: str = "consumer") -> ClassicDriver:
    """A stable group whose members say this."""
    driver = ClassicDriver()
    askers = [driver.join(protocols={"range": words}, version=3, protocol_type=protocol_type) for words in said]
    driver.advance(2 * DELAY_MS)
    members = [asker.take(JoinGroupResponse).member_id for asker in askers]
    for member in members:
        driver.sync(member, 1, version=4, protocol_type=None, protocol=None)
    return driver


# ---------------------------------------------------------------------- commits


def test_anybody_may_commit_to_an_empty_group_without_a_generation() -> None:
    group = ClassicGroup("simple")
    assert _commit(group) == _commit(group, "whoever") == Error.NONE
    assert _commit(group, "whoever", 0) == Error.UNKNOWN_MEMBER_ID


def test_commits_to_a_group_with_members_are_for_members_of_its_generation() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    assert _commit(driver.group, member, 1) == Error.NONE
    assert _commit(driver.group, member, 0) == _commit(driver.group, member) == Error.ILLEGAL_GENERATION
    assert _commit(driver.group, "stranger", 1) == Error.UNKNOWN_MEMBER_ID
    assert _commit(driver.group) == Error.UNKNOWN_MEMBER_ID
    assert _commit(driver.group, transactional=True) == Error.NONE


def test_members_may_commit_before_they_join_again_and_not_before_they_are_assigned() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    new, _ = driver.enter()
    assert _commit(driver.group, member, 1) == Error.NONE
    driver.join(member)
    assert driver.in_state is State.COMPLETING
    assert _commit(driver.group, new, 2) == Error.REBALANCE_IN_PROGRESS
    assert _commit(driver.group, new, 2, transactional=True) == Error.NONE
    assert _commit(driver.group, new, 1) == Error.ILLEGAL_GENERATION


def test_a_commit_counts_as_a_heartbeat() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    driver.advance(SESSION_MS - 1)
    driver.group.touched(member, driver.state.deadlines, driver.now)
    driver.group.touched("stranger", driver.state.deadlines, driver.now)
    driver.advance(SESSION_MS - 1)
    assert driver.beat(member, 1) == Error.NONE


# ---------------------------------------------------------------------- subscriptions and expiry


def test_topics_that_consumers_want_are_known_in_every_version_of_what_they_say() -> None:
    driver = _subscribed(*(_subscription(f"t{version}", version=version) for version in range(4)))
    assert [driver.group.is_subscribed_to(f"t{version}") for version in range(5)] == [True] * 4 + [False]
    driver.reload()
    assert driver.group.is_subscribed_to("t3")
    assert not driver.group.is_subscribed_to("t4")


@pytest.mark.parametrize("said", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", b"garbage", b"\0\0\0\0\0\1\0\1\xff"])
def test_consumers_that_say_garbage_may_want_everything(said: bytes) -> None:
    driver = _subscribed(_subscription("t"), said)
    assert driver.group.is_subscribed_to("anything")
    assert driver.group.offset_expires_from(5, "anything") is None


def test_others_than_consumers_want_nothing_that_we_know() -> None:
    driver = _subscribed(b"words", protocol_type="connect")
    assert not driver.group.is_subscribed_to("t")
    assert driver.group.offset_expires_from(5, "t") is None


def test_offsets_of_a_group_without_members_expire_from_their_commit() -> None:
    assert ClassicGroup("simple").offset_expires_from(5, "t") == 5
    assert not ClassicGroup("simple").is_subscribed_to("t")


def test_offsets_of_an_emptied_group_expire_from_when_it_emptied() -> None:
    driver = ClassicDriver()
    driver.leave(*driver.stable(1))
    emptied = driver.now.wall_ms
    driver.advance(1000)
    driver.reload()
    assert driver.group.offset_expires_from(5, "t") == emptied
    assert not driver.group.is_subscribed_to("t")


def test_offsets_of_an_emptied_group_of_old_records_expire_from_their_commit() -> None:
    group = ClassicGroup.from_stored("g", GroupMetadataValue(protocol_type="consumer", generation=3))
    assert group.offset_expires_from(5, "t") == 5


def test_offsets_that_no_consumer_wants_expire_from_their_commit() -> None:
    driver = _subscribed(_subscription("t"))
    assert driver.group.offset_expires_from(5, "other") == 5
    driver.enter(protocols={"range": b""})
    assert driver.group.offset_expires_from(5, "other") is None, "who knows what the next generation wants"
    assert driver.group.is_subscribed_to("t")
    assert not driver.group.is_subscribed_to("other")


def test_records_without_a_rebalance_timeout_have_the_session_timeout() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    value = driver.group.stored
    assert value is not None
    value.members[0].rebalance_timeout = -1
    group = ClassicGroup.from_stored(GROUP, value)
    assert group.roster.rebalance_timeout_ms == SESSION_MS


# ---------------------------------------------------------------------- deletion


def test_only_empty_groups_can_be_deleted() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    with pytest.raises(Refused) as caught:
        driver.group.check_delete()
    assert caught.value.error == Error.NON_EMPTY_GROUP
    driver.leave(member)
    driver.group.check_delete()
    driver.finish(Outcome(driver.group.tombstones()))
    assert driver.state.groups == {}
    driver.reload()
    assert driver.state.groups == {}


def test_a_tombstone_of_a_group_that_is_not_there_is_nothing() -> None:
    driver = ClassicDriver()
    driver.finish(Outcome(ClassicGroup("gone").tombstones()))
    assert driver.state.groups == {}
    assert driver.machine.decode(*driver.stored[0]) == (GroupMetadataKey(group="gone"), None)


def test_a_deleted_group_leaves_deadlines_that_do_nothing() -> None:
    driver = ClassicDriver()
    driver.new_id()
    driver.finish(Outcome(driver.group.tombstones()))
    driver.advance(10 * SESSION_MS)
    assert driver.state.groups == {}


def test_offsets_of_groups_with_members_can_be_deleted_if_they_are_consumers() -> None:
    ClassicGroup("simple").check_offset_delete()
    _subscribed(_subscription("t")).group.check_offset_delete()
    with pytest.raises(Refused) as caught:
        _subscribed(b"", protocol_type="connect").group.check_offset_delete()
    assert caught.value.error == Error.NON_EMPTY_GROUP


def test_everybody_may_fetch() -> None:
    driver = ClassicDriver()
    driver.stable(1)
    driver.group.check_fetch(None, -1)
    driver.group.check_fetch("stranger", 7)


# ---------------------------------------------------------------------- description


def test_a_stable_group_is_described_in_full() -> None:
    driver = ClassicDriver()
    (member,) = driver.stable(1)
    described = classic.describe(driver.state, GROUP, 5)
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    (found,) = described.members
    assert (found.member_id, found.client_id, found.client_host) == (member, "client", "/127.0.0.1")
    assert (found.member_metadata, found.member_assignment) == (b"topics", f"of {member}".encode())


def test_between_generations_there_is_no_protocol_to_describe() -> None:
    driver = ClassicDriver()
    driver.enter()
    described = classic.describe(driver.state, GROUP, 5)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert described.members[0].member_metadata == b""
    driver.advance(DELAY_MS)
    assert classic.describe(driver.state, GROUP, 5).group_state == "CompletingRebalance"
    driver.leave(*driver.members)
    assert classic.describe(driver.state, GROUP, 5).group_state == "Empty"


def test_a_group_that_is_not_there_is_dead() -> None:
    state = ClassicDriver().state
    assert (described := classic.describe(state, "x", 5)).group_state == "Dead"
    assert described.error_code == Error.NONE
    described = classic.describe(state, "x", 6)
    assert (described.error_code, described.error_message) == (Error.GROUP_ID_NOT_FOUND, "Group x not found.")
