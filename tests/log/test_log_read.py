"""Read: the right bytes for every offset and limit, from memory near the end and from the index elsewhere."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error
from cordwood.log.index import Index
from cordwood.log.log import LARGE_BATCH_BYTES
from cordwood.ports import FileSlice
from cordwood.record.batch import MAGIC_AT, batches, header_at
from cordwood.record.build import Record, build
from cordwood.sim.disk import SimFile
from log.builders import DIRECTORY, START_MS, TINY, Bench, refused


def first_header(piece: FileSlice | None) -> tuple[int, int]:
    assert piece is not None
    header = header_at(piece.read())
    return header.base_offset, header.last_offset


@pytest.fixture
def bench() -> Bench:
    """40 batches of 3 records in several segments."""
    bench = Bench()
    bench.fill(40, each=3)
    assert len(bench.log.segments) > 8
    return bench


@pytest.mark.parametrize("reopened", [False, True])
def test_every_offset_is_found_in_its_whole_batch(bench: Bench, reopened: bool) -> None:
    if reopened:
        bench.restart()
    for offset in range(120):
        first = offset - offset % 3
        assert first_header(bench.log.read(offset, 1, up_to_offset=120)) == (first, first + 2)


def test_offsets_outside_the_log_are_out_of_range(bench: Bench) -> None:
    bench.log.advance_start(10, high_watermark=120)
    for offset in (-1, 0, 9, 121, 2**62):
        with refused(Error.OFFSET_OUT_OF_RANGE):
            bench.log.read(offset, 100, up_to_offset=120)
    assert bench.log.read(120, 100, up_to_offset=120) is None
    assert first_header(bench.log.read(10, 100, up_to_offset=120)) == (9, 11)


def test_a_read_stays_in_one_segment_and_reading_on_gives_everything(bench: Bench) -> None:
    assert bench.offsets() == list(range(120))
    piece = bench.log.read(0, 1 << 20, up_to_offset=120)
    assert piece is not None
    assert piece.length == bench.log.segments[0].size


def test_max_bytes_may_cut_the_last_batch_but_not_the_first(bench: Bench) -> None:
    size = bench.headers()[0].size
    piece = bench.log.read(0, size + 10, up_to_offset=120)
    assert piece is not None
    assert piece.length == size + 10
    piece = bench.log.read(0, 1, up_to_offset=120)
    assert piece is not None
    assert piece.length == size
    assert bench.log.read(0, size - 1, up_to_offset=120, first_whole=False) is None
    piece = bench.log.read(0, size, up_to_offset=120, first_whole=False)
    assert piece is not None
    assert piece.length == size


LARGE = bytes(LARGE_BATCH_BYTES)


def large(*, reopened: bool) -> Bench:
    """300 large batches of 2 records in two segments, the last of them remembered unless it was *reopened*."""
    bench = Bench(TopicConfig(segment_bytes=150 * 2 * len(LARGE) + 50_000))
    for _ in range(300):
        bench.append(2, value=LARGE)
    assert len(bench.log.segments) == 2
    if reopened:
        bench.restart()
    return bench


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("reads_on", [True, False])
def test_large_batches_come_whole_however_they_are_read(reopened: bool, reads_on: bool) -> None:
    bench = large(reopened=reopened)
    size, second = bench.headers()[0].size, bench.log.segments[1].base_offset
    offset = 0 if reads_on else 598
    while 0 <= offset < 600:
        piece = bench.log.read_piece(offset, 3 * size + 100, up_to_offset=600, first_whole=True)
        assert piece is not None
        assert piece.records is not None
        found = [header.base_offset for _, header in batches(memoryview(piece.records.read()))]
        end_of_segment = second if offset < second else 600
        assert found == list(range(offset, min(offset + 6, end_of_segment), 2))
        assert piece.records.length == size * len(found)
        assert piece.available == min(3 * size + 100, (600 - offset) // 2 * size)
        offset += 2 * len(found) if reads_on else -2
    bench.log.check()


def test_a_large_batch_that_does_not_fit_is_left_out_but_never_the_first() -> None:
    bench = large(reopened=True)
    size = bench.headers()[0].size
    for max_bytes in (1, size, 2 * size - 1):
        piece = bench.log.read(20, max_bytes, up_to_offset=600)
        assert piece is not None
        assert piece.length == size
    assert bench.log.read(20, size - 1, up_to_offset=600, first_whole=False) is None


def test_a_batch_is_cut_rather_than_much_left_out() -> None:
    """An index of few entries does not know where the batches begin."""
    bench = Bench(TopicConfig(segment_bytes=1 << 28, index_interval_bytes=600_000))
    for _ in range(200):
        bench.append(value=LARGE)
    bench.restart()
    piece = bench.log.read(0, 1 << 20, up_to_offset=200)
    assert piece is not None
    assert piece.length == 1 << 20


def test_who_reads_on_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = large(reopened=True)
    size, segment, around = bench.headers()[0].size, bench.log.segments[0], Index.around
    searches: list[int] = []

    def counted(index: Index, value: int) -> object:
        searches.append(value)
        return around(index, value)

    monkeypatch.setattr(Index, "around", counted)
    bench.log.read(0, 4 * size + 1, up_to_offset=600)
    del searches[:]
    file = segment._file = CountingFile(bench.disk, bench.disk._files[segment.path(".log")])
    for number, offset in enumerate(range(8, 280, 8)):
        piece = bench.log.read(offset, 4 * size + 1, up_to_offset=600)
        assert piece is not None
        assert piece.position == offset // 2 * size
        assert file.count == number + 1
    assert searches == []


def test_where_a_slice_ended_is_not_believed_if_the_batch_there_is_another() -> None:
    bench = large(reopened=True)
    size, segment = bench.headers()[0].size, bench.log.segments[0]
    bench.log.read(0, 4 * size + 1, up_to_offset=600)
    assert segment._ended_at == (9, 4 * size)
    segment._ended_at = (11, 4 * size)
    assert first_header(bench.log.read(10, 1, up_to_offset=600))[0] == 10


@pytest.mark.parametrize("offset", [0, 7, 9, 10, 250])
def test_who_does_not_read_on_where_a_slice_ended_gets_what_is_asked_for(offset: int) -> None:
    bench = large(reopened=True)
    size = bench.headers()[0].size
    bench.log.read(4, 2 * size + 1, up_to_offset=600)  # ends at offset 8
    assert first_header(bench.log.read(offset, 1, up_to_offset=600))[0] == offset - offset % 2


def test_where_a_slice_ended_is_forgotten_when_the_log_is_cut_there() -> None:
    bench = large(reopened=True)
    size = bench.headers()[0].size
    bench.log.read(0, 4 * size + 1, up_to_offset=600)
    bench.log.truncate(6, bench.now)
    bench.log.check()
    for _ in range(300):
        bench.append(value=b"short")
    assert first_header(bench.log.read(8, 1, up_to_offset=306)) == (8, 8)


def test_one_damaged_header_hides_nothing_else() -> None:
    bench = large(reopened=True)
    segment, size = bench.log.segments[0], bench.headers()[0].size
    damaged = bytearray(bench.disk.read(segment.path(".log")))
    damaged[10 * size + MAGIC_AT] ^= 1
    bench.disk.replace(segment.path(".log"), bytes(damaged))
    segment.release_file()
    for _ in range(2):
        with pytest.raises(CorruptData):
            bench.log.read(20, 1, up_to_offset=600)
        for offset in (0, 10, 22, 100):
            assert first_header(bench.log.read(offset, 1, up_to_offset=600))[0] == offset


def test_an_index_that_is_gone_does_not_keep_readers_from_the_log() -> None:
    bench = large(reopened=True)
    size, segment = bench.headers()[0].size, bench.log.segments[0]
    bench.log.read(0, 1, up_to_offset=600)
    bench.disk.replace(segment.path(".index"), b"")
    for offset in range(0, 300, 2):
        assert first_header(bench.log.read(offset, 2 * size + 1, up_to_offset=600))[0] == offset


def test_nothing_is_read_at_or_past_the_limit(bench: Bench) -> None:
    for limit in range(0, 121, 3):
        for offset in range(0, 121, 7):
            piece = bench.log.read(offset, 1 << 20, up_to_offset=limit)
            if offset >= limit:
                assert piece is None
            else:
                assert piece is not None
                last = [header for _, header in batches(memoryview(piece.read()))][-1]
                assert last.next_offset <= limit


def test_a_limit_inside_a_batch_keeps_that_batch_back(bench: Bench) -> None:
    assert bench.log.read(60, 1 << 20, up_to_offset=61) is None
    piece = bench.log.read(57, 1 << 20, up_to_offset=61)
    assert piece is not None
    assert [header.base_offset for _, header in batches(memoryview(piece.read()))] == [57]


def test_offsets_missing_after_compaction_lead_to_the_next_batch() -> None:
    bench = Bench(TopicConfig())
    for offset in (5, 10, 500):
        bench.log.append_as_follower(memoryview(build([Record(offset, 0, b"k", b"v")])), now=bench.now)
    for reopened in (False, True):
        if reopened:
            bench.restart()
        for offset, expected in ((0, 5), (5, 5), (6, 10), (11, 500), (499, 500)):
            assert first_header(bench.log.read(offset, 1, up_to_offset=501)) == (expected, expected)
        bench.log.check()


def test_a_read_in_a_segment_that_lost_all_its_end_goes_on_in_the_next() -> None:
    bench = Bench(TopicConfig())
    bench.append()
    bench.log.append_as_follower(memoryview(build([Record(3, 0, b"k", b"v")])), now=bench.now)
    bench.log.roll(bench.now)
    bench.append()
    bench.log.truncate(4, bench.now)
    assert first_header(bench.log.read(1, 1, up_to_offset=4)) == (3, 3)
    assert bench.log.read(4, 1, up_to_offset=10) is None


class CountingFile(SimFile):
    """A file that counts how often it is read."""

    count = 0

    def read(self, position: int, length: int, /) -> bytes:
        self.count += 1
        return super().read(position, length)


def test_readers_near_the_end_cost_no_disk_read() -> None:
    bench = Bench(TopicConfig())
    bench.fill(300)
    segment = bench.log.segments[-1]
    file = segment._file = CountingFile(bench.disk, bench.disk._files[segment.path(".log")])
    for offset in range(300 - 128, 300):
        assert bench.log.read(offset, 1000, up_to_offset=299) is not None or offset == 299
    assert file.count == 0
    bench.log.read(20, 1000, up_to_offset=300)
    assert 0 < file.count <= 3  # the chunks grow on the way through small batches


def test_few_files_are_open_however_many_segments_are_read() -> None:
    bench = Bench()
    bench.fill(60)
    bench.sync()
    assert len(bench.log.segments) > 10
    assert bench.offsets() == list(range(60))
    assert [segment for segment in bench.log.segments if segment._file is not None] == [bench.log.segments[-1]]


@pytest.mark.parametrize("content", [None, b"", b"x", b"\xff" * 16, bytes(64), b"\x00\x00\x00\x01\x00\x00\x00\x02" * 2])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_broken_index_is_made_anew(content: bytes | None, suffix: str) -> None:
    bench = Bench(replace(TINY, segment_bytes=3000))
    bench.fill(50, each=2)
    bench.restart()
    good = {base: bench.disk.read(f"{DIRECTORY}/{base:020d}{suffix}") for base in bench.names(suffix)}
    assert len(good) == 2
    for base in good:
        path = f"{DIRECTORY}/{base:020d}{suffix}"
        if content is None:
            bench.disk.remove(path)
        else:
            bench.disk.replace(path, content)
    bench.open(clean=True, recovery_point=100)
    for offset in range(100):
        assert first_header(bench.log.read(offset, 1, up_to_offset=100))[0] == offset - offset % 2
    assert bench.log.find_timestamp(START_MS) is not None
    bench.log.check()


def test_an_index_of_another_log_is_noticed_and_made_anew() -> None:
    bench = Bench(replace(TINY, segment_bytes=3000))
    bench.fill(50, each=2)
    bench.restart()
    path = f"{DIRECTORY}/{0:020d}.index"
    entries = bytearray(bench.disk.read(path))
    entries[12:16] = (int.from_bytes(entries[12:16], "big") + 1).to_bytes(4, "big")
    bench.disk.replace(path, bytes(entries))
    bench.open(clean=True, recovery_point=100, check=False)
    for offset in range(60):
        assert first_header(bench.log.read(offset, 1, up_to_offset=100))[0] == offset - offset % 2


def test_damage_inside_a_trusted_segment_is_reported_not_served_as_an_answer() -> None:
    bench = Bench(replace(TINY, segment_bytes=3000))
    bench.fill(50, each=2)
    bench.restart()
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(bench.disk.read(path))
    data[16] = 9
    bench.disk.replace(path, bytes(data))
    bench.open(clean=True, recovery_point=100, check=False)
    with pytest.raises(CorruptData):
        bench.log.read(0, 1, up_to_offset=100)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 60)), min_size=1, max_size=60), st.data())
def test_reads_are_what_a_plain_list_gives(appended: list[tuple[int, int]], data: st.DataObject) -> None:
    bench = Bench(replace(TINY, segment_bytes=600))
    whole: list[tuple[int, int, int]] = []
    for count, size in appended:
        result = bench.append(count, value=bytes(size))
        whole.append((result.first_offset, result.last_offset, bench.log.segments[-1].size))
    if data.draw(st.booleans()):
        bench.restart()
    end = bench.log.end_offset
    for _ in range(10):
        offset = data.draw(st.integers(0, end))
        limit = data.draw(st.sampled_from([end, *(first for first, _, _ in whole)]))
        piece = bench.log.read(offset, data.draw(st.integers(0, 500)), up_to_offset=limit)
        expected = next((first for first, last, _ in whole if first <= offset <= last and last < limit), None)
        if expected is None:
            assert piece is None
        else:
            assert first_header(piece)[0] == expected
