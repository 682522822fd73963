"""When logs are compacted, which first, and what happens to the work when the world changes meanwhile."""

from random import Random

from broker.harness import START, Harness, fetch, produce, produced
from cordwood.effects import Compact
from cordwood.errors import Error
from cordwood.record.batch import batches
from cordwood.record.build import Record, build, records
from cordwood.sim.disk import SimDisk
from cordwood.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse, FetchResponse, ProduceResponse

BACKOFF_MS = 15_000


def table(harness: Harness, name: str = "table", **config: object) -> None:
    settings: dict[str, object] = {
        "cleanup_policy": "compact",
        "internal_segment_bytes": 500,
        "min_cleanable_dirty_ratio": 0.2,
    }
    harness.topic(name, 1, **{**settings, **config})


def put(harness: Harness, topic: str, *writes: tuple[bytes, bytes | None]) -> None:
    client = harness.connect()
    for key, value in writes:
        data = bytes(build([Record(0, harness.now.wall_ms, key, value)]))
        assert produced(client.ask(produce(topic, data), 9, ProduceResponse)).error_code == Error.NONE
    client.disconnect()


def fill(harness: Harness, topic: str, count: int = 40, keys: int = 2) -> None:
    put(harness, topic, *[(b"%d" % (n % keys), b"value %d" % n) for n in range(count)])
    harness.advance(1_500)  # segments are synced once a second


def stored(harness: Harness, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """What a consumer reads from start to end."""
    client = harness.connect()
    found: list[tuple[int, bytes | None, bytes | None]] = []
    offset = harness.partition(topic).log.log_start_offset
    while offset < harness.partition(topic).log.end_offset:
        response = client.ask(fetch((topic, 0, offset)), 4, FetchResponse)
        data = response.responses[0].partitions[0].records
        assert isinstance(data, memoryview | bytes)
        for raw, header in batches(memoryview(data)):
            found += [(r.offset, r.key, r.value) for r in records(raw, header, limit=1 << 20)]
            offset = header.next_offset
    client.disconnect()
    return found


def files(harness: Harness, topic: str, ending: str) -> list[str]:
    return [name for name in harness.disk.list(f"{topic}-0") if name.endswith(ending)]


def test_a_dirty_log_is_compacted_and_its_old_files_go_later() -> None:
    harness = Harness()
    table(harness, file_delete_delay_ms=60_000)
    fill(harness, "table")
    size = harness.partition("table").log.size
    harness.advance(BACKOFF_MS)
    log = harness.partition("table").log
    assert log.cleaned_to == log.segments[-1].base_offset > 0
    assert log.size < size / 2
    assert "table-0 is compacted: offsets 0 to" in harness.logger
    assert files(harness, "table", ".deleted")
    found = stored(harness, "table")
    assert {(key, value) for _, key, value in found} >= {(b"0", b"value 38"), (b"1", b"value 39")}
    harness.advance(60_000)
    assert not files(harness, "table", ".deleted")


def test_a_log_that_is_not_to_be_compacted_is_left_alone() -> None:
    harness = Harness()
    harness.topic("plain", internal_segment_bytes=500)
    fill(harness, "plain")
    harness.advance(5 * BACKOFF_MS)
    assert len(stored(harness, "plain")) == 40


def test_compaction_can_be_switched_off() -> None:
    for harness in (Harness(log_cleaner_enable="false"), Harness(log_cleaner_threads=0)):
        table(harness)
        fill(harness, "table")
        harness.advance(5 * BACKOFF_MS)
        assert len(stored(harness, "table")) == 40


def test_a_log_waits_until_enough_of_it_is_dirty() -> None:
    harness = Harness()
    table(harness, min_cleanable_dirty_ratio=0.5)
    fill(harness, "table", 40, keys=1000)
    harness.advance(BACKOFF_MS)
    cleaned = harness.partition("table").log.cleaned_to
    assert cleaned > 30
    fill(harness, "table", 20)
    harness.advance(BACKOFF_MS)
    assert harness.partition("table").log.cleaned_to == cleaned
    fill(harness, "table", 40)
    harness.advance(BACKOFF_MS)
    assert harness.partition("table").log.cleaned_to > cleaned


def test_what_is_overdue_is_compacted_however_little_it_is() -> None:
    harness = Harness()
    table(harness, min_cleanable_dirty_ratio=1, max_compaction_lag_ms=60_000)
    fill(harness, "table")
    harness.advance(40_000)
    assert harness.partition("table").log.cleaned_to == 0
    harness.advance(60_000)
    assert harness.partition("table").log.cleaned_to > 0


def test_the_dirtiest_log_comes_first_and_one_at_a_time() -> None:
    harness = Harness()
    table(harness, "half")
    fill(harness, "half", 40, keys=1000)
    harness.advance(BACKOFF_MS)
    table(harness, "dirty")
    harness.hold_compactions = True
    fill(harness, "half", 30, keys=1000)
    fill(harness, "dirty", 40, keys=1000)
    harness.advance(3 * BACKOFF_MS)
    assert [type(effect) for effect in harness.held] == [Compact]
    before = harness.partition("half").log.cleaned_to
    harness.release(1)
    assert harness.partition("dirty").log.cleaned_to > 0
    assert harness.partition("half").log.cleaned_to == before
    assert len(harness.held) == 1, "the next one begins at once"
    harness.release()
    assert harness.partition("half").log.cleaned_to > before


def test_a_fetch_under_way_gets_what_the_old_segments_had() -> None:
    harness = Harness()
    table(harness)
    fill(harness, "table")
    piece = harness.partition("table").log.read(0, 10_000, up_to_offset=40)
    assert piece is not None
    before = piece.read()
    harness.advance(2 * BACKOFF_MS + 60_000)
    assert harness.partition("table").log.cleaned_to > 0
    assert piece.read() == before


def test_how_far_a_log_is_compacted_is_known_after_a_restart() -> None:
    harness = Harness()
    table(harness)
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    cleaned, found = harness.partition("table").log.cleaned_to, stored(harness, "table")
    text = harness.disk.read("cleaner-offset-checkpoint").decode()
    assert text == f"0\n1\ntable 0 {cleaned}\n"
    harness.stop()
    harness.disk.kill()
    harness.start()
    assert harness.partition("table").log.cleaned_to == cleaned
    assert stored(harness, "table") == found
    harness.lose_power()
    harness.start()
    assert harness.partition("table").log.cleaned_to == cleaned
    assert stored(harness, "table") == found


def test_a_new_topic_of_the_same_name_is_dirty_from_its_start() -> None:
    harness = Harness()
    table(harness)
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    delete(harness, "table")
    table(harness)
    assert harness.partition("table").log.cleaned_to == 0
    harness.lose_power()
    harness.start()
    assert harness.partition("table").log.cleaned_to == 0


def delete(harness: Harness, topic: str) -> None:
    client = harness.connect()
    client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 4, DeleteTopicsResponse)
    client.disconnect()


def test_a_topic_that_is_deleted_while_it_is_compacted_stays_deleted() -> None:
    harness = Harness()
    table(harness)
    fill(harness, "table")
    harness.hold_compactions = True
    harness.advance(BACKOFF_MS)
    assert len(harness.held) == 1
    delete(harness, "table")
    harness.release()
    assert "could not be compacted" not in harness.logger
    table(harness)
    fill(harness, "table")
    harness.hold_compactions = False
    harness.advance(BACKOFF_MS)
    assert harness.partition("table").log.cleaned_to > 0


def test_a_topic_made_anew_while_the_old_one_is_compacted_is_not_touched() -> None:
    harness = Harness()
    table(harness)
    fill(harness, "table")
    harness.hold_compactions = True
    harness.advance(BACKOFF_MS)
    delete(harness, "table")
    table(harness)
    fill(harness, "table", 30)
    harness.release(1)
    assert len(stored(harness, "table")) == 30
    assert not files(harness, "table", ".cleaned")
    harness.release()


def test_retention_beside_compaction() -> None:
    harness = Harness(log_retention_check_interval_ms=1000)
    table(harness, cleanup_policy="compact,delete", retention_ms=100_000)
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    log = harness.partition("table").log
    assert log.cleaned_to > 0
    assert log.log_start_offset == 0
    harness.hold_compactions = True
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    assert len(harness.held) == 1
    harness.advance(70_000)
    assert log.log_start_offset > 0, "old segments go while the others are compacted"
    harness.hold_compactions = False
    harness.release()
    harness.broker.check()
    assert stored(harness, "table")[-1][2] == b"value 39"


def test_a_damaged_log_is_left_alone_for_a_while_and_others_go_on() -> None:
    harness = Harness()
    table(harness, "bad")
    table(harness, "good")
    fill(harness, "bad")
    fill(harness, "good")
    harness.damage("bad-0/00000000000000000000.log", 70)
    harness.advance(2 * BACKOFF_MS)
    assert harness.partition("bad").log.cleaned_to == 0
    assert harness.partition("good").log.cleaned_to > 0
    lines = [line for line in harness.logger.lines if "bad-0 could not be compacted" in line]
    assert len(lines) == 1
    assert not files(harness, "bad", ".cleaned")
    harness.damage("bad-0/00000000000000000000.log", 70)  # turned back
    harness.advance(10 * 60_000)
    assert harness.partition("bad").log.cleaned_to > 0


def test_a_disk_that_fails_at_any_point_costs_no_record() -> None:
    for changes in range(0, 150, 4):
        harness = Harness(disk=SimDisk(Random(changes)))
        table(harness)
        fill(harness, "table")
        harness.hold_compactions = True
        harness.advance(BACKOFF_MS)
        harness.hold_syncs = True  # the broker does not outlive a checkpoint that cannot be synced
        harness.disk.fails_after = changes
        harness.release(1)
        harness.disk.fails_after = None
        harness.hold_syncs = False
        last = {(b"0", b"value 38"), (b"1", b"value 39")}
        assert {(key, value) for _, key, value in stored(harness, "table")} >= last
        put(harness, "table", (b"2", b"after"))
        harness.kill()
        harness.start()
        found = {(key, value) for _, key, value in stored(harness, "table")}
        assert found >= {*last, (b"2", b"after")}
        assert not files(harness, "table", ".swap")


def test_a_small_buffer_takes_several_rounds() -> None:
    harness = Harness(log_cleaner_dedupe_buffer_size=160 * 5)
    table(harness, min_cleanable_dirty_ratio=0)
    fill(harness, "table", 60, keys=20)
    harness.advance(BACKOFF_MS)
    log = harness.partition("table").log
    assert log.cleaned_to == log.segments[-1].base_offset
    assert len([line for line in harness.logger.lines if "is compacted" in line]) > 5
    assert harness.now.wall_ms < START.wall_ms + 2 * BACKOFF_MS, "it does not rest in between"


def test_a_load_factor_beyond_all_numbers_uses_the_whole_buffer() -> None:
    harness = Harness(log_cleaner_io_buffer_load_factor=1.7e308)
    table(harness)
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    assert harness.partition("table").log.cleaned_to > 0


def test_deletions_are_forgotten_after_their_time() -> None:
    harness = Harness()
    table(harness, delete_retention_ms=100_000)
    put(harness, "table", (b"gone", b"value"), (b"gone", None))
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    assert (1, b"gone", None) in stored(harness, "table")
    assert (0, b"gone", b"value") not in stored(harness, "table")
    harness.advance(100_000)
    fill(harness, "table")
    harness.advance(BACKOFF_MS)
    assert (1, b"gone", None) not in stored(harness, "table")
