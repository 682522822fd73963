"""A write that fails leaves nothing behind, though a part of it may have reached the file."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import StorageError
from cordwood.log import open_log
from cordwood.ports import Instant
from cordwood.record.build import build_values
from cordwood.run.disk import RealDisk, RealFile

CONTENT = b"what was there before"
LARGE = bytes(range(200))
PART = 100
NOW = Instant(1_700_000_000_000, 0)


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """A write that goes further writes what fits, and fails then, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def cannot_be_cut(descriptor: int, size: int) -> NoReturn:
    raise OSError("the disk fails")


@pytest.fixture
def disk(tmp_path: Path) -> RealDisk:
    return RealDisk(tmp_path / "data")


@pytest.fixture
def file(disk: RealDisk) -> RealFile:
    file = disk.open("file", create=True)
    file.append(CONTENT)
    return file


@pytest.fixture
def torn(disk: RealDisk, file: RealFile, monkeypatch: pytest.MonkeyPatch) -> RealFile:
    """A file with a part of a failed write behind its end, which could not be cut off either."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", cannot_be_cut)
        with no_file_longer_than(len(CONTENT) + PART), pytest.raises(StorageError, match="File too large"):
            file.append(LARGE)
    assert disk.read("file") == CONTENT + LARGE[:PART]
    return file


def test_a_failed_append_changes_nothing(disk: RealDisk, file: RealFile) -> None:
    with no_file_longer_than(len(CONTENT) + PART), pytest.raises(StorageError, match="File too large"):
        file.append(LARGE)
    assert (file.size, disk.read("file")) == (len(CONTENT), CONTENT)


def test_what_could_not_be_cut_off_goes_with_the_next_append(disk: RealDisk, torn: RealFile) -> None:
    torn.append(b"short")
    assert disk.read("file") == CONTENT + b"short"


@pytest.mark.parametrize("end", [RealFile.complete, lambda file: file.truncate(len(CONTENT))], ids=["complete", "cut"])
def test_what_could_not_be_cut_off_goes_when_the_file_ends(
    disk: RealDisk, torn: RealFile, end: Callable[[RealFile], None]
) -> None:
    end(torn)
    assert (torn.size, disk.read("file")) == (len(CONTENT), CONTENT)


def test_a_file_that_can_not_be_cut_is_written_on_where_it_ended(
    disk: RealDisk, torn: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", cannot_be_cut)
        torn.append(b"short")
        assert torn.read(0, torn.size) == CONTENT + b"short"
    torn.append(b"er")
    assert disk.read("file") == CONTENT + b"shorter"


def test_what_a_failed_append_left_of_an_empty_log_goes_when_that_is_closed(
    disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(disk, "t-0", TopicConfig(), now=NOW)
    log.begin_epoch(0)
    batch = build_values([CONTENT], timestamp=NOW.wall_ms)
    path = Path(disk.root) / log.segments[0].path(".log")
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", cannot_be_cut)
        with no_file_longer_than(len(batch) - 1), pytest.raises(StorageError, match="File too large"):
            log.append(memoryview(bytearray(batch)), leader_epoch=0, now=NOW)
    assert path.stat().st_size == len(batch) - 1
    log.prepare_to_close()
    assert path.stat().st_size == 0
