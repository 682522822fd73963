"""Leader epochs: where each begins and ends, and their file."""

from random import Random

import pytest

from cordwood.errors import CorruptData
from cordwood.log.epochs import UNKNOWN_END, EpochEnd, EpochStart, LeaderEpochs
from cordwood.sim.disk import SimDisk
from log.builders import DIRECTORY, Bench

FILE = f"{DIRECTORY}/leader-epoch-checkpoint"


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs(SimDisk(Random(1)), "epochs", [EpochStart(*entry) for entry in entries])
    made.check()
    return made


def test_an_epoch_begins_with_its_first_record() -> None:
    known = epochs()
    assert known.latest == -1
    assert known.assign(0, 0)
    assert not known.assign(0, 5)
    assert known.assign(2, 10)
    assert list(known.entries) == [(0, 0), (2, 10)]
    assert known.latest == 2


def test_contradicting_epochs_go() -> None:
    known = epochs((0, 0), (2, 10), (3, 20))
    assert known.assign(4, 10)
    assert list(known.entries) == [(0, 0), (4, 10)]
    assert known.assign(1, 15)
    assert list(known.entries) == [(0, 0), (1, 15)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, UNKNOWN_END),
        (0, EpochEnd(0, 5)),
        (1, EpochEnd(1, 10)),
        (2, EpochEnd(1, 10)),
        (3, EpochEnd(3, 20)),
        (4, EpochEnd(4, 33)),
        (5, UNKNOWN_END),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, answer: EpochEnd) -> None:
    assert epochs((1, 5), (3, 10), (4, 20)).end_offset_for(asked, 33) == answer


def test_without_any_epoch_nothing_is_known() -> None:
    assert epochs().end_offset_for(0, 10) == UNKNOWN_END
    assert epochs().epoch_for(3) is None


def test_the_epoch_of_an_offset() -> None:
    known = epochs((1, 5), (3, 10))
    assert [known.epoch_for(offset) for offset in (4, 5, 9, 10, 99)] == [None, 1, 1, 3, 3]


def test_cut_at_the_end() -> None:
    known = epochs((1, 5), (3, 10), (4, 20))
    assert not known.truncate_from(21)
    assert known.truncate_from(10)
    assert list(known.entries) == [(1, 5)]


def test_cut_at_the_start_keeps_the_epoch_in_force() -> None:
    known = epochs((1, 5), (3, 10), (4, 20))
    assert not known.truncate_until(4)
    assert not known.truncate_until(5)
    assert known.truncate_until(12)
    assert list(known.entries) == [(3, 12), (4, 20)]
    assert known.truncate_until(20)
    assert list(known.entries) == [(4, 20)]


def test_the_file_is_kafkas() -> None:
    bench = Bench()
    bench.fill(3, epoch=0)
    bench.fill(3, epoch=7)
    assert bench.disk.read(FILE) == b"0\n2\n0 0\n7 3\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0\n",
        "0\n1",
        "0\n1\n",
        "0\n1\n0 0",
        "0\n2\n0 0\n",
        "0\n1\n0 0\n1 5\n",
        "1\n0\n",
        "0\n1\nx y\n",
        "0\n1\n1\n",
        "0\n1\n-1 0\n",
        "0\n2\n1 0\n0 5\n",
        "0\n2\n1 5\n2 5\n",
        "\0\0\0\0",
    ],
)
def test_a_broken_file_is_noticed_and_made_anew_from_the_log(text: str) -> None:
    bench = Bench()
    for epoch in (0, 0, 2, 2, 5):
        bench.fill(4, epoch=epoch)
    bench.restart()
    for clean in (True, False):
        bench.disk.replace(FILE, text.encode())
        with pytest.raises(CorruptData):
            LeaderEpochs.load(bench.disk, FILE)
        bench.open(clean=clean, recovery_point=20)
        assert [bench.log.end_offset_for(epoch) for epoch in (0, 2, 5)] == [(0, 8), (2, 16), (5, 20)]
        assert bench.disk.read(FILE) == b"0\n3\n0 0\n2 8\n5 16\n"


def test_only_after_a_stop_in_good_order_is_a_broken_file_worth_a_word() -> None:
    """It is written without waiting for the disk: every power loss may cost some of them, and nothing with them."""
    bench = Bench()
    bench.fill(4)
    bench.restart()
    bench.disk.replace(FILE, b"")
    bench.open(clean=False)
    assert not bench.said
    bench.disk.replace(FILE, b"")
    bench.open(clean=True, recovery_point=4)
    assert bench.said == [f"{DIRECTORY}: a checkpoint file is cut off; leader epochs are read from the log"]


def test_a_lost_file_is_made_anew_from_the_log() -> None:
    bench = Bench()
    for epoch in (0, 0, 2):
        bench.fill(4, epoch=epoch)
    bench.disk.remove(FILE)
    bench.crash(power=False)
    assert bench.log.end_offset_for(0) == (0, 8)
    assert bench.log.latest_epoch == 2


def test_epochs_that_were_given_up_before_a_crash_undid_the_deletion_are_found_again() -> None:
    bench = Bench()
    for epoch in range(4):
        bench.fill(5, epoch=epoch)
    bench.sync()
    bench.disk.replace(FILE, b"0\n1\n3 17\n")
    for clean in (True, False):
        bench.open(clean=clean, recovery_point=bench.log.recovery_checkpoint, log_start_offset=2)
        assert [bench.log.end_offset_for(epoch) for epoch in range(4)] == [(0, 5), (1, 10), (2, 15), (3, 20)]
        assert bench.log.earliest().leader_epoch == 0


def test_epochs_follow_truncation_and_deletion() -> None:
    bench = Bench()
    for epoch in range(5):
        bench.fill(4, epoch=epoch)
    bench.log.truncate(14, bench.now)
    assert bench.log.latest_epoch == 3
    bench.log.truncate(12, bench.now)
    assert bench.log.latest_epoch == 2
    bench.log.advance_start(6, high_watermark=12)
    assert bench.log.end_offset_for(0) == (0, 6)
    assert bench.disk.read(FILE) == b"0\n2\n1 6\n2 8\n"
    bench.log.check()
