"""Truncation, and what followers append."""

from dataclasses import replace

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error, StorageError, TruncationError
from cordwood.record.build import Record, build
from log.builders import DIRECTORY, START_MS, TINY, Bench, outcome, refused


@pytest.mark.parametrize("offset", range(0, 31, 3))
def test_the_log_ends_where_it_was_cut_and_goes_on_from_there(offset: int) -> None:
    bench = Bench()
    bench.fill(10, each=3)
    before = bench.headers()
    bench.log.truncate(offset, bench.now)
    bench.log.check()
    assert bench.log.end_offset == offset
    assert bench.headers() == [header for header in before if header.last_offset < offset]
    assert bench.append(2).first_offset == offset
    bench.log.check()
    assert bench.offsets() == list(range(offset + 2))
    bench.crash(power=False)
    assert bench.offsets() == list(range(offset + 2))


def test_a_cut_inside_a_batch_takes_the_whole_batch() -> None:
    bench = Bench()
    bench.fill(10, each=3)
    bench.log.truncate(14, bench.now)
    assert bench.log.end_offset == 12
    bench.log.check()


def test_cutting_at_or_after_the_end_changes_nothing() -> None:
    bench = Bench()
    bench.fill(5)
    assert bench.log.truncate(5, bench.now) == []
    assert bench.log.truncate(50, bench.now) == []
    assert bench.log.end_offset == 5


def test_cutting_before_the_first_segment_begins_anew_there() -> None:
    bench = Bench()
    bench.fill(20)
    bench.log.advance_start(12, high_watermark=20)
    bench.log.delete_old_segments(bench.now, high_watermark=20)
    first = bench.log.segments[0].base_offset
    bench.log.truncate(first - 1, bench.now)
    bench.log.check()
    assert (bench.log.log_start_offset, bench.log.end_offset) == (first - 1, first - 1)
    assert bench.append().first_offset == first - 1


def test_a_log_can_begin_anew_anywhere() -> None:
    bench = Bench()
    bench.fill(20, epoch=3)
    removed = bench.log.restart_at(1000, bench.now)
    bench.log.check()
    assert len([path for path in removed if ".log" in path]) > 1
    assert (bench.log.log_start_offset, bench.log.end_offset, bench.log.latest_epoch) == (1000, 1000, -1)
    assert bench.names(".log") == [1000]
    assert bench.append(epoch=4).first_offset == 1000
    bench.restart()
    assert bench.offsets() == [1000]


def test_times_are_cut_with_the_records() -> None:
    bench = Bench(replace(TINY, segment_bytes=5000))
    for number in range(40):
        bench.append(timestamp=START_MS + number)
    bench.log.truncate(20, bench.now)
    bench.log.check()
    found = bench.log.find_max_timestamp()
    assert found is not None
    assert found.timestamp == START_MS + 19
    assert bench.log.find_timestamp(START_MS + 20) is None
    bench.append(timestamp=START_MS + 7)
    found = bench.log.find_max_timestamp()
    assert found is not None
    assert found.offset == 19


def test_a_sync_that_began_before_a_truncation_proves_nothing() -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    job = bench.log.files_to_sync()
    bench.log.truncate(5, bench.now)
    bench.fill(10)
    bench.log.synced(job, bench.now)
    assert bench.log.recovery_point == 0


def test_a_cut_that_fails_ends_the_use_of_the_log() -> None:
    failures = 0
    for changes in range(200):
        bench = Bench(replace(TINY, segment_bytes=300))
        bench.fill(30)
        bench.disk.fails_after = changes
        try:
            bench.log.truncate(5, bench.now)
        except TruncationError:
            failures += 1
        else:
            break
    assert failures > 2
    assert bench.log.end_offset == 5


def batch_at(
    offset: int, count: int = 1, *, epoch: int = 0, producer: tuple[int, int, int] = (-1, -1, -1)
) -> bytearray:
    return build(
        [Record(offset + n, START_MS, b"k", b"v") for n in range(count)],
        leader_epoch=epoch,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )


class TestFollower:
    def test_offsets_and_epochs_stay_as_they_are(self) -> None:
        bench = Bench()
        data = batch_at(0, 3, epoch=1) + batch_at(3, epoch=1) + batch_at(4, 2, epoch=5)
        result = bench.log.append_as_follower(memoryview(bytes(data)), now=bench.now)
        assert outcome(result) == (0, 5, -1, 0, False, None)
        bench.log.check()
        assert [(h.base_offset, h.leader_epoch) for h in bench.headers()] == [(0, 1), (3, 1), (4, 5)]
        assert bench.log.end_offset_for(1) == (1, 4)

    def test_a_cut_end_is_left_out(self) -> None:
        bench = Bench()
        data = bytes(batch_at(0) + batch_at(1))
        assert bench.log.append_as_follower(memoryview(data)[:-1], now=bench.now) is not None
        assert bench.log.end_offset == 1
        assert bench.log.append_as_follower(memoryview(data)[:20], now=bench.now) is None

    def test_many_batches_spread_over_segments_like_the_leaders(self) -> None:
        bench = Bench()
        data = b"".join(batch_at(offset) for offset in range(30))
        bench.log.append_as_follower(memoryview(data), now=bench.now)
        bench.log.check()
        assert bench.offsets() == list(range(30))
        assert len(bench.log.segments) == 6
        assert all(segment.size <= TINY.segment_bytes for segment in bench.log.segments)

    def test_producers_are_learned(self) -> None:
        bench = Bench()
        bench.log.append_as_follower(memoryview(batch_at(0, 2, producer=(9, 1, 0))), now=bench.now)
        with refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
            bench.append(producer=(9, 1, 3))
        assert bench.append(2, producer=(9, 1, 0)).duplicate

    @pytest.mark.parametrize("offset", [0, 1, 2])
    def test_what_is_there_already_is_refused_whole(self, offset: int) -> None:
        bench = Bench()
        bench.fill(3)
        with pytest.raises(CorruptData):
            bench.log.append_as_follower(memoryview(batch_at(3) + batch_at(offset)), now=bench.now)
        assert bench.log.end_offset == 3
        bench.log.check()

    def test_damaged_bytes_are_refused_whole(self) -> None:
        bench = Bench()
        data = batch_at(0) + batch_at(1)
        data[-1] ^= 1
        with pytest.raises(CorruptData):
            bench.log.append_as_follower(memoryview(data), now=bench.now)
        assert bench.log.end_offset == 0

    def test_a_marker_that_makes_no_sense_is_refused_whole(self) -> None:
        bench = Bench()
        marker = build([Record(1, 0, b"x", b"")], control=True, producer_id=1, producer_epoch=0)
        with pytest.raises(CorruptData):
            bench.log.append_as_follower(memoryview(batch_at(0) + marker), now=bench.now)
        assert bench.log.end_offset == 0
        bench.log.check()

    def test_a_leap_beyond_an_index_begins_a_segment(self) -> None:
        bench = Bench(TopicConfig())
        bench.append()
        far = 2**33
        bench.log.append_as_follower(memoryview(batch_at(far)), now=bench.now)
        assert bench.names(".log") == [0, far]
        bench.log.check()
        bench.crash(power=False)
        assert [header.base_offset for header in bench.headers()] == [0, far]

    def test_a_failed_write_leaves_what_was_written_before(self) -> None:
        bench = Bench()
        bench.append()
        bench.disk.fails_after = 0
        with pytest.raises(StorageError):
            bench.log.append_as_follower(memoryview(batch_at(1)), now=bench.now)
        bench.log.check()
        assert bench.log.end_offset == 1


def test_truncated_segments_do_not_come_back() -> None:
    """Their names are gone for good before the log file is cut: a crash never leaves a gap."""
    for seed in range(30):
        bench = Bench(seed=seed)
        bench.fill(20)
        bench.sync()
        checkpoint = bench.log.recovery_checkpoint
        bench.log.truncate(7, bench.now)
        bench.disk.crash()
        bench.open(recovery_point=checkpoint)
        assert bench.offsets() == list(range(bench.log.end_offset))
        assert bench.log.end_offset in (7, bench.log.segments[-1].base_offset + 5)
        assert not [name for name in bench.disk.list(DIRECTORY) if "deleted" in name]
