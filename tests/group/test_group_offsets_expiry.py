"""When offsets are forgotten, and groups with them (KIP-211)."""

from cordwood.config import BrokerConfig
from cordwood.errors import Error, Refused
from cordwood.group import classic
from cordwood.group.offsets import slices
from cordwood.group.stored import GroupMetadataKey
from cordwood.group.timers import OffsetsExpiry, OffsetsExpiryGoesOn
from cordwood.wire.messages import JoinGroupRequest, JoinGroupRequestProtocol
from group.consumer_members import TestMember
from group.offsets_driver import MINUTE_MS, OffsetsDriver
from group.test_group_offsets_delete import Both

CHECK_MS = 10_000
RETENTION_MINUTES = 10
RETENTION_MS = RETENTION_MINUTES * MINUTE_MS
SETTINGS = {"offsets_retention_minutes": RETENTION_MINUTES, "offsets_retention_check_interval_ms": CHECK_MS}


def test_offsets_without_a_group_expire_after_their_commit() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5, ("t", 1): 6})
    driver.advance(RETENTION_MS - CHECK_MS)
    driver.committed({("t", 1): 7})
    driver.advance(CHECK_MS)
    assert driver.offsets() == {("t", 1): 7}
    assert "g" in driver.state.groups
    driver.advance(RETENTION_MS)
    assert driver.offsets() == {}


def test_not_a_millisecond_too_early() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5})
    driver.advance(1)
    driver.committed({("t", 1): 6})
    driver.advance(RETENTION_MS - 1)
    assert driver.offsets() == {("t", 1): 6}


def test_the_last_offset_takes_its_group_along() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5})
    driver.advance(RETENTION_MS + CHECK_MS)
    assert "g" not in driver.state.groups
    assert driver.machine.decode(*driver.stored[-1]).key == GroupMetadataKey(group="g")  # type: ignore[union-attr]
    driver.reload()
    assert "g" not in driver.state.groups


def test_offsets_of_a_group_expire_when_it_has_been_empty_for_long() -> None:
    driver = Both(**SETTINGS)
    member = driver.stable_on("t")
    driver.committed({("t", 0): 5}, member=member, epoch=1)
    for _ in range(2 * RETENTION_MS // 5000):
        driver.advance(5000)
        assert driver.beat(member, 1, "i") is Error.NONE
    assert driver.offsets() == {("t", 0): 5}, "members read the topic"
    driver.leave((member, "i"))
    driver.advance(RETENTION_MS - CHECK_MS)
    assert driver.offsets() == {("t", 0): 5}, "they were here not long ago"
    driver.advance(2 * CHECK_MS)
    assert driver.offsets() == {}
    assert not driver.state.groups


def test_offsets_that_members_do_not_read_expire_after_their_commit() -> None:
    driver = Both(**SETTINGS)
    member = driver.stable_on("t")
    driver.committed({("t", 0): 5, ("u", 0): 6}, member=member, epoch=1)
    for _ in range((RETENTION_MS + CHECK_MS) // 5000):
        driver.advance(5000)
        driver.beat(member, 1, "i")
    assert driver.offsets() == {("t", 0): 5}
    assert driver.members == [member]


def test_of_members_who_are_no_consumers_nothing_expires() -> None:
    driver = Both(**SETTINGS)
    member = driver.stable_on("t", protocol_type="connect")
    driver.committed({("t", 0): 5}, member=member, epoch=1)
    for _ in range((RETENTION_MS + CHECK_MS) // 5000):
        driver.advance(5000)
        driver.beat(member, 1, "i")
    assert driver.offsets() == {("t", 0): 5}


def test_offsets_of_a_consumer_group_expire_too() -> None:
    driver = OffsetsDriver(**SETTINGS)
    member = TestMember(driver, "m")
    member.join()
    driver.committed({("t", 0): 5, ("u", 0): 6}, member="m", epoch=member.epoch)
    for _ in range((RETENTION_MS + CHECK_MS) // 5000):
        driver.advance(5000)
        member.beat()
    assert driver.offsets() == {("t", 0): 5}
    member.leave()
    driver.advance(RETENTION_MS + CHECK_MS)
    assert driver.offsets() == {}
    assert not driver.state.groups
    driver.reload()
    assert not driver.state.groups


def test_what_the_client_chose_counts() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5}, version=2, retention_ms=2 * CHECK_MS)
    driver.committed({("t", 1): 6}, version=4, retention_ms=5 * RETENTION_MS)
    driver.advance(2 * CHECK_MS)
    assert driver.offsets() == {("t", 1): 6}
    driver.advance(4 * RETENTION_MS)
    assert driver.offsets() == {("t", 1): 6}
    driver.reload()
    driver.advance(RETENTION_MS)
    assert driver.offsets() == {}


def test_groups_without_members_and_offsets_go_at_the_next_check() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5})
    driver.delete({"t": [0]})
    assert "g" in driver.state.groups
    driver.advance(CHECK_MS)
    assert "g" not in driver.state.groups


def test_rounds_go_on_after_a_reload() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5})
    driver.advance(RETENTION_MS - 1)
    driver.reload()
    assert OffsetsExpiry() in driver.state.deadlines
    driver.advance(2 * CHECK_MS)
    assert driver.offsets() == {}


def test_thousands_of_groups_are_looked_at_a_slice_at_a_time() -> None:
    driver = OffsetsDriver(**{**SETTINGS, "offsets_retention_check_interval_ms": RETENTION_MS})
    count = 2 * slices.SLICE_LOOKS
    driver.write_offsets([f"group-{number}" for number in range(count)], partitions=1)
    driver.advance(RETENTION_MS - 1)
    driver.committed({("t", 0): 6}, "late")
    driver.advance(1)
    assert OffsetsExpiryGoesOn() in driver.state.deadlines
    assert 0 < len(driver.state.groups) - 1 < count, "some are gone, not all"
    driver.advance(100)
    assert list(driver.state.groups) == ["late"]
    assert OffsetsExpiryGoesOn() not in driver.state.deadlines


def test_long_names_make_small_slices() -> None:
    driver = OffsetsDriver(**SETTINGS)
    name = "x" * 32767
    for index in range(4):
        driver.committed({("t", index): 5}, name)
    driver.advance(RETENTION_MS)
    assert name in driver.state.groups, "three of its offsets would be too large for one batch"
    driver.advance(100)
    assert not driver.state.groups


def test_a_topic_that_takes_next_to_nothing_does_not_keep_a_round_from_its_end() -> None:
    driver = OffsetsDriver(**{**SETTINGS, "message_max_bytes": 0})
    driver.write_offsets(["a", "b"], partitions=1)
    driver.advance(CHECK_MS)
    assert not driver.state.groups_to_expire


def test_what_can_not_be_written_waits() -> None:
    driver = OffsetsDriver(**SETTINGS)
    driver.committed({("t", 0): 5})
    driver.advance(RETENTION_MS - 1)
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.advance(1)
    assert driver.offsets() == {("t", 0): 5}
    driver.advance(CHECK_MS)
    assert driver.offsets() == {}


def test_a_round_that_takes_longer_than_the_interval_reaches_every_group() -> None:
    driver = OffsetsDriver(**{**SETTINGS, "offsets_retention_check_interval_ms": RETENTION_MS})
    driver.write_offsets([f"group-{number}" for number in range(3 * slices.SLICE_LOOKS)], partitions=1)
    driver.config = BrokerConfig.parse({"offsets.retention.minutes": "10", "offsets.retention.check.interval.ms": "1"})
    driver.advance(RETENTION_MS + 20)
    assert not driver.state.groups


def test_groups_with_long_names_go_in_batches_that_fit() -> None:
    driver = OffsetsDriver(offsets_retention_minutes=1, offsets_retention_check_interval_ms=600_000)
    for number in range(300):
        request = JoinGroupRequest(
            group_id=f"{number}-" + "x" * 2000,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range")],
        )
        driver.call(classic.join, request, 9)
    driver.committed({("t", 0): 5}, group="innocent")
    driver.advance(600_000)
    assert len(driver.state.groups) > 200, "one slice is not all of them"
    driver.advance(100)
    assert not driver.state.groups
