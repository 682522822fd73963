"""Compaction: the last record of each key stays where it was, and what must stay besides does."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData, StorageError
from cordwood.log.compaction_keys import KeyMap, digest, keys_max
from cordwood.record.batch import DELETE_HORIZON, Codec, batches, header_at
from cordwood.record.build import seal
from cordwood.record.control import ControlType
from cordwood.record.subset import RecordSpan
from cordwood.sim.disk import PowerLost
from log.builders import DIRECTORY, START_MS
from log.compacting import COMPACT, Table, Write, work

WIDE = replace(COMPACT, segment_bytes=100_000)
"""Everything that is compacted together becomes one segment."""


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    table = Table()
    for n in range(10):
        table.put((b"a", b"%d" % n), (b"b", b"%d" % n))
    table.roll()
    table.put((b"c", b"active"))
    table.compact()
    assert table.all() == [(18, b"a", b"9"), (19, b"b", b"9"), (20, b"c", b"active")]
    assert table.log.log_start_offset == 0
    assert table.first_dirty == 20


def test_what_is_active_is_neither_changed_nor_looked_at() -> None:
    table = Table()
    table.put((b"a", b"1"))
    table.roll()
    table.put((b"a", b"2"))
    table.compact()
    assert table.all() == [(0, b"a", b"1"), (1, b"a", b"2")]


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), (b"b", b"2"), codec=Codec.ZSTD)
    table.put((b"c", b"3"))
    table.roll()
    before = table.disk.read(f"{DIRECTORY}/{0:020d}.log")
    table.compact()
    assert table.disk.read(f"{DIRECTORY}/{0:020d}.log") == before


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_loses_records_keeps_its_offsets_its_codec_and_its_producer(codec: Codec) -> None:
    table = Table(WIDE)
    table.put((b"a", b"old"), (b"b", b"x" * 50), (b"a", b"old"), codec=codec, producer=(7, 1, 10))
    table.put((b"a", b"new"))
    table.roll()
    table.compact()
    header, contents = table.stored()[0]
    assert [(r.offset, r.key, r.value) for r in contents] == [(1, b"b", b"x" * 50)]
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 10)
    assert header.codec is codec


def test_the_largest_timestamp_is_that_of_what_is_left() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), (b"b", b"2"), timestamps=[START_MS + 900, START_MS + 100])
    table.put((b"a", b"3"), timestamps=[START_MS])
    table.roll()
    table.compact()
    header, contents = table.stored()[0]
    assert header.max_timestamp == contents[0].timestamp == START_MS + 100
    assert table.log.segments[0].largest_timestamp == START_MS + 100
    found = table.log.find_timestamp(START_MS + 100)
    assert found is not None
    assert found.offset == 1


def test_what_is_left_without_times_is_as_young_as_before() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), timestamps=[-1])
    table.pass_ms(500)
    table.put((b"a", b"2"), (b"b", b"1"), timestamps=[-1, -1])
    table.roll()
    table.pass_ms(500)
    table.compact()
    assert table.log.segments[0].largest_timestamp == START_MS + 500


def test_a_batch_with_the_brokers_time_keeps_it() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), (b"b", b"2"), log_append_time=True)
    table.put((b"a", b"3"))
    table.roll()
    table.compact()
    header, contents = table.stored()[0]
    assert header.has_log_append_time
    assert header.max_timestamp == contents[0].timestamp == START_MS


def test_records_without_a_key_go() -> None:
    table = Table(WIDE)
    table.put((None, b"1"), (b"a", b"2"))
    table.put((None, b"3"))
    table.put((b"b", b"4"))
    table.roll()
    compaction = table.compact()
    assert table.all() == [(1, b"a", b"2"), (3, b"b", b"4")]
    assert compaction.dropped_keyless == 2
    assert "2 records had no key" in str(compaction)


def test_records_that_make_no_sense_stay_as_they_are() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"))
    path = f"{DIRECTORY}/{1:020d}.log"
    table.log.roll(table.now)
    table.put((b"a", b"2"), (b"b", b"3"))
    table.roll()
    file = table.disk.open(path)
    data = bytearray(file.read(0, file.size))
    data[61] = 0x7F  # the first record's length is nonsense, and the checksum is right
    sealed = seal(data, header_at(data))
    table.disk.replace(path, bytes(sealed))
    table.compact()
    assert bytes(sealed) in table.disk.read(f"{DIRECTORY}/{0:020d}.log")


# Deletions


def test_a_deletion_stays_until_its_time_is_over() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"))
    table.put((b"a", None), (b"b", b"2"), timestamps=[START_MS - 500, START_MS + 7])
    table.roll()
    table.compact()
    header, contents = table.stored()[0]
    assert header.attributes & DELETE_HORIZON
    assert header.base_timestamp == START_MS + 1000
    assert header.max_timestamp == START_MS + 7
    assert [(r.offset, r.key, r.value, r.timestamp) for r in contents] == [
        (1, b"a", None, START_MS - 500),
        (2, b"b", b"2", START_MS + 7),
    ]
    table.pass_ms(999)
    table.put((b"c", b"3"))
    table.roll()
    table.compact()
    assert (1, b"a", None) in table.all()
    assert table.stored()[0][0].base_timestamp == START_MS + 1000, "the time runs from the first cleaning on"
    table.pass_ms(1)
    table.put((b"d", b"4"))
    table.roll()
    table.compact()
    assert table.all() == [(2, b"b", b"2"), (3, b"c", b"3"), (4, b"d", b"4")]


def test_a_deletion_that_was_followed_by_a_value_goes_at_once() -> None:
    table = Table(WIDE)
    table.put((b"a", None))
    table.put((b"a", b"1"))
    table.roll()
    table.compact()
    assert table.all() == [(1, b"a", b"1")]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_times_of_any_size_are_counted_from_a_horizon(codec: Codec) -> None:
    table = Table(replace(WIDE, delete_retention_ms=2**40))
    times = [-1, 0, 5, START_MS]
    table.put(*[(b"%d" % n, None) for n in range(4)], timestamps=times, codec=codec)
    table.roll()
    table.compact()
    ((_, contents),) = table.stored()
    assert [r.timestamp for r in contents] == times


# Producers and ends of segments


def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), (b"a", b"2"), producer=(7, 0, 0))
    table.put((b"a", b"3"))
    table.roll()
    table.put((b"z", b"4"))
    table.compact()
    header, contents = table.stored()[0]
    assert contents == []
    assert (header.producer_id, header.last_sequence, header.last_offset) == (7, 1, 1)
    table.disk.remove(f"{DIRECTORY}/{3:020d}.snapshot")
    table.crash(power=False)
    assert table.log.producers.known[7].last_sequence == 1


def test_earlier_batches_of_a_producer_go() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), producer=(7, 0, 0))
    table.put((b"a", b"2"), producer=(7, 0, 1))
    table.put((b"a", b"3"))
    table.roll()
    table.compact()
    assert [header.base_offset for header, _ in table.stored()] == [1, 2]


def test_a_segment_ends_where_the_next_one_begins_though_its_last_batch_lost_all() -> None:
    table = Table()
    for n in range(20):
        table.put((b"key", b"%d" % n))
    table.roll()
    table.put((b"key", b"x"))
    table.roll()
    table.compact()
    table.disk.replace("unrelated", b"")
    table.open()  # reads everything, with no checkpoint to trust
    assert table.log.end_offset == 21
    assert table.all() == [(20, b"key", b"x")]


def test_an_empty_batch_has_no_record_for_a_time() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), producer=(7, 0, 0), timestamps=[START_MS + 5])
    table.put((b"a", b"2"), timestamps=[START_MS])
    table.put((b"b", b"3"), timestamps=[START_MS + 1])
    table.roll()
    table.compact()
    assert table.stored()[0][1] == []
    found = table.log.find_timestamp(START_MS + 1)
    assert found is not None
    assert found.offset == 2
    assert table.log.find_timestamp(START_MS + 2) is None


# Transactions


def test_what_was_aborted_goes_and_what_was_committed_counts() -> None:
    table = Table(WIDE)
    table.put((b"a", b"kept"))
    table.put((b"a", b"aborted"), (b"b", b"aborted"), producer=(1, 0, 0), transactional=True)
    table.put((b"c", b"old"))
    table.put((b"c", b"committed"), producer=(2, 0, 0), transactional=True)
    table.end(ControlType.ABORT, 1)
    table.end(ControlType.COMMIT, 2)
    table.put((b"a2", b"by the same producer"), producer=(1, 0, 2), transactional=True)
    table.end(ControlType.COMMIT, 1)
    table.roll()
    table.compact()
    assert [(key, value) for _, key, value in table.data()] == [
        (b"a", b"kept"),
        (b"c", b"committed"),
        (b"a2", b"by the same producer"),
    ]


def test_an_aborted_transaction_whose_marker_lies_beyond_is_known() -> None:
    table = Table(WIDE)
    table.put((b"a", b"kept"))
    table.put((b"a", b"aborted"), producer=(1, 0, 0), transactional=True)
    table.roll()
    table.put((b"x", b"open"), producer=(2, 0, 0), transactional=True)
    table.end(ControlType.ABORT, 1)
    part = table.cleanable()
    assert part is not None
    assert part.end == 2, "the second transaction is not decided, and the first one is"
    table.compact()
    assert table.data() == [(0, b"a", b"kept"), (2, b"x", b"open")]


def test_nothing_is_cleaned_that_is_not_decided() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"))
    table.put((b"a", b"2"), producer=(1, 0, 0), transactional=True)
    table.roll()
    assert table.cleanable() is None


def test_a_marker_stays_while_there_is_something_of_its_transaction_and_some_time_more() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), producer=(1, 0, 0), transactional=True)
    commit = table.end(ControlType.COMMIT, 1)
    table.put((b"b", b"2"), producer=(1, 0, 1), transactional=True)
    table.end(ControlType.COMMIT, 1)

    def again() -> bool:
        """Compact once more: is the first marker there?"""
        table.put((b"other", b"value"))
        table.roll()
        table.compact()
        return commit in [header.base_offset for header, contents in table.stored() if contents]

    assert again()
    assert not any(header.attributes & DELETE_HORIZON for header, _ in table.stored())
    table.put((b"a", b"new"))
    assert again(), "in this round its records go"
    assert again(), "from this round on it has a horizon"
    (marker,) = [header for header, _ in table.stored() if header.base_offset == commit]
    assert marker.attributes & DELETE_HORIZON
    table.pass_ms(1000)
    assert not again()


def test_the_marker_of_an_aborted_transaction_goes_after_its_records() -> None:
    table = Table(WIDE)
    table.put((b"a", b"1"), producer=(1, 0, 0), transactional=True)
    abort = table.end(ControlType.ABORT, 1)
    table.put((b"b", b"2"), producer=(1, 0, 1))
    there = []
    for _ in range(3):
        table.put((b"other", b"value"))
        table.roll()
        table.compact()
        there.append(abort in [header.base_offset for header, contents in table.stored() if contents])
        table.pass_ms(1000)
    assert there == [True, True, False]
    assert table.data()[0] == (2, b"b", b"2")


# What is chosen, and how much of it


def test_segments_are_merged_up_to_the_size_of_one() -> None:
    table = Table(replace(COMPACT, segment_bytes=1000))
    for n in range(40):
        table.put((b"key-%d" % n, b"v" * 100))
        table.log.roll(table.now)
    table.roll()
    count = len(table.log.segments)
    table.compact()
    sizes = [segment.size for segment in table.log.segments[:-1]]
    assert len(sizes) < count / 4
    assert all(size <= 1000 for size in sizes)
    assert len(table.all()) == 40
    assert table.names(".log") == [segment.base_offset for segment in table.log.segments]
    assert table.names(".snapshot") == [base for base in table.names(".log") if base]


def test_indexes_are_not_merged_beyond_their_limit() -> None:
    table = Table(replace(COMPACT, segment_bytes=100_000, index_interval_bytes=0, segment_index_bytes=4 * 12))
    for n in range(12):
        table.put((b"key-%d" % n, b"v"))
    table.roll()
    table.compact()
    for base_offset in table.names(".index"):
        assert table.disk.open(f"{DIRECTORY}/{base_offset:020d}.index").size <= 4 * 12
    assert len(table.all()) == 12


def test_a_small_map_cleans_what_it_has_room_for_and_goes_on() -> None:
    table = Table(WIDE)
    for n in range(30):
        table.put((b"%d" % (n % 10), b"%d" % n))
    table.roll()
    ends = []
    while table.cleanable() is not None:
        ends.append(table.compact(keys_max=4).cleaned_to)
    assert ends == sorted(set(ends))
    assert ends[0] == 4
    assert ends[-1] == 30
    assert [offset for offset, _, _ in table.all()] == list(range(20, 30))


def test_a_batch_with_more_keys_than_there_is_room_for_is_cleaned_all_the_same() -> None:
    table = Table(WIDE)
    table.put(*[(b"%d" % n, b"1") for n in range(10)])
    table.put(*[(b"%d" % n, b"2") for n in range(10)])
    table.roll()
    table.compact(keys_max=1)
    table.compact(keys_max=1)
    assert {value for _, _, value in table.all()} == {b"2"}


def test_young_segments_are_left_alone() -> None:
    table = Table(replace(COMPACT, min_compaction_lag_ms=100))
    table.put((b"a", b"1"))
    table.log.roll(table.now)
    table.pass_ms(60)
    table.put((b"a", b"2"))
    table.roll()
    assert table.cleanable() is None
    table.pass_ms(40)
    part = table.cleanable()
    assert part is not None
    assert (part.first_dirty, part.end) == (0, 1)
    table.pass_ms(60)
    part = table.cleanable()
    assert part is not None
    assert part.end == 2


def test_old_records_make_a_log_overdue() -> None:
    table = Table(replace(COMPACT, max_compaction_lag_ms=100))
    table.put((b"a", b"1"))
    table.roll()
    part = table.cleanable()
    assert part is not None
    assert not part.overdue
    table.pass_ms(101)
    part = table.cleanable()
    assert part is not None
    assert part.overdue


def test_a_segment_is_complete_before_its_records_are_overdue() -> None:
    table = Table(replace(WIDE, max_compaction_lag_ms=100))
    table.put((b"a", b"1"))
    table.pass_ms(100)
    table.put((b"a", b"2"))
    assert len(table.log.segments) == 1
    table.pass_ms(1)
    table.put((b"a", b"3"))
    assert len(table.log.segments) == 2


def test_the_dirty_share_is_what_was_added_since() -> None:
    table = Table(WIDE)
    for n in range(8):
        table.put((b"%d" % n, b"1"))
    table.roll()
    part = table.cleanable()
    assert part is not None
    assert part.dirty_ratio == 1
    table.compact()
    assert table.cleanable() is None
    for n in range(8):
        table.put((b"%d" % n, b"2"))
    table.roll()
    part = table.cleanable()
    assert part is not None
    assert part.dirty_ratio == 0.5


def test_what_is_not_synced_is_left_alone() -> None:
    table = Table()
    table.put((b"a", b"1"))
    table.log.roll(table.now)
    assert table.cleanable() is None
    table.sync()
    assert table.cleanable() is not None


def test_a_log_that_starts_later_is_dirty_from_its_start() -> None:
    table = Table(WIDE)
    for n in range(6):
        table.put((b"a", b"%d" % n))
    table.roll()
    table.log.advance_start(4, high_watermark=6)
    assert table.first_dirty == 4
    table.compact()
    assert table.all() == [(5, b"a", b"5")]
    assert table.log.log_start_offset == 4


def test_a_mark_beyond_the_end_is_not_believed() -> None:
    table = Table()
    table.put((b"a", b"1"))
    table.log.cleaned_to = 100
    assert table.first_dirty == 0


def test_truncation_lowers_the_mark() -> None:
    table = Table(WIDE)
    for n in range(6):
        table.put((b"%d" % n, b"1"))
    table.roll()
    table.compact()
    assert table.log.cleaned_to == 6
    table.log.truncate(3, table.now)
    table.log.check()
    assert table.log.cleaned_to == 3
    assert [offset for offset, _, _ in table.all()] == [0, 1, 2]


# Meanwhile


def test_readers_of_the_old_segments_finish() -> None:
    table = Table(WIDE)
    for n in range(5):
        table.put((b"a", b"%d" % n))
    table.roll()
    piece = table.log.read(0, 10_000, up_to_offset=5)
    assert piece is not None
    table.compact()
    assert len(list(batches(memoryview(piece.read())))) == 5


def test_appends_go_on_while_it_works() -> None:
    table = Table(WIDE)
    for n in range(200):
        table.put((b"a", b"%d" % n))
    table.roll()
    compaction = table.plan()
    for n, _ in enumerate(compaction.work()):
        table.put((b"b", b"%d" % n))
        table.log.roll(table.now)
    assert compaction.fits(table.log)
    table.finish(compaction)
    table.log.check()
    found = table.all()
    assert found[0] == (199, b"a", b"199")
    assert [key for _, key, _ in found[1:]] == [b"b"] * (table.log.end_offset - 200)


@pytest.mark.parametrize("change", ["truncated", "deleted", "restarted"])
def test_a_log_that_changed_meanwhile_does_not_take_it(change: str) -> None:
    table = Table(replace(COMPACT, cleanup_policy=("compact", "delete"), retention_ms=100))
    for n in range(30):
        table.put((b"a", b"%d" % n))
    table.roll()
    table.put((b"a", b"x"))
    compaction = table.plan()
    work(compaction)
    assert compaction.fits(table.log)
    if change == "truncated":
        table.log.truncate(3, table.now)
    elif change == "restarted":
        table.log.restart_at(0, table.now)
    else:
        table.pass_ms(101)
        assert table.log.delete_old_segments(table.now, high_watermark=table.log.end_offset)
    assert not compaction.fits(table.log)


def test_a_damaged_batch_leaves_the_log_as_it_was() -> None:
    table = Table(WIDE)
    for n in range(5):
        table.put((b"a", b"%d" % n))
    table.roll()
    compaction = table.plan()
    table.disk._files[f"{DIRECTORY}/{0:020d}.log"].data[100] ^= 1
    with pytest.raises(CorruptData):
        work(compaction)
    assert table.names(".cleaned") == []


def test_a_disk_that_fails_leaves_the_log_as_it_was_or_compacted() -> None:
    expected = None
    for changes in range(200):
        table = Table(replace(COMPACT, segment_bytes=700))
        for n in range(30):
            table.put((b"%d" % (n % 3), b"%d" % n))
        table.roll()
        before, expected = table.all(), table.all()[-3:]
        compaction = table.plan()
        table.disk.fails_after = changes
        try:
            work(compaction)
            table.finish(compaction)
        except StorageError:
            pass
        if table.disk.fails_after is not None:
            assert changes > 20
            break
        found = table.all()
        assert set(found) <= set(before)
        assert set(expected) <= set(found)
        table.log.check()
        table.put((b"new", b"record"))
        table.crash(power=False)
        assert set(table.all()) <= {*before, (30, b"new", b"record")}
        assert {*expected, (30, b"new", b"record")} <= set(table.all())
    else:
        pytest.fail("it never got through")


@pytest.mark.parametrize("seed", range(3))
def test_any_crash_leaves_every_last_record(seed: int) -> None:
    for changes in range(300):
        if _crashes_after(changes, seed):
            assert changes > 20
            break
    else:
        pytest.fail("it never got through")


def _crashes_after(changes: int, seed: int) -> bool:
    """Lose the power in the midst of it, and start again. Did the power last?"""
    table = Table(replace(COMPACT, segment_bytes=700), seed=seed)
    for n in range(30):
        table.put((b"%d" % (n % 3), b"%d" % n), producer=(5, 0, n))
        if n % 4 == 3:
            table.log.roll(table.now)  # small segments, of which some become one
    table.roll()
    before = table.all()
    compaction = table.plan()
    table.disk.power_fails_after = changes
    try:
        work(compaction)
        table.finish(compaction)
    except PowerLost:
        lost = True
    else:
        lost = False
        table.disk.power_fails_after = None
    table.crash(power=True)
    found = table.all()
    assert found[-3:] == before[-3:]
    assert set(found) <= set(before)
    assert table.log.end_offset == 30
    assert table.names(".cleaned") == table.names(".swap") == table.names(".deleted") == []
    assert table.log.producers.known[5].last_sequence == 29
    table.put((b"next", b"1"), producer=(5, 0, 30))
    table.open()  # now with everything read, and no checkpoint
    assert table.all() == [*found, (30, b"next", b"1")]
    return not lost


# Properties

_keys = st.sampled_from([b"a", b"b", b"c", b"d", b"long" * 10, b"long" * 10 + b"!", b""])
_values = st.one_of(st.none(), st.binary(max_size=20))
_batches = st.lists(st.lists(st.tuples(_keys, _values), min_size=1, max_size=4), min_size=1, max_size=25)


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(st.tuples(_batches, st.sampled_from(list(Codec)), st.integers(0, 1500)), min_size=1, max_size=4),
    segment_bytes=st.sampled_from([400, 1000, 100_000]),
    room=st.sampled_from([1, 3, 1000]),
)
def test_a_reader_finds_the_last_of_every_key_from_wherever_it_reads(
    rounds: list[tuple[list[list[Write]], Codec, int]], segment_bytes: int, room: int
) -> None:
    table = Table(replace(COMPACT, segment_bytes=segment_bytes))
    written: list[tuple[int, bytes | None, bytes | None]] = []
    for contents, codec, wait_ms in rounds:
        for writes in contents:
            first = table.put(*writes, codec=codec)
            written += [(first + n, key, value) for n, (key, value) in enumerate(writes)]
        table.log.roll(table.now)
        table.sync()
        table.pass_ms(wait_ms)
        while table.cleanable() is not None:
            table.compact(keys_max=room)
        _check_readers(table, written)
        _check_is_clean(table)
    table.restart()
    _check_readers(table, written)
    table.open()
    _check_readers(table, written)


def _check_readers(table: Table, written: list[tuple[int, bytes | None, bytes | None]]) -> None:
    last = {key: offset for offset, key, _ in written}
    for start in range(0, table.log.end_offset + 1, max(1, table.log.end_offset // 7)):
        found = table.all(start)
        assert found == sorted(found, key=lambda record: record[0])
        assert set(found) <= set(written)
        must = {w for w in written if w[0] >= start and last[w[1]] == w[0] and w[2] is not None}
        assert must <= set(found)


def _check_is_clean(table: Table) -> None:
    keys = [key for offset, key, _ in table.all() if offset < table.log.cleaned_to]
    assert len(keys) == len(set(keys))


# The map


def test_long_keys_take_no_more_room_and_are_told_apart() -> None:
    keys = KeyMap(0, 10)
    long = b"x" * 1000
    assert len(digest(long)) == 31
    keys.add([RecordSpan(0, 0, 0, 0, long, True), RecordSpan(0, 0, 1, 0, long + b"y", True)], 5)
    assert (keys.last(long), keys.last(long + b"y"), keys.last(b"x")) == (5, 6, -1)
    assert max(map(len, keys.offsets)) == 31


def test_memory_is_counted_in_keys() -> None:
    assert keys_max(16_000, 0.9) == 90


@pytest.mark.parametrize(("load_factor", "keys"), [(1.0, 100), (1.7e308, 100), (0.0, 1), (-1.7e308, 1)])
def test_the_map_is_never_larger_than_its_memory_and_never_empty(load_factor: float, keys: int) -> None:
    assert keys_max(16_000, load_factor) == keys
    assert keys_max(0, 0.9) == 1


def test_defaults_have_room_for_many_keys() -> None:
    assert keys_max(128 << 20, 0.9) > 700_000
