"""What the simulated disk loses, and what it never loses."""

from random import Random

import pytest

from cordwood.errors import StorageError
from cordwood.sim.disk import PowerLost, SimDisk

SEEDS = range(50)


def outcomes(scenario: str) -> set[bytes | None]:
    """The content of the file after a crash, over many seeds."""
    found: set[bytes | None] = set()
    for seed in SEEDS:
        disk = SimDisk(Random(seed))
        file = disk.open("a", create=True)
        for step in scenario.split():
            if step == "sync":
                file.sync()
            elif step.isdigit():
                file.truncate(int(step))
            else:
                file.append(step.encode())
        disk.crash()
        found.add(disk.read("a") if disk.exists("a") else None)
    return found


def test_what_was_synced_is_never_lost() -> None:
    assert outcomes("abc sync") == {b"abc"}
    assert all(found is not None and found.startswith(b"abc") for found in outcomes("abc sync def"))


def test_what_was_not_synced_may_be_kept_lost_or_torn() -> None:
    found = outcomes("abc sync def")
    assert {b"abc", b"abcdef"} < found
    assert any(f not in (b"abc", b"abcd", b"abcde", b"abcdef") for f in found), "garbage, too"
    assert all(f is not None and len(f) <= 6 for f in found)


def test_a_name_may_be_lost_with_its_file() -> None:
    assert None in outcomes("abc")
    assert None not in outcomes("abc sync")


def test_a_truncation_may_be_undone() -> None:
    assert outcomes("abcdef sync 3") == {b"abc", b"abcdef"}
    assert outcomes("abcdef sync 3 sync") == {b"abc"}
    found = outcomes("abcdef sync 3 xyz")
    assert {b"abcdef", b"abcxyz", b"abc"} <= found
    assert outcomes("abcdef sync 4 2") == {b"abcdef", b"abcd", b"ab"}


def test_names_are_kept_in_order() -> None:
    found = set()
    for seed in SEEDS:
        disk = SimDisk(Random(seed))
        disk.make_directory("d")
        for name in ("one", "two", "three"):
            disk.open(f"d/{name}", create=True)
        disk.rename("d/one", "d/four")
        disk.remove("d/two")
        disk.crash()
        found.add(tuple(disk.list("d")) if disk.exists("d") else None)
    assert found == {
        None,
        (),
        ("one",),
        ("one", "two"),
        ("one", "three", "two"),
        ("four", "three", "two"),
        ("four", "three"),
    }


def test_replace_is_whole_or_not_at_all_and_brings_names_with_it() -> None:
    for seed in SEEDS:
        disk = SimDisk(Random(seed))
        disk.open("other", create=True)
        disk.replace("a", b"new")
        disk.crash()
        assert disk.read("a") == b"new"
        assert disk.exists("other")


def test_the_same_seed_loses_the_same() -> None:
    assert outcomes("abc sync defghi") == outcomes("abc sync defghi")


def test_open_files_are_gone_after_a_crash() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("a", create=True)
    file.sync()
    disk.crash()
    with pytest.raises(StorageError):
        file.append(b"x")


def test_power_and_operations_fail_when_told_to() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("a", create=True)
    disk.fails_after = 1
    file.append(b"x")
    with pytest.raises(StorageError):
        file.append(b"y")
    file.append(b"z")
    assert disk.read("a") == b"xz"
    disk.power_fails_after = 1
    file.append(b"1")
    with pytest.raises(PowerLost):
        file.append(b"2")
    with pytest.raises(PowerLost):
        disk.remove("a")
