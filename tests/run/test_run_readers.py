"""Files that are read now and then stay open, but only so many."""

import os
from pathlib import Path

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
