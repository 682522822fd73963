"""Opening a log: quickly after a clean stop, and after any other with everything that was synced and nothing half."""

from dataclasses import replace
from random import Random

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import Error
from cordwood.log import open_log
from cordwood.record.batch import header_at
from cordwood.record.build import Record, build
from cordwood.sim.disk import SimDisk
from log.builders import DIRECTORY, START_MS, TINY, Bench, instant, refused


def log_path(base_offset: int) -> str:
    return f"{DIRECTORY}/{base_offset:020d}.log"


def garbage(random: Random) -> bytes:
    return random.choice([bytes(100), random.randbytes(100), b"x", bytes(build([Record(0, 0, None, b"v")]))])


def test_a_new_log_is_empty_and_starts_where_it_is_told() -> None:
    bench = Bench()
    assert (bench.log.log_start_offset, bench.log.end_offset) == (0, 0)
    log = open_log(bench.disk, "other-0", TINY, now=instant(), log_start_offset=70)
    assert (log.log_start_offset, log.end_offset) == (70, 70)


def test_a_clean_start_reads_no_records() -> None:
    bench = Bench(TopicConfig())
    for sequence in range(200):
        bench.append(producer=(1, 0, sequence))
    bench.log.roll(bench.now)
    for sequence in range(200, 400):
        bench.append(producer=(1, 0, sequence))
    bench.restart()
    first = bench.log.segments[0]
    data = bytearray(bench.disk.read(first.path(".log")))
    data[100:5000] = bytes(4900)
    bench.disk.replace(first.path(".log"), bytes(data))
    bench.open(clean=True, recovery_point=400, check=False)
    assert bench.log.end_offset == 400
    assert bench.append(producer=(1, 0, 399)).duplicate


@pytest.mark.parametrize("size", range(1, 76, 4))
def test_a_torn_tail_is_cut(size: int) -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    whole = bench.log.segments[-1].size
    tail = bytes(build([Record(10, START_MS, b"key", b"value")]))
    assert len(tail) > size
    bench.disk.open(log_path(0)).append(tail[:size])
    bench.crash(power=False)
    assert bench.log.end_offset == 10
    assert bench.disk.open(log_path(0)).size == whole
    assert bench.append().first_offset == 10
    bench.log.check()


@pytest.mark.parametrize("seed", range(20))
def test_garbage_after_the_end_is_cut(seed: int) -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    bench.disk.open(log_path(0)).append(garbage(Random(seed)))
    bench.crash(power=False)
    assert bench.log.end_offset == 10


def test_a_damaged_batch_ends_the_log_and_later_segments_go() -> None:
    bench = Bench()
    for epoch in range(5):
        bench.fill(5, epoch=epoch)
    bases = bench.names(".log")
    middle = bases[2]
    data = bytearray(bench.disk.read(log_path(middle)))
    data[header_at(data).size + 70] ^= 1
    bench.disk.replace(log_path(middle), bytes(data))
    bench.crash(power=False)
    assert bench.log.end_offset == middle + 1
    assert bench.names(".log") == bases[:3]
    assert bench.names(".index") == bases[:3]
    assert bench.offsets() == list(range(middle + 1))
    assert bench.log.latest_epoch == 2
    assert max(bench.names(".snapshot")) <= middle + 1


def test_segments_before_the_recovery_point_are_trusted() -> None:
    bench = Bench()
    bench.fill(20)
    bench.sync()
    assert bench.log.recovery_checkpoint == bench.names(".log")[-1]
    data = bytearray(bench.disk.read(log_path(0)))
    data[70] ^= 1
    bench.disk.replace(log_path(0), bytes(data))
    bench.crash()
    assert bench.log.end_offset == 20


def test_a_segment_that_lost_its_end_without_a_trace_ends_the_log() -> None:
    bench = Bench()
    bench.fill(20)
    first = bench.log.segments[0]
    data = bench.disk.read(first.path(".log"))
    bench.disk.replace(first.path(".log"), data[: -header_at(data).size])
    expected = bench.names(".log")[1] - 1
    bench.crash(power=False)
    assert bench.log.end_offset == expected
    assert bench.names(".log") == [0]


def test_segments_behind_a_gap_are_kept_aside_and_said_to_be() -> None:
    bench = Bench()
    bench.fill(20)
    bases = bench.names(".log")
    kept = [bench.disk.read(log_path(base)) for base in bases[2:]]
    bench.disk.remove(log_path(bases[1]))
    bench.crash(power=False)
    assert bench.log.end_offset == bases[1]
    assert bench.names(".log.damaged") == bases[2:]
    assert [bench.disk.read(log_path(base) + ".damaged") for base in bases[2:]] == kept
    assert [line for line in bench.said if f"from offset {bases[2]} on" in line]
    bench.fill(20)
    bench.crash(power=False)
    assert bench.log.end_offset == bases[1] + 20
    assert bench.names(".log.damaged") == bases[2:]


def test_a_log_that_ends_before_it_begins_says_so() -> None:
    bench = Bench(TopicConfig())
    bench.fill(3)
    bench.open(log_start_offset=10)
    assert (bench.log.log_start_offset, bench.log.end_offset) == (10, 10)
    assert [line for line in bench.said if "ends at offset 3, before offset 10" in line]


def test_batches_of_an_older_leader_after_a_newer_one_end_the_log() -> None:
    bench = Bench(TopicConfig())
    bench.fill(3, epoch=5)
    bench.disk.open(log_path(0)).append(build([Record(3, 0, None, b"v")], leader_epoch=4))
    bench.crash(power=False)
    assert bench.log.end_offset == 3


def test_a_marker_that_makes_no_sense_ends_the_log() -> None:
    bench = Bench(TopicConfig())
    bench.fill(3)
    marker = build([Record(3, 0, b"x", b"")], leader_epoch=0, control=True, producer_id=1, producer_epoch=0)
    bench.disk.open(log_path(0)).append(marker)
    bench.crash(power=False)
    assert bench.log.end_offset == 3


def test_indexes_are_made_anew_whatever_they_were() -> None:
    for content in (None, b"", b"\x01", b"\xff" * 240, bytes(2400)):
        bench = Bench(replace(TINY, segment_bytes=1500))
        bench.fill(50)
        bench.restart()
        good = {name: bench.disk.read(f"{DIRECTORY}/{name}") for name in bench.disk.list(DIRECTORY) if "index" in name}
        assert len(good) == 6
        for name in good:
            bench.disk.remove(f"{DIRECTORY}/{name}")
            if content is not None:
                bench.disk.replace(f"{DIRECTORY}/{name}", content)
        bench.crash(power=False)
        bench.open(recovery_point=0)
        bench.restart()
        again = {name: bench.disk.read(f"{DIRECTORY}/{name}") for name in bench.disk.list(DIRECTORY) if "index" in name}
        assert again == good


def test_leftovers_are_removed() -> None:
    bench = Bench()
    bench.fill(3)
    names = ["00000000000000000099.log.deleted", "00000000000000000000.log.cleaned", "x.tmp", f"{0:020d}.index.swap"]
    orphans = ["00000000000000000050.index", "00000000000000000050.timeindex", "00000000000000000050.txnindex"]
    for name in names + orphans:
        bench.disk.replace(f"{DIRECTORY}/{name}", b"leftover")
    bench.disk.replace(f"{DIRECTORY}/partition.metadata", b"kept")
    bench.crash(power=False)
    assert not set(names + orphans) & set(bench.disk.list(DIRECTORY))
    assert bench.disk.exists(f"{DIRECTORY}/partition.metadata")
    assert bench.log.end_offset == 3


def test_strange_names_are_left_alone() -> None:
    bench = Bench()
    bench.fill(3)
    names = ["0.log", "abc.log", f"{'9' * 21}.log", f"{'٣' * 20}.log", ".log", "notes.txt"]
    for name in names:
        bench.disk.replace(f"{DIRECTORY}/{name}", b"?")
    bench.crash(power=False)
    assert set(names) <= set(bench.disk.list(DIRECTORY))
    assert bench.log.end_offset == 3


def test_a_start_beyond_the_end_begins_anew_there() -> None:
    bench = Bench()
    bench.fill(10)
    for clean in (True, False):
        bench.open(clean=clean, recovery_point=10, log_start_offset=50)
        assert (bench.log.log_start_offset, bench.log.end_offset) == (50, 50)
        assert bench.names(".log") == [50]


def test_a_clean_stop_that_left_a_broken_end_is_not_trusted() -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    bench.restart()
    bench.disk.open(log_path(0)).append(b"garbage" * 20)
    bench.open(clean=True, recovery_point=10)
    assert bench.log.end_offset == 10
    assert bench.append().first_offset == 10


def test_what_was_synced_is_there_after_losing_power_and_the_rest_is_a_prefix() -> None:
    for seed in range(60):
        random = Random(seed)
        bench = Bench(seed=seed)
        synced = 0
        for number in range(random.randint(1, 40)):
            bench.append(
                random.randint(1, 4), epoch=number // 10, producer=(1, number // 10, 0) if number % 10 == 0 else None
            )
            if random.random() < 0.1:
                bench.sync()
                synced = bench.log.end_offset
        before = bench.headers()
        bench.crash()
        after = bench.headers()
        assert bench.log.end_offset >= synced
        assert after == before[: len(after)]
        assert bench.log.end_offset == (after[-1].next_offset if after else 0)


def test_one_crash_after_another_loses_nothing_that_was_synced() -> None:
    for seed in range(30):
        bench = Bench(seed=seed)
        bench.fill(12)
        bench.sync()
        for _ in range(4):
            bench.fill(3)
            bench.crash()
            assert bench.log.end_offset >= 12
            assert bench.offsets() == list(range(bench.log.end_offset))


def test_times_and_retention_are_right_after_a_crash() -> None:
    for seed in range(20):
        bench = Bench(replace(TINY, retention_ms=100), seed=seed)
        for number in range(20):
            bench.append(timestamp=START_MS + number)
            bench.sync()
        bench.crash()
        found = bench.log.find_max_timestamp()
        assert found is not None
        assert found.timestamp == START_MS + 19
        largest = [segment.largest_timestamp for segment in bench.log.segments]
        assert largest == [START_MS + base - 1 for base in bench.names(".log")[1:]] + [START_MS + 19]


def test_the_log_start_survives_and_nothing_before_it_is_read() -> None:
    bench = Bench()
    bench.fill(20)
    bench.log.advance_start(9, high_watermark=20)
    bench.crash(power=False)
    assert bench.log.log_start_offset == 9
    with refused(Error.OFFSET_OUT_OF_RANGE):
        bench.log.read(8, 10, up_to_offset=20)


def test_segments_that_were_deleted_and_come_back_damaged_are_removed() -> None:
    bench = Bench()
    bench.fill(12)
    bench.log.advance_start(12, high_watermark=12)
    bench.log.delete_old_segments(bench.now, high_watermark=12)
    base = bench.log.segments[0].base_offset
    bench.disk.replace(log_path(0), b"damaged")
    bench.open(recovery_point=base, log_start_offset=12)
    assert bench.names(".log") == [base]
    assert (bench.log.log_start_offset, bench.log.end_offset) == (12, 12)


def test_every_log_has_its_own_directory() -> None:
    disk = SimDisk(Random(1))
    one = open_log(disk, "a-0", TINY, now=instant())
    two = open_log(disk, "a-1", TINY, now=instant())
    one.append(memoryview(build([Record(0, 0, None, b"v")])), leader_epoch=0, now=instant())
    assert (one.end_offset, two.end_offset) == (1, 0)
