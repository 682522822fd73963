"""One segment of a log: a file of batches, a sparse index by offset and one by time.

The batches lie one after the other in offset order; every batch's offsets are at least the segment's base offset and
differ from it by less than 2³¹. The positions of the last batches are remembered, so that readers close behind the
writer are served without touching the disk; so is the index entry where the last slice from the disk ended, so that the
reader who continues there is served without a search. The indexes of an existing segment are read when they are first
needed, and rebuilt from the log file if they turn out to be missing or wrong.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, StorageError
from cordwood.ids import NO_TIMESTAMP
from cordwood.ports import Disk, File, Syncable
from cordwood.record.batch import BatchHeader, BatchPlace
from cordwood.record.glance import BATCH_EFFORT, Effort

from .checkpoint import WrittenFile
from .index import OFFSET_ENTRY, TIME_ENTRY, Index, offset_index, time_index
from .names import DELETED, LOG, OFFSET_INDEX, SEGMENT_SUFFIXES, TIME_INDEX, file_name
from .scan import header_of, headers, place_of
from .search import count_numbers_at_most

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
_RECENT: Final = 128


class Located:
    """Where a batch lies in its segment's file."""

    __slots__ = ("position", "size")

    def __init__(self, position: int, size: int) -> None:
        self.position = position
        self.size = size


class Segment:
    """The batches from ``base_offset`` up to the next segment."""

    __slots__ = (
        "_bytes_since_entry",
        "_checked",
        "_directory",
        "_disk",
        "_ended_at",
        "_ending",
        "_file",
        "_first_timestamp",
        "_index_interval_bytes",
        "_indexes_loaded",
        "_largest_timestamp",
        "_largest_timestamp_offset",
        "_log_path",
        "_looked_for",
        "_offsets",
        "_recent_floor",
        "_recent_last_offsets",
        "_recent_positions",
        "_roll_bytes",
        "_roll_config",
        "_roll_timestamp",
        "_times",
        "base_offset",
        "created_ms",
        "size",
        "written_ms",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int, ending: str = ""
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._ending = ending
        self.base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._file: File | None = None
        self._log_path = self.path(LOG)
        self._offsets: Index = offset_index(disk, self.path(OFFSET_INDEX))
        self._times: Index = time_index(disk, self.path(TIME_INDEX))
        self._indexes_loaded = True
        self._first_timestamp: int | None = None
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_timestamp_offset = base_offset
        self._bytes_since_entry = 0
        self._recent_floor = base_offset - 1
        self._recent_last_offsets = array("q")
        self._recent_positions = array("q")
        self._looked_for = 0
        self._ended_at: tuple[int, int] | None = None
        """The index entry where the last reader that was served from the disk will most likely continue."""
        self._roll_config: TopicConfig | None = None
        self._roll_bytes = 0
        self._roll_timestamp = NO_TIMESTAMP
        self._checked: object = None
        """What ``check`` last looked at and found correct."""
        self.created_ms = now_ms
        self.written_ms = now_ms
        """When the file was last written, or first seen. An append of a batch with a timestamp need not update it."""
        self.size = 0

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int, ending: str = ""
    ) -> "Segment":
        """A new, empty segment. Existing files of that name are emptied.

        A segment whose names have another *ending* is not part of a log until ``rename`` removes the ending.
        """
        segment = cls(
            disk, directory, base_offset, index_interval_bytes=index_interval_bytes, now_ms=now_ms, ending=ending
        )
        segment._file = disk.open(segment.path(LOG), create=True)
        if segment._file.size:
            segment._file.truncate(0)
        segment._offsets.reset()
        segment._times.reset()
        return segment

    @classmethod
    def existing(
        cls, disk: Disk, directory: str, base_offset: int, *, index_interval_bytes: int, now_ms: int
    ) -> "Segment":
        """A segment that is already on the disk. Only its size is looked at yet, and no file is kept open."""
        segment = cls(disk, directory, base_offset, index_interval_bytes=index_interval_bytes, now_ms=now_ms)
        segment.size = disk.open(segment.path(LOG)).size
        segment._indexes_loaded = False
        segment._recent_floor = base_offset + RELATIVE_OFFSET_MAX  # nothing is remembered yet
        return segment

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path(LOG))
        return self._file

    @property
    def reader(self) -> File:
        """The log file to read from. Of complete segments, the disk keeps the most recently read files open."""
        return self._file if self._file is not None else self._disk.reader(self._log_path)

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of any batch; if none has one, the time when the segment was last written."""
        if not self._indexes_loaded:
            self._load_indexes()
        return self._largest_timestamp if self._largest_timestamp >= 0 else self.written_ms

    @property
    def largest_record_timestamp(self) -> tuple[int, int]:
        """The largest timestamp of any batch (-1 if none has one), and the last offset of the first such batch."""
        self._load_indexes()
        return self._largest_timestamp, self._largest_timestamp_offset

    def largest_record_timestamp_since(self, offset: int, effort: Effort) -> tuple[int, int]:
        """The same for the batches that reach *offset*. They are searched only if the largest timestamp of all lies
        before them."""
        timestamp, last_offset = self.largest_record_timestamp
        if timestamp < 0 or last_offset >= offset:
            return timestamp, max(last_offset, offset)
        timestamp, last_offset = NO_TIMESTAMP, offset
        first = self.locate(offset)
        if first is not None:
            for _, header in headers(self.reader, first.position, self.size):
                effort.spent += BATCH_EFFORT
                if header.max_timestamp > timestamp:
                    timestamp, last_offset = header.max_timestamp, header.last_offset
        return timestamp, last_offset

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch."""
        if self._first_timestamp is None:
            try:
                self._first_timestamp = self.header_at(0).max_timestamp
            except CorruptData:  # damaged since it was written; that must not prevent new appends
                self._first_timestamp = NO_TIMESTAMP
        return self._first_timestamp

    @property
    def is_in_place(self) -> bool:
        """Do the files have the names that a log's files have?"""
        return not self._ending

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix)}{self._ending}"

    def note(self, base_offset: int, last_offset: int, max_timestamp: int, size: int) -> None:
        """Note that the next *size* bytes of the file are a batch."""
        position = self.size
        if not position:
            self._first_timestamp = max_timestamp
        if not self._indexes_loaded:
            self._load_indexes()
        if max_timestamp > self._largest_timestamp:
            self._largest_timestamp = max_timestamp
            self._largest_timestamp_offset = last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self._offsets.add(last_offset - self.base_offset, position)
            self._add_time_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += size
        self.size = position + size
        recent = self._recent_last_offsets
        count = len(recent)
        if not count:
            self._recent_floor = min(self._recent_floor, base_offset - 1)
        elif count >= 2 * _RECENT:
            self._forget_older_half()
        recent.append(last_offset)
        self._recent_positions.append(position)

    def locate(self, offset: int) -> Located | None:
        """The first batch whose last offset is *offset* or more."""
        if offset > self._recent_floor:
            positions = self._recent_positions
            number = count_numbers_at_most(self._recent_last_offsets, offset - 1)
            if number == len(positions):
                return None
            position = positions[number]
            end = positions[number + 1] if number + 1 < len(positions) else self.size
            return Located(position, end - position)
        try:
            return self._locate_on_disk(offset)
        except CorruptData:
            self.rebuild_indexes()
            return self._locate_on_disk(offset)

    def batch_start_before(self, position: int) -> int:
        """Where a batch begins that contains *position*, or begins there, or (if batches are small) ends before it.

        Nothing is read to check that the index is right: whoever continues reading there will find out.
        """
        recent = self._recent_positions
        if recent and position >= recent[0]:
            return recent[count_numbers_at_most(recent, position) - 1]
        try:
            self._load_indexes()
            self._ended_at = entry = self._offsets.last_at_most(position, column=1)
        except CorruptData:
            return 0
        return entry[1] if entry else 0

    def header_at(self, position: int) -> BatchHeader:
        return header_of(self.reader, position, self.size)

    def end_offset(self) -> int:
        """The offset after the last batch, found by the index and a short scan. For a segment that was just opened."""
        self._load_indexes()
        end = self.base_offset
        last = self._offsets.last()
        position = last[1] if last else 0
        for at, header in headers(self.file, position, self.size):
            self._check_entry(last, at, header)
            end = header.next_offset
            if header.max_timestamp > self._largest_timestamp:
                self._largest_timestamp, self._largest_timestamp_offset = header.max_timestamp, header.last_offset
        self._bytes_since_entry = self.size - position
        return end

    def find_timestamp(self, timestamp: int, from_offset: int, effort: Effort) -> tuple[int, BatchHeader] | None:
        """The first batch that reaches *from_offset* and has *timestamp* or a later one: its position and header."""
        try:
            return self._find_timestamp(timestamp, from_offset, effort)
        except CorruptData:
            self.rebuild_indexes()
            return self._find_timestamp(timestamp, from_offset, effort)

    def _find_timestamp(self, timestamp: int, from_offset: int, effort: Effort) -> tuple[int, BatchHeader] | None:
        self._load_indexes()
        entry = self._times.last_at_most(timestamp)
        known_below = self.base_offset + (entry[1] if entry else 0)
        by_offset = self._offsets.last_at_most(max(known_below, from_offset) - self.base_offset)
        for position, header in headers(self.reader, by_offset[1] if by_offset else 0, self.size):
            effort.spent += BATCH_EFFORT
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                return position, header
        return None

    def should_roll(self, config: TopicConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Does a batch of *size* bytes belong in a new segment?"""
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if not self.size:
            return False
        if (
            config is self._roll_config
            and self.size + size <= self._roll_bytes
            and max_timestamp <= self._roll_timestamp
        ):
            return False
        age_max_ms = _age_max_ms(config) - self._jitter_ms(config)
        entries_left = min(
            config.segment_index_bytes // OFFSET_ENTRY.size - len(self._offsets),
            config.segment_index_bytes // TIME_ENTRY.size - 1 - len(self._times),
        )
        if (
            self.size > config.segment_bytes - size
            or self._waited_ms(max_timestamp, now_ms) > age_max_ms
            or entries_left <= 0
        ):
            return True
        self._remember_room(config, age_max_ms, entries_left)
        return False

    def _remember_room(self, config: TopicConfig, age_max_ms: int, entries_left: int) -> None:
        """Note how long the answer of ``should_roll`` stays no, so that it need not be computed for every batch."""
        self._roll_config = config
        # A batch adds at most one entry, and an entry is added only after a whole interval of bytes.
        self._roll_bytes = min(config.segment_bytes, self.size + entries_left * self._index_interval_bytes)
        first = self._first_timestamp
        self._roll_timestamp = first + age_max_ms if first is not None and first >= 0 else NO_TIMESTAMP - 1

    def seal(self) -> list[Syncable]:
        """Complete the index files. They have to be synced, like the log file, before the log may rely on them."""
        self._load_indexes()
        self._add_time_entry()
        if self._file is not None:
            self._file.complete()
        return [self._offsets.flush(), self._times.flush()]

    def truncate(self, offset: int, now_ms: int) -> None:
        """Drop every batch with offsets of *offset* or more."""
        found = self.locate(offset)
        self._load_indexes()
        self._offsets.truncate_before(offset - self.base_offset)
        self._times.truncate_before(offset - self.base_offset, column=1)
        if found is not None:
            self.file.truncate(found.position)
            self.size = found.position
        self.written_ms = now_ms
        if not self.size:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._roll_config = None
        self._forget_recent(floor=offset - 1)
        self._find_largest_timestamp()

    def cut(self) -> None:
        """Drop whatever follows the last batch noted."""
        if self.file.size > self.size:
            self.file.truncate(self.size)

    def restart(self) -> None:
        """Forget what is known of the batches and empty the indexes; ``note`` is then called for each batch again."""
        self._offsets.reset()
        self._times.reset()
        self._forget_batches()

    def _forget_batches(self) -> None:
        self.size = 0
        self._indexes_loaded = True
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_timestamp_offset = self.base_offset
        self._bytes_since_entry = 0
        self._forget_recent(floor=self.base_offset - 1)

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the batches' headers, when they turn out to be wrong long after recovery.

        If the log file itself is damaged, they stay as they are (``CorruptData``).
        """
        offsets: list[tuple[int, int]] = []
        times: list[tuple[int, int]] = []
        largest_timestamp, largest_timestamp_offset = NO_TIMESTAMP, self.base_offset
        since_entry = 0
        for position, header in headers(self.reader, 0, self.size):
            if header.max_timestamp > largest_timestamp:
                largest_timestamp, largest_timestamp_offset = header.max_timestamp, header.last_offset
            if since_entry > self._index_interval_bytes:
                offsets.append((header.last_offset - self.base_offset, position))
                _add_growing(times, largest_timestamp, largest_timestamp_offset - self.base_offset)
                since_entry = 0
            since_entry += header.size
        _add_growing(times, largest_timestamp, largest_timestamp_offset - self.base_offset)
        self._offsets.store(offsets)
        self._times.store(times)
        self._indexes_loaded = True
        self._largest_timestamp, self._largest_timestamp_offset = largest_timestamp, largest_timestamp_offset
        self._bytes_since_entry = since_entry
        self._forget_recent(floor=self.base_offset + RELATIVE_OFFSET_MAX)

    def mark_deleted(self) -> list[str]:
        """Rename the files, so that a restart does not take them for a segment, and return their new paths. Open files
        stay usable."""
        deleted = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if suffix == LOG or self._disk.exists(path):
                self._disk.rename(path, path + DELETED)
                deleted.append(path + DELETED)
        return deleted

    def rename(self, ending: str) -> None:
        """Give the files another ending. The log file is renamed last, so wherever it is, its indexes are there too."""
        self.release_file()
        for suffix, index in ((OFFSET_INDEX, self._offsets), (TIME_INDEX, self._times)):
            index.moved_to(self._rename(suffix, ending))
        self._log_path = self._rename(LOG, ending)
        self._ending = ending

    def _rename(self, suffix: str, ending: str) -> str:
        path = f"{self._directory}/{file_name(self.base_offset, suffix)}{ending}"
        self._disk.rename(self.path(suffix), path)
        return path

    def written_file(self) -> Syncable:
        """The log file of a complete segment, to be synced."""
        return WrittenFile(self._disk, self.path(LOG))

    def release_file(self) -> None:
        """Let go of the log file until it is needed again."""
        self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def check(self, end_offset: int) -> None:
        """Read the whole segment and assert that everything agrees."""
        assert self.file.size == self.size, "the file is as long as the segment"
        self._load_indexes()
        self._offsets.check()
        self._times.check()
        entries = self._offsets.entries()
        recent = list(zip(self._recent_last_offsets, self._recent_positions, strict=True))
        ended_at = [self._ended_at] if self._ended_at is not None else []
        looked_at = self.file.read(0, self.size), end_offset, entries, recent, ended_at
        if looked_at == self._checked:
            return  # tests check after every event, and few events change a segment
        expected = self.base_offset
        starts: dict[int, int] = {}
        for position, header in headers(self.file, 0, self.size):
            assert header.base_offset >= expected, "offsets grow"
            assert header.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX, "offsets fit into the indexes"
            starts[header.last_offset] = position
            expected = header.next_offset
        assert expected <= end_offset, "the segment ends before the next one"
        for relative, position in entries + ended_at:
            assert starts.get(self.base_offset + relative) == position, "an index entry is a batch's"
        for last_offset, position in recent:
            assert starts.get(last_offset) == position, "a remembered position is a batch's"
        self._checked = looked_at

    def _forget_older_half(self) -> None:
        self._recent_floor = self._recent_last_offsets[_RECENT - 1]
        del self._recent_last_offsets[:_RECENT]
        del self._recent_positions[:_RECENT]

    def _forget_recent(self, *, floor: int) -> None:
        self._recent_floor = floor
        self._ended_at = None
        del self._recent_last_offsets[:]
        del self._recent_positions[:]

    def _locate_on_disk(self, offset: int) -> Located | None:
        self._load_indexes()
        relative = offset - self.base_offset
        ended_at, before = self._ended_at, self._looked_for
        self._looked_for = relative
        if ended_at is not None and before < relative <= ended_at[0]:
            found = self._place_of(ended_at)
            if found.base_offset <= offset:
                return Located(ended_at[1], found.size)
        entry, after = self._offsets.around(relative)
        position = entry[1] if entry else 0
        # Batches larger than the interval have an entry each: the next entry is most likely that of the wanted batch.
        if after is not None and after[1] - position > 2 * self._index_interval_bytes:
            found = self._place_of(after)
            if found.base_offset <= offset:
                return Located(after[1], found.size)
        for at, header in headers(self.reader, position, self.size):
            self._check_entry(entry, at, header)
            if header.last_offset >= offset:
                return Located(at, header.size)
        return None

    def _place_of(self, entry: tuple[int, int]) -> BatchPlace:
        """The place of an index entry's batch."""
        place = place_of(self.reader, entry[1], self.size)
        if place.last_offset != self.base_offset + entry[0]:
            raise self._wrong_entry(entry[1])
        return place

    def _check_entry(self, entry: tuple[int, int] | None, position: int, header: BatchHeader) -> None:
        if entry is not None and position == entry[1] and header.last_offset != self.base_offset + entry[0]:
            raise self._wrong_entry(position)

    def _wrong_entry(self, position: int) -> CorruptData:
        return CorruptData(f"{self.path(OFFSET_INDEX)}: position {position} is not that of its batch")

    def _load_indexes(self) -> None:
        if self._indexes_loaded:
            return
        if not self.size:
            self.restart()
            return
        try:
            self._offsets.load()
            self._times.load()
            self._check_loaded()
        except (CorruptData, StorageError):
            self.rebuild_indexes()
            return
        self._indexes_loaded = True

    def _check_loaded(self) -> None:
        last_offset, last_time = self._offsets.last(), self._times.last()
        if last_offset and not (last_offset[0] >= 0 and 0 <= last_offset[1] < self.size):
            raise CorruptData(f"{self.path(OFFSET_INDEX)}: goes on past the end of the log")
        if last_time:
            self._largest_timestamp = last_time[0]
            self._largest_timestamp_offset = self.base_offset + last_time[1]
            if last_time[1] < 0 or not self.size:
                raise CorruptData(f"{self.path(TIME_INDEX)}: has entries for nothing")
        elif self.size and self.header_at(0).max_timestamp >= 0:
            raise CorruptData(f"{self.path(TIME_INDEX)}: has no entries")

    def _add_time_entry(self) -> None:
        if self._largest_timestamp > NO_TIMESTAMP and self._times.ends_before(self._largest_timestamp):
            self._times.add(self._largest_timestamp, self._largest_timestamp_offset - self.base_offset)

    def _find_largest_timestamp(self) -> None:
        last = self._times.last()
        self._largest_timestamp, relative = last or (NO_TIMESTAMP, 0)
        self._largest_timestamp_offset = self.base_offset + relative
        entry = self._offsets.last_at_most(relative)
        for _, header in headers(self.reader, entry[1] if entry else 0, self.size):
            if header.max_timestamp > self._largest_timestamp:
                self._largest_timestamp, self._largest_timestamp_offset = header.max_timestamp, header.last_offset
        last_entry = self._offsets.last()
        self._bytes_since_entry = self.size - (last_entry[1] if last_entry else 0)

    def _waited_ms(self, max_timestamp: int, now_ms: int) -> int:
        """How long ago the segment began: by its records' timestamps, or by our clock if they have none."""
        if self.first_timestamp >= 0:
            return max_timestamp - self.first_timestamp
        return now_ms - self.created_ms

    def _jitter_ms(self, config: TopicConfig) -> int:
        """A jitter that differs between logs and between segments, but is always the same for one segment."""
        if not config.segment_jitter_ms:
            return 0
        spread = sum(self._directory.encode()) * 2_654_435_761 + self.base_offset * 40_503
        return spread % min(config.segment_jitter_ms, _age_max_ms(config))


def count_before(segments: Sequence[Segment], offset: int) -> int:
    """How many of a log's segments lie wholly before *offset*; the last one never does."""
    return bisect_right(segments, offset, lo=1, key=_base_of) - 1


def _base_of(segment: Segment) -> int:
    return segment.base_offset


def _add_growing(entries: list[tuple[int, int]], first: int, second: int) -> None:
    if first > (entries[-1][0] if entries else NO_TIMESTAMP):
        entries.append((first, second))


def _age_max_ms(config: TopicConfig) -> int:
    """How old a segment may get. Records that must be compacted by some age must be in a complete segment by then."""
    compacts = "compact" in config.cleanup_policy
    return min(config.segment_ms, config.max_compaction_lag_ms) if compacts else config.segment_ms
