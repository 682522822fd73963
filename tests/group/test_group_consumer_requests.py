"""What a heartbeat must not say, in whatever state the group is; as Kafka 4.3 answers it."""

import pytest

from cordwood.errors import Error
from group.consumer_members import TestMember, refused, topics
from group.group_harness import GroupHarness

FULL: dict[str, object] = {
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.fixture
def member() -> TestMember:
    harness = GroupHarness()
    harness.topic("t", 4)
    member = TestMember(harness, "a")
    member.join()
    return member


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"group_id": " \t"},
        {"member_id": ""},
        {"instance_id": ""},
        {"instance_id": " "},
        {"rack_id": ""},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {**FULL, "rebalance_timeout_ms": -1},
        {**FULL, "topic_partitions": None},
        {**FULL, "subscribed_topic_names": None},
    ],
    ids=str,
)
def test_invalid_requests(member: TestMember, fields: dict[str, object]) -> None:
    assert refused(member.send(**{"member_epoch": 2, **fields})) is Error.INVALID_REQUEST


def test_whoever_joins_has_nothing(member: TestMember) -> None:
    fields = {**FULL, "topic_partitions": topics(member.owned)}
    assert refused(member.send(**fields)) is Error.INVALID_REQUEST


@pytest.mark.parametrize("assignor", ["", "sticky"])
def test_unsupported_assignors(member: TestMember, assignor: str) -> None:
    assert refused(member.send(member_epoch=2, server_assignor=assignor)) is Error.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("epoch", [1, -1])
def test_version_0_gives_an_id_to_those_who_join_alone(member: TestMember, epoch: int) -> None:
    member.version = 0
    assert refused(member.send(member_id="", member_epoch=epoch)) is Error.INVALID_REQUEST


def test_other_peoples_ids_are_of_no_use_without_their_epoch(member: TestMember) -> None:
    for epoch in (1, 3, 2**31 - 1):
        assert refused(member.send(member_epoch=epoch)) is Error.FENCED_MEMBER_EPOCH


def test_partitions_that_nobody_has_ever_heard_of_are_no_harm(member: TestMember) -> None:
    nowhere = {(member.harness.state.new_uuid(), number) for number in (-1, 0, 2**31 - 1)}
    assert member.beat(topic_partitions=topics(nowhere)).error_code == 0
    assert member.numbers == [0, 1, 2, 3]
