"""OffsetFetch: what a group is told of its offsets."""

from uuid import UUID

import pytest

from cordwood.errors import Error, Refused
from cordwood.wire.messages import OffsetFetchResponseGroup
from group.consumer_members import TestMember
from group.offsets_driver import NEWEST, OffsetsDriver

NOBODY = UUID("99999999-9999-4999-8999-999999999999")
Found = tuple[int, int, int, str | None, Error]


def _found(response: OffsetFetchResponseGroup) -> dict[str | UUID, list[Found]]:
    """(partition, offset, leader epoch, metadata, error) by topic."""
    assert not response.error_code
    return {
        topic.name or topic.topic_id: [
            (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, Error(p.error_code))
            for p in topic.partitions
        ]
        for topic in response.topics
    }


def _none(index: int, error: Error = Error.NONE) -> Found:
    return index, -1, -1, "", error


def test_what_was_committed_is_found_and_the_rest_is_minus_one() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): (5, 3, "note"), ("t", 1): 6})
    assert _found(driver.fetch({"t": [0, 1, 2, 99, -1], "nope": [0]})) == {
        "t": [(0, 5, 3, "note", Error.NONE), (1, 6, -1, "", Error.NONE), _none(2), _none(99), _none(-1)],
        "nope": [_none(0)],
    }


def test_all_topics() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): (5, 3, "note"), ("u", 1): 6})
    assert _found(driver.fetch(None)) == {"t": [(0, 5, 3, "note", Error.NONE)], "u": [(1, 6, -1, "", Error.NONE)]}


def test_an_unknown_group_has_committed_nothing() -> None:
    driver = OffsetsDriver()
    assert _found(driver.fetch({"t": [0]}, "unknown", member="m", epoch=3)) == {"t": [_none(0)]}
    assert _found(driver.fetch(None, "unknown", member="m", epoch=3)) == {}


def test_topics_by_id() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5, ("u", 0): 6})
    zero, t, u = UUID(int=0), driver.ids["t"], driver.ids["u"]
    unknown = Error.UNKNOWN_TOPIC_ID
    assert _found(driver.fetch({t: [0, 1], NOBODY: [0, 7], zero: [0]}, version=NEWEST)) == {
        t: [(0, 5, -1, "", Error.NONE), _none(1)],
        NOBODY: [_none(0, unknown), _none(7, unknown)],
        zero: [_none(0, unknown)],
    }
    response = driver.fetch(None, version=NEWEST)
    assert [topic.topic_id for topic in response.topics] == [t, u]


def test_a_topic_without_an_id_is_not_told_to_those_who_want_ids() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5, ("u", 0): 6})
    driver.drop_topic("t")
    assert [topic.topic_id for topic in driver.fetch(None, version=NEWEST).topics] == [driver.ids["u"]]
    assert [topic.name for topic in driver.fetch(None).topics] == ["t", "u"]


def test_an_offset_of_an_older_topic_of_the_name_is_none() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.committed({("t", 1): 6}, version=2, retention_ms=1000)  # of which topic is not known
    driver.drop_topic("t")
    new = driver.topic("t", 4)
    assert new != driver.ids["t"]
    assert _found(driver.fetch({new: [0, 1]}, version=NEWEST)) == {new: [_none(0), (1, 6, -1, "", Error.NONE)]}


def test_a_member_of_a_consumer_group_asks_in_its_epoch() -> None:
    driver = OffsetsDriver()
    member = TestMember(driver, "m")
    member.join()
    driver.committed({("t", 0): 5}, member="m", epoch=member.epoch)
    expected = {"t": [(0, 5, -1, "", Error.NONE)]}
    assert _found(driver.fetch({"t": [0]}, member="m", epoch=member.epoch)) == expected
    assert _found(driver.fetch({"t": [0]})) == expected
    for asked, error in [
        (("m", member.epoch - 1), Error.STALE_MEMBER_EPOCH),
        (("m", member.epoch + 1), Error.STALE_MEMBER_EPOCH),
        (("stranger", 1), Error.UNKNOWN_MEMBER_ID),
    ]:
        with pytest.raises(Refused) as refused:
            driver.fetch({"t": [0]}, member=asked[0], epoch=asked[1])
        assert refused.value.error is error


def test_in_a_classic_group_anybody_may_ask() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    assert _found(driver.fetch({"t": [0]}, member="m", epoch=3)) == {"t": [(0, 5, -1, "", Error.NONE)]}
