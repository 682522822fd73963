"""Offsets by time."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.config.topic import TopicConfig
from cordwood.log import FoundOffset
from cordwood.record.batch import Codec, header_at
from cordwood.record.build import Record, build, seal
from cordwood.record.glance import BATCH_EFFORT
from log.builders import TINY, Bench, batch_of


def test_an_empty_log_has_an_end_and_no_times() -> None:
    log = Bench().log
    assert log.earliest() == FoundOffset(0)
    assert log.latest() == FoundOffset(0)
    assert log.find_timestamp(0) is None
    assert log.find_max_timestamp() is None


def test_earliest_and_latest_know_their_epoch() -> None:
    bench = Bench()
    bench.fill(3, epoch=1)
    bench.fill(3, epoch=4)
    assert bench.log.earliest() == FoundOffset(0, leader_epoch=1)
    assert bench.log.latest() == FoundOffset(6, leader_epoch=4)
    bench.log.advance_start(4, high_watermark=6)
    assert bench.log.earliest() == FoundOffset(4, leader_epoch=4)


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_the_first_record_of_that_time_is_found_inside_its_batch(codec: Codec) -> None:
    bench = Bench(TopicConfig())
    batch = build([Record(n, time, None, b"") for n, time in enumerate([30, 10, 50, 40, 50])], codec=codec)
    bench.log.append(memoryview(batch), leader_epoch=7, now=bench.now)
    expected = {0: (0, 30), 30: (0, 30), 31: (2, 50), 50: (2, 50)}
    for timestamp, (offset, time) in expected.items():
        assert bench.log.find_timestamp(timestamp) == FoundOffset(offset, time, 7)
    assert bench.log.find_timestamp(51) is None
    assert bench.log.find_max_timestamp() == FoundOffset(2, 50, 7)


def test_records_before_the_start_are_not_found() -> None:
    bench = Bench(TopicConfig())
    batch = batch_of([Record(n, time, None, b"") for n, time in enumerate([100, 50, 60])])
    bench.log.append(batch, leader_epoch=0, now=bench.now)
    bench.append(timestamp=70)
    bench.log.advance_start(1, high_watermark=4)
    assert bench.log.find_timestamp(55) == FoundOffset(2, 60, 0)
    assert bench.log.find_timestamp(61) == FoundOffset(3, 70, 0)


def test_records_without_time_are_never_found() -> None:
    bench = Bench()
    bench.fill(1)
    for _ in range(20):
        bench.append(timestamp=-1)
    assert bench.log.find_max_timestamp() == FoundOffset(0, bench.now.wall_ms, 0)
    bench = Bench()
    bench.append(timestamp=-1)
    assert bench.log.find_timestamp(5) is None


def test_the_first_of_records_without_time_is_the_newest() -> None:
    bench = Bench()
    for _ in range(20):
        bench.append(2, timestamp=-1)
    for start in (0, 1, 17, 39):
        bench.log.advance_start(start, high_watermark=40)
        assert bench.log.find_max_timestamp() == FoundOffset(start, -1, 0)
    bench.log.advance_start(40, high_watermark=40)
    assert bench.log.find_max_timestamp() is None


@pytest.mark.parametrize("config", [TopicConfig(), TINY])
def test_the_newest_of_the_records_that_are_left_is_found(config: TopicConfig) -> None:
    bench = Bench(config)
    for number, time in enumerate([90, 20, 60, 30, 60, 10, -1, 5, 40, 5, 5, 5]):
        bench.append(timestamp=time)
        assert bench.log.find_max_timestamp() == FoundOffset(0, 90, 0), number
    for start, offset, time in [(1, 2, 60), (2, 2, 60), (3, 4, 60), (5, 8, 40), (9, 9, 5), (11, 11, 5)]:
        bench.log.advance_start(start, high_watermark=12)
        assert bench.log.find_max_timestamp() == FoundOffset(offset, time, 0)
    bench.log.advance_start(12, high_watermark=12)
    assert bench.log.find_max_timestamp() is None


@pytest.mark.parametrize(("later", "found"), [(70, (2, 80)), (80, (2, 80)), (85, (4, 85))])
def test_a_batch_that_begins_before_the_start_counts_with_what_is_left_of_it(
    later: int, found: tuple[int, int]
) -> None:
    bench = Bench(TopicConfig())
    contents = [Record(n, time, None, b"") for n, time in enumerate([100, 50, 80, 80])]
    bench.log.append(batch_of(contents), leader_epoch=0, now=bench.now)
    bench.append(timestamp=later)
    bench.log.advance_start(1, high_watermark=5)
    assert bench.log.find_max_timestamp() == FoundOffset(*found, 0)


def test_batches_that_are_passed_over_count_as_effort() -> None:
    bench = Bench(TopicConfig())
    for number in range(200):
        bench.append(timestamp=1_000 if number < 100 else 5)
    bench.log.advance_start(100, high_watermark=200)
    for look in (bench.log.find_max_timestamp, lambda: bench.log.find_timestamp(900)):
        before = bench.log.effort
        look()
        assert bench.log.effort - before >= 100 * BATCH_EFFORT


def test_a_batch_that_can_not_be_read_stands_for_its_records() -> None:
    bench = Bench(TopicConfig())
    bench.append()
    batch = build([Record(0, 1_500_000, None, b"abc"), Record(1, 1_400_000, None, b"abc")])
    batch[-8:] = b"\xff" * 8
    seal(batch, header_at(batch))
    bench.log.append(memoryview(batch), leader_epoch=3, now=bench.now)
    assert bench.log.find_timestamp(1_450_000) == FoundOffset(1, 1_500_000, 3)
    assert bench.log.find_max_timestamp() == FoundOffset(1, 1_500_000, 3)


def test_the_newest_record_may_be_in_an_old_segment() -> None:
    bench = Bench()
    bench.fill(3)
    bench.append(timestamp=bench.now.wall_ms + 500)
    bench.fill(30)
    for _ in range(2):
        assert bench.log.find_max_timestamp() == FoundOffset(3, bench.now.wall_ms + 500, 0)
        assert bench.log.find_timestamp(bench.now.wall_ms + 1) == FoundOffset(3, bench.now.wall_ms + 500, 0)
        bench.restart()


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 80), st.booleans(), st.booleans())
def test_times_are_what_a_plain_list_gives(seed: int, count: int, ordered: bool, reopened: bool) -> None:
    random = Random(seed)
    bench = Bench(TINY)
    times: list[int] = []
    while len(times) < count:
        batch = [random.randrange(1000) for _ in range(random.randint(1, 4))]
        if ordered:
            batch = sorted(1000 + len(times) + time // 300 for time in batch)
        contents = [Record(n, time, None, b"v") for n, time in enumerate(batch)]
        bench.log.append(batch_of(contents), leader_epoch=0, now=bench.now)
        times += batch
    if reopened:
        bench.restart()
    start = random.randrange(len(times))
    bench.log.advance_start(start, high_watermark=len(times))
    for timestamp in random.choices(range(max(times) + 3), k=20):
        found = bench.log.find_timestamp(timestamp)
        expected = next((n for n, time in enumerate(times) if n >= start and time >= timestamp), None)
        assert (None if found is None else found.offset) == expected
    best = bench.log.find_max_timestamp()
    assert best is not None
    assert best.timestamp == max(times[start:])
    assert best.offset >= start
    assert times[best.offset] == best.timestamp
