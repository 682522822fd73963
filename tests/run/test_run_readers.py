"""Files that are read now and then stay open, but only so many; that they were read is not written down."""

import fcntl
import os
import sys
from pathlib import Path

import pytest

from cordwood.run.disk import RealDisk


def test_the_readers_used_last_stay_open(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk._readers_max = 2
    for name in "abc":
        disk.open(name, create=True).append(name.encode())
    a, b = disk.reader("a"), disk.reader("b")
    assert disk.reader("a") is a
    disk.reader("c")  # b was not used for the longest time
    assert disk.reader("a") is a
    assert disk.reader("b") is not b


def test_a_reader_that_goes_is_closed_when_nobody_holds_it(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    disk._readers_max = 1
    for number in range(20):
        disk.open(str(number), create=True).append(b"x")
    before = len(os.listdir("/dev/fd"))
    for number in range(20):
        assert disk.reader(str(number)).read(0, 1) == b"x"
    assert len(os.listdir("/dev/fd")) == before + 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can leave the time of the last read as it is")
def test_reading_a_file_does_not_touch_it(tmp_path: Path) -> None:
    RealDisk(tmp_path).open("a", create=True).append(b"x")
    assert fcntl.fcntl(RealDisk(tmp_path).reader("a").fileno(), fcntl.F_GETFL) & os.O_NOATIME


@pytest.mark.skipif(sys.platform != "linux", reason="nobody else refuses that")
def test_a_file_of_somebody_else_is_opened_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system lets only the owner of a file read it without a trace."""
    really_open = os.open

    def open_as_a_guest(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_NOATIME:
            raise PermissionError(1, "Operation not permitted")
        return really_open(path, flags, mode)

    monkeypatch.setattr(os, "open", open_as_a_guest)
    file = RealDisk(tmp_path).open("a", create=True)
    file.append(b"x")
    assert file.read(0, 1) == b"x"
