"""What every disk must do, checked on the real one and on the simulated one."""

import os
from pathlib import Path
from random import Random

import pytest

from cordwood.errors import StorageError
from cordwood.ports import Disk, FileSlice
from cordwood.run.disk import RealDisk
from cordwood.sim.disk import SimDisk


@pytest.fixture(params=["real", "sim"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "real":
        return RealDisk(tmp_path / "data")
    return SimDisk(Random(1))


def test_appends_add_up(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"one")
    file.append(bytearray(b"two"))
    file.append(memoryview(b"three")[1:3])
    assert file.size == 8
    assert file.read(0, 100) == b"onetwohr"
    assert disk.read("a") == b"onetwohr"


def test_a_read_gives_fewer_bytes_only_at_the_end(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"0123456789")
    assert file.read(2, 3) == b"234"
    assert file.read(8, 5) == b"89"
    assert file.read(10, 5) == b""
    assert file.read(50, 5) == b""


def test_an_opened_file_goes_on_where_it_ended(disk: Disk) -> None:
    disk.open("a", create=True).append(b"one")
    again = disk.open("a")
    assert again.size == 3
    again.append(b"two")
    assert disk.read("a") == b"onetwo"


def test_truncate_cuts_and_appends_follow_the_cut(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"0123456789")
    file.truncate(4)
    assert file.size == 4
    file.append(b"x")
    assert disk.read("a") == b"0123x"


def test_sync_and_close_can_be_called(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"x")
    file.sync()
    file.close()
    with pytest.raises(StorageError):
        file.append(b"y")
    assert disk.read("a") == b"x"


def test_a_file_stays_readable_after_it_was_renamed_or_removed(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"content")
    disk.rename("a", "b")
    assert file.read(0, 7) == b"content"
    disk.remove("b")
    assert FileSlice(file, 3, 2).read() == b"te"


def test_what_is_not_there_can_not_be_opened_read_renamed_or_listed(disk: Disk) -> None:
    for attempt in (
        lambda: disk.open("gone"),
        lambda: disk.read("gone"),
        lambda: disk.rename("gone", "b"),
        lambda: disk.list("gone"),
        lambda: disk.open("gone/a", create=True),
        lambda: disk.replace("gone/a", b""),
    ):
        with pytest.raises(StorageError):
            attempt()


def test_what_is_not_there_can_be_removed(disk: Disk) -> None:
    disk.remove("gone")
    disk.remove_tree("gone")
    assert not disk.exists("gone")


def test_replace_makes_the_whole_content(disk: Disk) -> None:
    disk.replace("a", b"a long first content")
    disk.replace("a", b"short")
    assert disk.read("a") == b"short"
    assert disk.list("") == ["a"]


def test_directories_are_made_with_parents_listed_sorted_and_removed_whole(disk: Disk) -> None:
    disk.make_directory("x/y")
    disk.make_directory("x/y")
    disk.replace("x/b", b"1")
    disk.replace("x/a", b"2")
    disk.replace("x/y/deep", b"3")
    assert disk.list("x") == ["a", "b", "y"]
    assert disk.list("") == ["x"]
    assert disk.exists("x/y")
    disk.remove_tree("x")
    assert disk.list("") == []
    assert not disk.exists("x/y/deep")


def test_rename_moves_directories_with_all_below(disk: Disk) -> None:
    disk.make_directory("x/y")
    disk.replace("x/y/deep", b"3")
    disk.rename("x", "z")
    assert disk.read("z/y/deep") == b"3"
    assert not disk.exists("x")


def test_rename_replaces_a_file(disk: Disk) -> None:
    disk.replace("a", b"new")
    disk.replace("b", b"old")
    disk.rename("a", "b")
    assert disk.read("b") == b"new"
    assert disk.list("") == ["b"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", "a//b", ".", "a/.", "a\0b", "a/"])
def test_a_path_can_not_leave_the_tree(disk: Disk, path: str) -> None:
    for attempt in (
        lambda: disk.open(path, create=True),
        lambda: disk.read(path),
        lambda: disk.replace(path, b""),
        lambda: disk.exists(path),
        lambda: disk.list(path),
        lambda: disk.make_directory(path),
        lambda: disk.rename(path, "b"),
        lambda: disk.rename("b", path),
        lambda: disk.remove(path),
        lambda: disk.remove_tree(path),
    ):
        with pytest.raises(StorageError):
            attempt()


def test_usage_is_plausible(disk: Disk) -> None:
    total, free = disk.usage()
    assert 0 < free <= total


def test_a_reader_sees_what_is_appended_later(disk: Disk) -> None:
    file = disk.open("a", create=True)
    file.append(b"one")
    assert disk.reader("a").read(0, 10) == b"one"
    file.append(b"two")
    assert disk.reader("a").read(3, 3) == b"two"
    assert disk.reader("a").read(3, 10) == b"two"


def test_a_reader_is_of_the_file_that_has_the_name_now(disk: Disk) -> None:
    disk.make_directory("d")
    for path in ("d/a", "d/b", "d/c"):
        disk.open(path, create=True).append(path.encode())
        assert disk.reader(path).read(0, 3) == path.encode()
    old = disk.reader("d/a")
    disk.rename("d/b", "d/a")
    assert disk.reader("d/a").read(0, 3) == b"d/b"
    assert old.read(0, 3) == b"d/a"
    disk.replace("d/c", b"new")
    assert disk.reader("d/c").read(0, 3) == b"new"
    for path in ("d/b", "gone"):
        with pytest.raises(StorageError):
            disk.reader(path)


def test_a_removed_file_has_no_reader(disk: Disk) -> None:
    disk.make_directory("d")
    disk.make_directory("e")
    for path in ("a", "d/a", "e/a"):
        disk.open(path, create=True).append(b"x")
        disk.reader(path)
    disk.remove("a")
    disk.remove_tree("d")
    disk.rename("e", "f")
    for path in ("a", "d/a", "e/a"):
        with pytest.raises(StorageError):
            disk.reader(path)
    assert disk.reader("f/a").read(0, 1) == b"x"


# ---------------------------------------------------------------------- names on the real disk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The directories that were brought to the disk, by name."""
    found: list[str] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        sync(descriptor)
        node = os.fstat(descriptor).st_ino
        found.extend(path.name for path in tmp_path.rglob("*") if path.is_dir() and path.stat().st_ino == node)

    monkeypatch.setattr(os, "fsync", note)
    return found


def test_a_directory_is_synced_once_for_all_its_names(tmp_path: Path, synced: list[str]) -> None:
    disk = RealDisk(tmp_path / "root")
    disk.make_directory("t-0")
    files = [disk.open(f"t-0/{name}", create=True) for name in ("log", "index", "timeindex")]
    for file in files:
        file.sync()
    assert synced == ["t-0", "root"]
    disk.make_directory("t-1")
    disk.open("t-1/log", create=True).sync()
    assert synced[2:] == ["t-1", "root"]


def test_a_name_that_came_later_is_synced_too(tmp_path: Path, synced: list[str]) -> None:
    disk = RealDisk(tmp_path / "root")
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True).sync()
    disk.open("t-0/b", create=True).sync()
    assert synced == ["t-0", "root", "t-0"]
    disk.rename("t-0/b", "t-0/c")
    disk.open("t-0/c").sync()
    assert synced[3:] == ["t-0"]
    disk.replace("t-0/checkpoint", b"x")
    assert synced[4:] == ["t-0"]


def test_names_that_another_process_left_are_synced(tmp_path: Path, synced: list[str]) -> None:
    before = RealDisk(tmp_path / "root")
    before.make_directory("t-0")
    before.open("t-0/a", create=True)
    RealDisk(tmp_path / "root").open("t-0/a").sync()
    assert synced == ["t-0", "root"]


@pytest.mark.parametrize("goes", ["renamed", "removed"])
def test_a_directory_that_is_another_one_by_now_is_synced_again(tmp_path: Path, synced: list[str], goes: str) -> None:
    disk = RealDisk(tmp_path / "root")
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True).sync()
    if goes == "renamed":
        disk.rename("t-0", "t-0.deleted")
    else:
        disk.remove_tree("t-0")
    synced.clear()
    disk.make_directory("t-0")
    disk.open("t-0/a", create=True).sync()
    assert synced == ["t-0", "root"]
