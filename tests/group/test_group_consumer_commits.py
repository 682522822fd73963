"""Who may commit and fetch offsets of a consumer group, at which epoch."""

from uuid import UUID

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.groups import CheckPartition
from group.consumer_members import TestMember, group_of, settle
from group.group_harness import GroupHarness


@pytest.fixture
def harness() -> GroupHarness:
    harness = GroupHarness()
    harness.topic("t", 4)
    return harness


def commit(
    harness: GroupHarness,
    member_id: str,
    epoch: int,
    *,
    instance_id: str | None = None,
    transactional: bool = False,
    version: int = 9,
) -> CheckPartition | None:
    group = group_of(harness)
    return group.check_commit(member_id, instance_id, epoch, transactional=transactional, api_version=version)


def error_of(check: CheckPartition | None, topic_id: UUID, partition: int) -> Error | None:
    assert check is not None
    try:
        check("t", topic_id, partition)
    except Refused as refusal:
        return refusal.error
    return None


def test_a_member_commits_at_its_epoch(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    assert commit(harness, "a", 2) is None
    group_of(harness).check_fetch("a", 2)


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [("b", 2, Error.UNKNOWN_MEMBER_ID), ("", -1, Error.UNKNOWN_MEMBER_ID), ("a", 3, Error.STALE_MEMBER_EPOCH)],
)
def test_others_and_later_epochs_are_refused(harness: GroupHarness, member_id: str, epoch: int, error: Error) -> None:
    TestMember(harness, "a").join()
    with pytest.raises(Refused) as refusal:
        commit(harness, member_id, epoch)
    assert refusal.value.error is error
    with pytest.raises(Refused) as refusal:
        group_of(harness).check_fetch(member_id, epoch)
    assert refusal.value.error is error


def test_versions_without_member_epochs_are_refused(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    with pytest.raises(Refused) as refusal:
        commit(harness, "a", 2, version=8)
    assert refusal.value.error is Error.UNSUPPORTED_VERSION
    assert commit(harness, "a", 2, version=8, transactional=True) is None


def test_an_earlier_epoch_may_commit_what_the_member_has_had_since(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    settle(harness, first, second)
    topic_id = next(topic_id for topic_id, _ in first.owned)
    (kept, *_), (lost, *_) = first.numbers, second.numbers
    assert first.epoch == 3
    assert error_of(commit(harness, "a", 2), topic_id, kept) is None
    assert error_of(commit(harness, "a", 1), topic_id, kept) is Error.STALE_MEMBER_EPOCH
    assert error_of(commit(harness, "a", 2), topic_id, lost) is Error.STALE_MEMBER_EPOCH
    assert error_of(commit(harness, "b", 2), topic_id, lost) is Error.STALE_MEMBER_EPOCH


def test_what_is_being_given_up_can_be_committed(harness: GroupHarness) -> None:
    first, second = TestMember(harness, "a"), TestMember(harness, "b")
    first.join()
    second.join()
    harness.advance(1000)
    first.beat()
    assert first.epoch == 2
    ((topic_id, partition), *_) = first.owned - first.told
    assert commit(harness, "a", 2) is None
    assert group_of(harness).members["a"].current.since(topic_id, partition) == 2


def test_fetching_needs_no_member(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    group_of(harness).check_fetch(None, -1)


def test_an_empty_group_takes_commits_from_outside(harness: GroupHarness) -> None:
    member = TestMember(harness, "a")
    member.join()
    member.leave()
    assert commit(harness, "", -1, version=2) is None


def test_producers_without_a_group_commit_in_transactions(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    assert commit(harness, "", -1, transactional=True) is None
    with pytest.raises(Refused):
        commit(harness, "", -1, transactional=True, instance_id="i")


def test_offsets_of_topics_that_nobody_subscribes_to_expire_by_their_own_age(harness: GroupHarness) -> None:
    TestMember(harness, "a").join()
    assert group_of(harness).is_subscribed_to("t")
    assert not group_of(harness).is_subscribed_to("u")
    assert group_of(harness).offset_expires_from(17, "u") == 17
