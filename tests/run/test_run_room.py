"""Long files have room on the disk ahead of what is appended to them, and give it back."""

import ctypes
import os
from pathlib import Path

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.log import open_log
from cordwood.ports import Instant
from cordwood.record.build import build_values
from cordwood.run import disk as disk_module
from cordwood.run import room
from cordwood.run.disk import RealDisk, RealFile
from cordwood.run.room import take_room

MB = 1 << 20
PIECE = bytes(130_321)
NEGLIGIBLE_BYTES = 1 << 16  # the last block, and those that say where the others are


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    probe = RealDisk(tmp_path)
    plain, ahead = probe.open("plain", create=True), probe.open("ahead", create=True)
    for _ in range(8):
        plain.append(bytes(10_000))
    is_able = take_room(ahead.fileno(), 0, MB) and room_bytes(tmp_path / "ahead") >= MB
    if not is_able or room_bytes(tmp_path / "plain") > NEGLIGIBLE_BYTES:
        pytest.skip("this file system gives no room ahead, or takes some by itself")
    return RealDisk(tmp_path / "data")


def grown(disk: RealDisk, size: int, piece: bytes = PIECE) -> RealFile:
    file = disk.open("file", create=True)
    while file.size < size:
        file.append(piece)
    return file


def room_bytes(path: Path | str) -> int:
    """What a file holds of the disk beyond its length."""
    status = os.stat(path)
    return status.st_blocks * 512 - status.st_size


def test_a_long_file_has_room_ahead_and_is_no_longer_for_it(disk: RealDisk) -> None:
    file = grown(disk, 20 * MB)
    assert NEGLIGIBLE_BYTES < room_bytes(f"{disk.root}/file") <= file.size // 8 + NEGLIGIBLE_BYTES
    assert os.stat(f"{disk.root}/file").st_size == file.size
    assert len(disk.read("file")) == file.size


def test_there_is_never_more_room_than_the_most(disk: RealDisk) -> None:
    grown(disk, 160 * MB, bytes(4 * MB))
    assert room_bytes(f"{disk.root}/file") <= 16 * MB + NEGLIGIBLE_BYTES


def test_short_files_and_small_pieces_have_none(disk: RealDisk) -> None:
    grown(disk, 7 * MB)
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES
    file = grown(disk, 12 * MB, bytes(8_000))
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES
    file.append(PIECE)
    assert room_bytes(f"{disk.root}/file") > NEGLIGIBLE_BYTES


def test_a_complete_file_gives_its_room_back(disk: RealDisk) -> None:
    file = grown(disk, 20 * MB)
    size = file.size
    file.complete()
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES
    assert (file.size, os.stat(f"{disk.root}/file").st_size) == (size, size)


def test_what_a_process_left_behind_is_used_and_given_back_by_the_next(disk: RealDisk) -> None:
    grown(disk, 20 * MB).close()
    room = room_bytes(f"{disk.root}/file")
    again = disk.open("file")
    again.append(PIECE)
    assert room_bytes(f"{disk.root}/file") < room
    again.complete()
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES


def test_a_file_that_is_cut_has_no_room_and_grows_on(disk: RealDisk) -> None:
    file = grown(disk, 20 * MB)
    file.truncate(9 * MB)
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES
    file.append(b"x" * len(PIECE))
    assert room_bytes(f"{disk.root}/file") > NEGLIGIBLE_BYTES
    assert disk.read("file") == bytes(9 * MB) + b"x" * len(PIECE)


def test_who_is_given_none_does_without_and_asks_no_more(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def no_room(descriptor: int, start: int, length: int) -> bool:
        asked.append(start)
        return False

    monkeypatch.setattr(disk_module, "take_room", no_room)
    file = grown(disk, 10 * MB)
    assert len(asked) == 1
    file.complete()
    assert disk.read("file") == bytes(file.size)


def test_what_could_only_be_had_in_part_is_given_back(disk: RealDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_little(descriptor: int, start: int, length: int) -> bool:
        assert take_room(descriptor, start, length)
        return False

    monkeypatch.setattr(disk_module, "take_room", too_little)
    grown(disk, 8 * MB + len(PIECE))  # soon enough to have used little of it
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES


def test_the_last_of_a_disk_is_left_to_others(disk: RealDisk) -> None:
    file = disk.open("file", create=True)
    free = os.statvfs(disk.root).f_bavail * os.statvfs(disk.root).f_frsize
    assert not take_room(file.fileno(), 0, free // 32)
    assert room_bytes(f"{disk.root}/file") <= 0


@pytest.mark.parametrize("error", [ImportError("no ctypes here"), OSError("too many open files")])
def test_a_python_that_can_not_ask_does_without(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(name: str | None) -> object:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fails)
    room._fallocate.cache_clear()
    try:
        file = grown(disk, 9 * MB)
    finally:
        monkeypatch.undo()
        room._fallocate.cache_clear()
    assert room_bytes(f"{disk.root}/file") <= NEGLIGIBLE_BYTES
    assert len(disk.read("file")) == file.size


def test_segments_that_are_complete_hold_no_room(disk: RealDisk) -> None:
    log = open_log(disk, "t-0", TopicConfig(segment_bytes=10 * MB), now=Instant(1_700_000_000_000, 0))
    batch = build_values([PIECE], timestamp=1_700_000_000_000)
    while len(log.segments) < 2:
        log.append(memoryview(bytearray(batch)), leader_epoch=0, now=Instant(1_700_000_000_000, 0))
    while log.segments[1].size < 9.5 * MB:
        log.append(memoryview(bytearray(batch)), leader_epoch=0, now=Instant(1_700_000_000_000, 0))
    first, active = (f"{disk.root}/{segment.path('.log')}" for segment in log.segments)
    assert room_bytes(first) <= NEGLIGIBLE_BYTES
    assert room_bytes(active) > NEGLIGIBLE_BYTES
    log.prepare_to_close()
    assert room_bytes(active) <= NEGLIGIBLE_BYTES
