"""OffsetCommit: who may commit what, and what is stored."""

from uuid import UUID

import pytest

from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.group.classic import ClassicGroup
from cordwood.group.committed import CommittedOffset
from cordwood.wire.messages import OffsetCommitRequest
from group.classic_driver import SESSION_MS, ClassicDriver
from group.consumer_members import TestMember, settle
from group.offsets_driver import NEWEST, OffsetsDriver, Said, commit_topic

NOBODY = UUID("99999999-9999-4999-8999-999999999999")


class Both(OffsetsDriver, ClassicDriver):
    """Offsets, and a classic group ``g`` to commit them."""


def test_a_commit_is_stored_with_all_that_came_with_it() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): (5, 3, "note"), ("u", 1): 7})
    assert driver.stored_offset("t", 0) == CommittedOffset(5, 3, "note", driver.now.wall_ms, -1, driver.ids["t"])
    assert driver.stored_offset("u", 1) == CommittedOffset(7, -1, "", driver.now.wall_ms, -1, driver.ids["u"])


def test_the_last_commit_counts() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    driver.committed({("t", 0): 3})
    assert driver.offsets() == {("t", 0): 3}


def test_topics_may_be_named_by_id() -> None:
    driver = OffsetsDriver()
    driver.committed({(driver.ids["t"], 0): 5}, version=NEWEST)
    assert driver.offsets() == {("t", 0): 5}


@pytest.mark.parametrize("version", [2, 5, 9])
def test_unknown_partitions_are_refused_one_by_one(version: int) -> None:
    driver = OffsetsDriver()
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    said = {("t", 0): 5, ("t", 4): 1, ("t", -1): 1, ("nope", 0): 1}
    assert driver.commit(said, version=version) == {
        ("t", 0): Error.NONE,
        ("t", 4): unknown,
        ("t", -1): unknown,
        ("nope", 0): unknown,
    }
    assert driver.offsets() == {("t", 0): 5}


def test_unknown_ids_are_refused_one_by_one() -> None:
    driver = OffsetsDriver()
    known = driver.ids["t"]
    said = {(known, 0): 5, (known, 9): 1, (NOBODY, 0): 1, (UUID(int=0), 0): 1}
    assert driver.commit(said, version=NEWEST) == {
        (known, 0): Error.NONE,
        (known, 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        (NOBODY, 0): Error.UNKNOWN_TOPIC_ID,
        (UUID(int=0), 0): Error.UNKNOWN_TOPIC_ID,
    }


def test_of_unknown_partitions_nothing_else_is_asked() -> None:
    driver = OffsetsDriver()
    assert driver.commit({("nope", 0): 1}, member="m", epoch=3) == {("nope", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert not driver.state.groups


@pytest.mark.parametrize(
    ("metadata", "fits"),
    [
        ("x" * 10, True),
        ("x" * 11, False),
        ("é" * 10, True),
        ("\U0001f600" * 5, True),
        ("\U0001f600" * 6, False),
        ("", True),
        (None, True),
    ],
)
def test_notes_have_a_limit_that_counts_as_java_counts(metadata: str | None, fits: bool) -> None:
    driver = OffsetsDriver(offset_metadata_max_bytes=10)
    error = Error.NONE if fits else Error.OFFSET_METADATA_TOO_LARGE
    assert driver.commit({("t", 0): (5, -1, metadata), ("t", 1): 6}) == {("t", 0): error, ("t", 1): Error.NONE}
    assert (("t", 0) in driver.offsets()) == fits


def test_negative_offsets_and_epochs_are_stored_as_they_are() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): (-1, -1, None), ("t", 1): (-7, -9, None), ("t", 2): (-(1 << 63), 0, None)})
    assert driver.offsets() == {("t", 0): -1, ("t", 1): -7, ("t", 2): -(1 << 63)}
    assert driver.stored_offset("t", 1).leader_epoch == -9


def test_whoever_commits_without_a_group_makes_one() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5}, "new")
    group = driver.state.groups["new"]
    assert isinstance(group, ClassicGroup)
    assert (group.state_name, group.protocol_type, group.is_empty) == ("Empty", "", True)
    driver.committed({("t", 0): 6}, "new", member="anybody")


def test_the_empty_name_is_a_group_too() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5}, "")
    assert driver.offsets("") == {("t", 0): 5}


@pytest.mark.parametrize("name", ["x" * 32767, "\U0001f600" * 8191, "ü\0\n", "группа", "a/b:c#d", " "])
def test_group_names_of_every_length_and_script_are_kept(name: str) -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5}, name)
    driver.reload()
    assert driver.offsets(name) == {("t", 0): 5}


@pytest.mark.parametrize(("version", "error"), [(8, Error.ILLEGAL_GENERATION), (9, Error.GROUP_ID_NOT_FOUND)])
def test_a_member_of_no_group_is_refused(version: int, error: Error) -> None:
    driver = OffsetsDriver()
    assert driver.commit_refused({("t", 0): 5}, "new", member="m", epoch=0, version=version) is error
    assert not driver.state.groups


def test_a_generation_in_an_empty_group_is_refused() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5})
    assert driver.commit_refused({("t", 0): 6}, member="m", epoch=0) is Error.UNKNOWN_MEMBER_ID
    assert driver.offsets() == {("t", 0): 5}


def test_members_commit_in_their_generation() -> None:
    driver = Both()
    first, second = driver.stable(2)
    driver.committed({("t", 0): 5}, member=first, epoch=1)
    driver.committed({("t", 1): 6}, member=second, epoch=1)
    assert driver.commit_refused({("t", 0): 7}, member=first, epoch=2) is Error.ILLEGAL_GENERATION
    assert driver.commit_refused({("t", 0): 7}, member="stranger", epoch=1) is Error.UNKNOWN_MEMBER_ID
    assert driver.commit_refused({("t", 0): 7}) is Error.UNKNOWN_MEMBER_ID
    assert driver.offsets() == {("t", 0): 5, ("t", 1): 6}


def test_a_refusal_by_the_group_is_not_said_of_unknown_partitions() -> None:
    driver = Both()
    driver.stable(1)
    assert driver.commit({("nope", 0): 7}, member="stranger", epoch=1) == {
        ("nope", 0): Error.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_a_commit_counts_as_a_heartbeat() -> None:
    driver = Both()
    (member,) = driver.stable(1)
    for _ in range(4):
        driver.advance(SESSION_MS - 1)
        driver.committed({("t", 0): 5}, member=member, epoch=1)
    assert driver.members == [member]
    driver.advance(SESSION_MS)
    assert driver.members == []


def test_a_member_of_a_consumer_group_may_be_an_epoch_behind_with_what_it_has() -> None:
    driver = OffsetsDriver()
    first, second = TestMember(driver, "first"), TestMember(driver, "second")
    first.join()
    settle(driver, first)
    epoch = first.epoch
    second.join()
    first.settle()
    assert first.epoch > epoch
    kept, given_up = min(first.numbers), min({0, 1, 2, 3} - set(first.numbers))
    driver.committed({("t", kept): 5}, member="first", epoch=epoch)
    assert driver.commit_refused({("t", given_up): 5}, member="first", epoch=epoch) is Error.STALE_MEMBER_EPOCH
    assert driver.commit_refused({("t", kept): 6, ("t", given_up): 5}, member="first", epoch=epoch) is (
        Error.STALE_MEMBER_EPOCH
    )
    assert driver.offsets() == {("t", kept): 5}
    assert driver.commit_refused({("t", kept): 5}, member="first", epoch=first.epoch + 1) is Error.STALE_MEMBER_EPOCH
    assert driver.commit_refused({("t", kept): 5}, member="stranger", epoch=1) is Error.UNKNOWN_MEMBER_ID


def test_a_retention_time_is_an_expiry() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5}, version=2, retention_ms=1000)
    assert driver.stored_offset("t", 0) == CommittedOffset(5, -1, "", driver.now.wall_ms, driver.now.wall_ms + 1000)


def test_an_endless_retention_time_is_the_longest_one() -> None:
    driver = OffsetsDriver()
    driver.committed({("t", 0): 5}, version=4, retention_ms=(1 << 63) - 1)
    assert driver.stored_offset("t", 0).expire_timestamp == (1 << 63) - 1


def test_a_commit_that_fits_into_no_batch_is_refused_before_it_is_made() -> None:
    driver = OffsetsDriver()
    driver.topic("wide", 25_000)
    said = {("wide", index): 1 for index in range(25_000)}
    assert driver.commit_refused(said) is Error.INVALID_COMMIT_OFFSET_SIZE
    assert not driver.state.groups
    driver.committed({("wide", index): 1 for index in range(3_000)})


def test_long_notes_count() -> None:
    driver = OffsetsDriver(offset_metadata_max_bytes=32767)
    driver.topic("wide", 60)
    assert (
        driver.commit_refused({("wide", index): (1, -1, "x" * 32767) for index in range(40)})
        is Error.INVALID_COMMIT_OFFSET_SIZE
    )


def test_a_refused_commit_says_so_of_what_is_known() -> None:
    driver = OffsetsDriver()
    said: dict[tuple[str, int], Said] = {("t", 0): 1, ("t", 9): 1, ("nope", 0): 1}
    request = OffsetCommitRequest(topics=[commit_topic(name, said) for name in ("t", "nope")])
    for error, shown in [
        (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_LOAD_IN_PROGRESS),
        (Error.RECORD_LIST_TOO_LARGE, Error.INVALID_COMMIT_OFFSET_SIZE),
    ]:
        response = offsets.refused_commit(driver.image, request, 9, Refused(error))
        assert [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.topics] == [
            ("t", [(0, shown), (9, Error.UNKNOWN_TOPIC_OR_PARTITION)]),
            ("nope", [(0, Error.UNKNOWN_TOPIC_OR_PARTITION)]),
        ]


def test_what_could_not_be_written_is_not_committed() -> None:
    driver = OffsetsDriver()
    driver.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    assert driver.commit_refused({("t", 0): 5}) is Error.COORDINATOR_NOT_AVAILABLE
    assert not driver.state.groups
    assert driver.offsets() == {}
