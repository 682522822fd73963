"""OffsetDelete, DeleteGroups, and topics that go: what is forgotten, and who may not ask for it."""

from cordwood.cluster.layout import DeletedTopic
from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.group.offsets import slices
from cordwood.ids import TopicName
from cordwood.wire import encode
from cordwood.wire.messages import ConsumerProtocolSubscription
from group.classic_driver import ClassicDriver, Protocols
from group.consumer_members import TestMember
from group.offsets_driver import OffsetsDriver


class Both(OffsetsDriver, ClassicDriver):
    """Offsets, and a classic group ``g`` to commit them."""

    def stable_on(self, *topics: str, protocol_type: str = "consumer") -> str:
        """The only member of a group, who reads these topics."""
        said = b"\0\0" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)
        protocols: Protocols = {"range": said}
        asker = self.join(instance="i", protocols=protocols, protocol_type=protocol_type)
        self.advance(10_000)
        (member,) = self.members
        self.sync(member, 1, {member: b""}, protocol_type=protocol_type)
        assert not asker.waits
        return member


def test_offsets_are_forgotten() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5, ("t", 1): 6, ("u", 0): 7})
    assert driver.delete({"t": [0, 3], "u": [0, 0], "nope": [0]}) == {
        ("t", 0): Error.NONE,
        ("t", 3): Error.NONE,
        ("u", 0): Error.NONE,
        ("nope", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert driver.offsets() == {("t", 1): 6}
    assert len(driver.stored) == 5, "one record for each that was there"
    driver.reload()
    assert driver.offsets() == {("t", 1): 6}


def test_partitions_that_do_not_exist_are_refused() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.delete({"t": [4, -1]}) == {("t", 4): unknown, ("t", -1): unknown}


def test_groups_that_do_not_exist_are_refused() -> None:
    driver = OffsetsDriver()
    assert driver.delete({"t": [0]}, "unknown") is Error.GROUP_ID_NOT_FOUND
    assert driver.delete({}, "unknown") is Error.GROUP_ID_NOT_FOUND
    assert driver.delete({"t": [0]}, "") is Error.INVALID_GROUP_ID


def test_what_members_read_is_kept() -> None:
    driver = Both()
    member = driver.stable_on("t")
    driver.committed({("t", 0): 5, ("u", 0): 6}, member=member, epoch=1)
    assert driver.delete({"t": [0, 9], "u": [0]}) == {
        ("t", 0): Error.GROUP_SUBSCRIBED_TO_TOPIC,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): Error.NONE,
    }
    assert driver.offsets() == {("t", 0): 5}


def test_members_of_a_consumer_group_read_what_they_name() -> None:
    driver = OffsetsDriver()
    member = TestMember(driver, "m")
    member.join()
    driver.committed({("t", 0): 5, ("u", 0): 6}, member="m", epoch=member.epoch)
    assert driver.delete({"t": [0], "u": [0]}) == {
        ("t", 0): Error.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): Error.NONE,
    }
    assert driver.delete_group() is Error.NON_EMPTY_GROUP


def test_of_members_who_are_no_consumers_nothing_is_known() -> None:
    driver = Both()
    member = driver.stable_on("t", protocol_type="connect")
    driver.committed({("t", 0): 5}, member=member, epoch=1)
    assert driver.delete({"t": [0]}) is Error.NON_EMPTY_GROUP


def test_a_group_goes_with_its_offsets() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5, ("u", 0): 6})
    driver.committed({("t", 0): 7}, "other")
    assert driver.delete_group() is Error.NONE
    assert list(driver.state.groups) == ["other"]
    assert driver.offsets() == {}
    driver.reload()
    assert list(driver.state.groups) == ["other"]
    assert driver.delete_group() is Error.GROUP_ID_NOT_FOUND


def test_a_group_with_members_stays() -> None:
    driver = Both()
    member = driver.stable_on("t")
    driver.committed({("t", 0): 5}, member=member, epoch=1)
    assert driver.delete_group() is Error.NON_EMPTY_GROUP
    driver.leave((member, "i"))
    assert driver.delete_group() is Error.NONE


def test_offsets_go_with_their_topic() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5, ("u", 0): 6})
    driver.committed({("t", 3): 5}, "other")
    driver.delete_topic("t")
    driver.advance(0)
    assert driver.offsets() == {("u", 0): 6}
    assert driver.offsets("other") == {}
    assert list(driver.state.groups) == ["g", "other"], "groups stay until they expire"
    driver.reload()
    assert driver.offsets() == {("u", 0): 6}


def test_a_new_topic_of_the_name_does_not_inherit_offsets() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.drop_topic("t")
    driver.topic("t", 4)
    driver.finish(offsets.topics_deleted(driver.state, [TopicName("t")], driver.now))
    driver.committed({("t", 1): 6})
    driver.advance(0)
    assert driver.offsets() == {("t", 1): 6}


def test_offsets_of_topics_that_only_change_are_kept() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.topic("t", 8)
    driver.finish(offsets.topics_deleted(driver.state, [TopicName("t"), TopicName("u")], driver.now))
    driver.advance(1000)
    assert driver.offsets() == {("t", 0): 5}


def test_thousands_of_offsets_go_a_slice_at_a_time() -> None:
    driver = OffsetsDriver()
    groups = [f"group-{number}" for number in range(slices.SLICE_LOOKS)]
    driver.write_offsets(groups, partitions=4)
    before = len(driver.stored)
    driver.delete_topic("t")
    driver.advance(0)
    first = len(driver.stored) - before
    assert 0 < first < 4 * len(groups), "some of them, not all"
    driver.advance(100)
    assert len(driver.stored) - before == 4 * len(groups)
    assert driver.state.offsets.groups() == []


def test_a_deletion_that_fails_is_tried_again() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.delete_topic("t")
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    driver.advance(0)
    assert driver.offsets() == {("t", 0): 5}
    driver.advance(slices.RETRY_MS)
    assert driver.offsets() == {}


def test_a_deletion_that_a_restart_interrupts_goes_on() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.drop_topic("t")
    driver.image.deleted_topics[driver.ids["t"]] = DeletedTopic(TopicName("t"), ())
    driver.reload()
    driver.advance(0)
    assert driver.offsets() == {}
