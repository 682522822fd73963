"""When to sync, what to sync, and what may be relied on after it."""

from dataclasses import replace

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import StorageError
from cordwood.log.log import FLUSH_MESSAGES_MAX
from log.builders import DIRECTORY, TINY, Bench, instant


def test_the_recovery_point_follows_the_syncs() -> None:
    bench = Bench(TopicConfig())
    bench.fill(5)
    assert (bench.log.recovery_point, bench.log.unflushed_messages) == (0, 5)
    job = bench.log.files_to_sync()
    bench.fill(2)
    bench.log.synced(job, bench.now)
    assert (bench.log.recovery_point, bench.log.unflushed_messages) == (5, 2)
    bench.sync()
    assert bench.log.unflushed_messages == 0


def test_the_active_segment_is_always_read_after_a_crash() -> None:
    bench = Bench()
    bench.fill(17)
    bench.sync()
    assert bench.log.recovery_point == 17
    assert bench.log.recovery_checkpoint == bench.names(".log")[-1]
    bench.log.roll(bench.now)
    assert bench.log.recovery_checkpoint < bench.names(".log")[-1]
    bench.sync()
    assert bench.log.recovery_checkpoint == bench.names(".log")[-1]


def test_flush_messages_asks_for_a_sync() -> None:
    bench = Bench(TopicConfig(flush_messages=3))
    bench.append(2)
    assert not bench.log.sync_due(bench.now)
    bench.append()
    assert bench.log.sync_due(bench.now)
    bench.sync()
    assert not bench.log.sync_due(bench.now)


def test_more_messages_than_there_can_be_never_ask_for_a_sync() -> None:
    bench = Bench(TopicConfig(flush_messages=2**63 - 1))
    bench.append(2)
    assert not bench.log.sync_due(bench.now)
    assert bench.log.flush_messages == FLUSH_MESSAGES_MAX


def test_flush_ms_asks_for_a_sync_only_if_there_is_something_new() -> None:
    bench = Bench(TopicConfig(flush_ms=100))
    late = instant(bench.now.mono_ms + 100)
    assert not bench.log.sync_due(late)
    bench.append()
    assert not bench.log.sync_due(bench.now)
    assert bench.log.sync_due(late)


def test_a_complete_segment_asks_for_a_sync() -> None:
    bench = Bench()
    bench.fill(3)
    assert not bench.log.sync_due(bench.now)
    bench.log.roll(bench.now)
    assert bench.log.sync_due(bench.now)
    bench.log.files_to_sync()
    assert not bench.log.sync_due(bench.now)


def test_by_default_nothing_asks_for_a_sync() -> None:
    bench = Bench(TopicConfig())
    bench.fill(100)
    assert not bench.log.sync_due(instant(10**14))


@pytest.mark.parametrize("seed", range(10))
def test_a_clean_close_needs_no_recovery(seed: int) -> None:
    bench = Bench(replace(TINY, segment_bytes=900), seed=seed)
    for sequence in range(30):
        bench.append(producer=(1, 0, sequence), epoch=sequence // 7)
    job = bench.log.prepare_to_close()
    for file in job.files:
        file.sync()
    bench.disk.crash()
    before = bench.disk.usage()
    bench.open(clean=True, recovery_point=30)
    assert bench.disk.usage() == before
    assert bench.log.end_offset == 30
    assert bench.log.unflushed_messages == 0
    assert bench.append(producer=(1, 0, 29)).duplicate


def test_closing_an_unused_log_writes_nothing() -> None:
    bench = Bench()
    before = bench.disk.list("topic-0")
    bench.log.prepare_to_close()
    assert bench.disk.list("topic-0") == before == [f"{0:020d}.log"]


def test_segments_that_can_not_be_begun_do_not_gather_files_to_sync() -> None:
    """Whoever produces tries again and again."""
    bench = Bench()
    bench.fill(3)
    bench.sync()
    bench.disk.make_directory(f"{DIRECTORY}/{3:020d}.log")  # it is in the way
    for _ in range(20):
        with pytest.raises(StorageError):
            bench.log.roll(bench.now)
    assert len(bench.log.files_to_sync().files) <= 5
