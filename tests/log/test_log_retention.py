"""Which segments go, and what goes with them."""

from dataclasses import replace

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import Error
from cordwood.record.build import Record
from log.builders import DIRECTORY, START_MS, TINY, Bench, batch_of, instant, refused


def filled(retention_ms: int = -1, retention_bytes: int = -1, policy: tuple[str, ...] = ("delete",)) -> Bench:
    """20 batches of one record in 4 segments, one timestamp after the other."""
    config = replace(
        TINY, segment_bytes=430, retention_ms=retention_ms, retention_bytes=retention_bytes, cleanup_policy=policy
    )
    bench = Bench(config)
    for number in range(20):
        bench.append(timestamp=START_MS + number)
    assert [segment.base_offset for segment in bench.log.segments] == [0, 5, 10, 15]
    return bench


def deleted_bases(bench: Bench, *, now: int = START_MS, high_watermark: int = 20) -> list[int]:
    paths = bench.log.delete_old_segments(instant(now), high_watermark=high_watermark)
    bench.log.check()
    assert all(bench.disk.exists(path) for path in paths)
    return sorted({int(path.split("/")[1].split(".")[0]) for path in paths})


def test_nothing_goes_without_a_reason() -> None:
    bench = filled()
    assert deleted_bases(bench, now=START_MS * 1000) == []


def test_segments_go_when_their_newest_record_is_too_old() -> None:
    bench = filled(retention_ms=100)
    assert deleted_bases(bench, now=START_MS + 104) == []
    assert deleted_bases(bench, now=START_MS + 105) == [0]
    assert bench.log.log_start_offset == 5
    assert deleted_bases(bench, now=START_MS + 114) == [5]
    assert bench.names(".log") == [10, 15]
    with refused(Error.OFFSET_OUT_OF_RANGE):
        bench.log.read(9, 10, up_to_offset=20)


def test_even_the_last_segment_goes_by_age_and_a_new_one_begins() -> None:
    bench = filled(retention_ms=100)
    assert deleted_bases(bench, now=START_MS + 1000) == [0, 5, 10, 15]
    assert (bench.log.log_start_offset, bench.log.end_offset) == (20, 20)
    assert bench.names(".log") == [20]
    assert bench.append().first_offset == 20
    assert deleted_bases(bench, now=START_MS + 1) == []


def test_segments_without_times_count_from_when_they_were_seen() -> None:
    bench = Bench(replace(TINY, retention_ms=100))
    for _ in range(10):
        bench.append(timestamp=-1)
    assert deleted_bases(bench, now=START_MS + 100, high_watermark=10) == []
    assert 0 in deleted_bases(bench, now=START_MS + 101, high_watermark=10)


@pytest.mark.parametrize("follows", [False, True])
def test_segments_without_times_count_from_their_last_append(follows: bool) -> None:
    bench = Bench(TopicConfig(retention_ms=100))
    for number in range(10):
        bench.now = instant(START_MS + 30 * number)
        if follows:
            bench.log.append_as_follower(batch_of([Record(number, -1, None, b"v")]), now=bench.now)
        else:
            bench.append(timestamp=-1)
        assert deleted_bases(bench, now=bench.now.wall_ms, high_watermark=number + 1) == []
    assert deleted_bases(bench, now=START_MS + 370, high_watermark=10) == []
    assert deleted_bases(bench, now=START_MS + 371, high_watermark=10) == [0]


def test_a_segment_that_was_cut_counts_from_then() -> None:
    bench = Bench(TopicConfig(retention_ms=100))
    for _ in range(3):
        bench.append(timestamp=-1)
    bench.log.truncate(2, instant(START_MS + 50))
    assert deleted_bases(bench, now=START_MS + 150, high_watermark=2) == []
    assert deleted_bases(bench, now=START_MS + 151, high_watermark=2) == [0]


def test_a_segment_without_times_rolls_by_when_it_began() -> None:
    bench = Bench(TopicConfig(segment_ms=100))
    for number in range(5):
        bench.now = instant(START_MS + 30 * number)
        bench.append(timestamp=-1)
    assert [segment.base_offset for segment in bench.log.segments] == [0, 4]


def test_segments_go_as_long_as_enough_bytes_are_left() -> None:
    sizes = [segment.size for segment in filled().log.segments]
    assert deleted_bases(filled(retention_bytes=sum(sizes))) == []
    assert deleted_bases(filled(retention_bytes=sum(sizes[1:]) + 1)) == []
    assert deleted_bases(filled(retention_bytes=sum(sizes[1:]))) == [0]
    assert deleted_bases(filled(retention_bytes=sizes[3] - 1)) == [0, 5, 10]
    assert deleted_bases(filled(retention_bytes=0)) == [0, 5, 10, 15]


def test_nothing_at_or_beyond_the_high_watermark_goes() -> None:
    bench = filled(retention_ms=0)
    assert deleted_bases(bench, now=START_MS * 2, high_watermark=9) == [0]
    assert deleted_bases(bench, now=START_MS * 2, high_watermark=19) == [5, 10]
    assert bench.log.log_start_offset == 15


@pytest.mark.parametrize("policy", [("delete",), ("compact",), ()])
def test_what_lies_before_the_start_goes_under_every_policy(policy: tuple[str, ...]) -> None:
    bench = filled(policy=policy)
    bench.log.advance_start(14, high_watermark=20)
    assert deleted_bases(bench) == [0, 5]
    bench.log.advance_start(20, high_watermark=20)
    assert deleted_bases(bench) == [10]
    assert bench.log.log_start_offset == 20


def test_what_lies_before_the_start_goes_alone_where_only_that_is_asked_for() -> None:
    bench = filled(retention_ms=0, retention_bytes=0)
    assert bench.log.delete_before_start(high_watermark=20) == []
    bench.log.advance_start(14, high_watermark=20)
    assert bench.log.delete_before_start(high_watermark=4) == []
    assert bench.log.delete_before_start(high_watermark=20)
    bench.log.check()
    assert bench.names(".log") == [10, 15]
    assert bench.log.log_start_offset == 14


def test_a_compacted_log_keeps_old_segments() -> None:
    bench = filled(retention_ms=1, retention_bytes=1, policy=("compact",))
    assert deleted_bases(bench, now=START_MS * 2) == []


def test_deleted_files_are_still_there_and_readable_for_those_who_hold_a_slice() -> None:
    bench = filled(retention_ms=100)
    piece = bench.log.read(0, 1000, up_to_offset=20)
    assert piece is not None
    before = piece.read()
    deleted_bases(bench, now=START_MS + 105)
    assert bench.disk.exists(f"{DIRECTORY}/{0:020d}.log.deleted")
    assert piece.read() == before


def test_a_restart_removes_deleted_files() -> None:
    bench = filled(retention_ms=100)
    deleted_bases(bench, now=START_MS + 105)
    bench.restart()
    assert bench.log.log_start_offset == 5
    assert not [name for name in bench.disk.list(DIRECTORY) if "deleted" in name]


def test_the_start_moves_forward_only_and_not_beyond_the_high_watermark() -> None:
    bench = filled()
    with refused(Error.OFFSET_OUT_OF_RANGE):
        bench.log.advance_start(11, high_watermark=10)
    assert bench.log.advance_start(7, high_watermark=10)
    assert not bench.log.advance_start(6, high_watermark=10)
    assert bench.log.log_start_offset == 7
    bench.log.check()
    bench.restart()
    assert bench.log.log_start_offset == 7
