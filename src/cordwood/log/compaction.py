"""Compaction: the work itself, done in a thread while the log stays in use.

It reads complete segments, which nobody changes, and writes new ones beside them, whose names end in ``.cleaned``. When
these are on the disk, ``Log.swap_in`` puts them in the place of the old ones, in the thread that owns the log, provided
the log still has what was read. A crash before that loses nothing but the work.

Code in here reaches the log's segments only by the names and sizes that were noted when the work was planned, because
``Segment`` objects must not be shared between threads.
"""

from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import NamedTuple

from cordwood.errors import CorruptData, StorageError
from cordwood.ports import Buffer, Disk, File, Instant
from cordwood.record.batch import BatchHeader, header_at
from cordwood.record.subset import body_of, spans

from .compaction_filter import Filter, last_written
from .compaction_keys import KeyMap
from .compaction_plan import Cleanable
from .compaction_transactions import AbortedSearch, AbortedTransaction, Transactions, has_transactions
from .log import Log, Swap
from .names import CLEANED, LOG, OFFSET_INDEX, TIME_INDEX
from .scan import whole_batches
from .segment import RELATIVE_OFFSET_MAX, Segment

_PAUSE_EFFORT = 512
"""After this much work, about a millisecond, others get their turn. A record counts one, a batch eight, and 1,024 bytes
eight."""


class Limits(NamedTuple):
    """How much memory compaction may use: keys in the map, and bytes read or written at a time."""

    keys_max: int
    chunk_bytes: int = 256 * 1024


class Source(NamedTuple):
    """A segment as it was when the work was planned."""

    segment: Segment
    path: str
    size: int
    end_offset: int


class Compaction:
    """One compaction of one log. ``work`` does it in small steps; ``swaps`` and ``cleaned_to`` are then the outcome."""

    def __init__(self, log: Log, part: Cleanable, limits: Limits, now: Instant) -> None:
        self._disk: Disk = log.disk
        self._directory = log.directory
        self._config = log.config
        self._limits = limits
        self._part = part
        self._now_ms = now.wall_ms
        self._decompressed_bytes_max = log.decompressed_bytes_max
        self._last_written = last_written(log.producers.known)
        self._generation = log.generation
        sources = _sources(log)
        self._count = sum(source.segment.base_offset < part.end for source in sources)
        self._sources, self._after = sources[: self._count], sources[self._count :]
        self._keys = KeyMap(part.first_dirty, limits.keys_max)
        self.swaps: list[Swap] = []
        self.bytes_read = self.bytes_left = self.dropped_keyless = 0

    def __str__(self) -> str:
        text = f"offsets {self.first_dirty} to {self.cleaned_to}, {self.bytes_left} bytes are left of {self.bytes_read}"
        return f"{text}, {self.dropped_keyless} records had no key" if self.dropped_keyless else text

    @property
    def first_dirty(self) -> int:
        return self._part.first_dirty

    @property
    def cleaned_to(self) -> int:
        """Up to here, no key occurs twice once the swaps are done."""
        return self._keys.end

    def fits(self, log: Log) -> bool:
        """Does the log still have the segments that were read, as they were?"""
        there = log.segments[: self._count]
        same = all(source.segment is segment for source, segment in zip(self._sources, there, strict=False))
        return same and len(there) == self._count and self._generation == log.generation

    def work(self) -> Iterator[int]:
        """Do it step by step; each step yields the number of bytes it has read and written.

        Raises:
            StorageError, CorruptData: a segment cannot be read or written. The log is unchanged.
        """
        try:
            self._remove_leftovers()
            aborted = yield from self._find_aborted()
            yield from self._map_keys(Transactions(t for t in aborted if t.marker_offset >= self.first_dirty))
            leaves = Filter(
                self._keys,
                Transactions(aborted),
                self._last_written,
                now_ms=self._now_ms,
                delete_retention_ms=self._config.delete_retention_ms,
                decompressed_bytes_max=self._decompressed_bytes_max,
            )
            for group in self._groups():
                yield from self._rewrite(group, leaves)
            self.dropped_keyless = leaves.dropped_keyless
        except (StorageError, CorruptData):
            with suppress(StorageError):
                self._remove_leftovers()
            raise

    def _remove_leftovers(self) -> None:
        """Remove what earlier work left behind: after a crash, it would make our complete segments look incomplete."""
        for name in self._disk.list(self._directory):
            if name.endswith(CLEANED):
                self._disk.remove(f"{self._directory}/{name}")

    # What must be known before writing

    def _find_aborted(self) -> Generator[int, None, list[AbortedTransaction]]:
        search = AbortedSearch()
        if not (yield from self._has_transactions()):
            return search.found
        for source in self._sources + self._after:
            search.look_at(self._disk.open(source.path), source.size)
            yield source.size
        return search.found

    def _has_transactions(self) -> Generator[int, None, bool]:
        for source in self._sources:
            if has_transactions(self._disk.open(source.path), source.size, self._limits.chunk_bytes):
                return True
            yield source.size
        return False

    def _map_keys(self, transactions: Transactions) -> Iterator[int]:
        """Note the last offset of every key from the first dirty offset on, as far as there is room."""
        keys, pace = self._keys, Pace()
        for source in self._sources:
            if source.end_offset <= self.first_dirty:
                continue
            for header, batch in self._batches(source):
                if header.last_offset >= self.first_dirty and not self._map_batch(header, batch, transactions):
                    return
                if pace.is_due(header.size, header.record_count):
                    yield pace.take()
            keys.end = source.end_offset

    def _map_batch(self, header: BatchHeader, batch: Buffer, transactions: Transactions) -> bool:
        """Note the keys of one batch. Was there room for them?"""
        keys = self._keys
        if not header.is_control and not transactions.is_aborted(header):
            if not keys.has_room(header.record_count):
                return False
            try:
                body = body_of(batch, header, limit=self._decompressed_bytes_max)
                keys.add(spans(body, header), header.base_offset)
            except CorruptData:  # malformed records: they stay, and they supersede no others
                pass
        keys.end = header.next_offset
        return True

    # Writing

    def _groups(self) -> Iterator[list[Source]]:
        """Groups of neighbours that together make one segment of the usual size, from the first to the map's end."""
        sources = [source for source in self._sources if source.segment.base_offset < self.cleaned_to]
        group: list[Source] = []
        log_bytes = offset_bytes = time_bytes = 0
        config = self._config
        for source in sources:
            offset_size, time_size = self._size(source, OFFSET_INDEX), self._size(source, TIME_INDEX)
            if group and not (
                log_bytes + source.size <= config.segment_bytes
                and offset_bytes + offset_size <= config.segment_index_bytes
                and time_bytes + time_size <= config.segment_index_bytes
                and source.end_offset - 1 - group[0].segment.base_offset <= RELATIVE_OFFSET_MAX
            ):
                yield group
                group, log_bytes, offset_bytes, time_bytes = [], 0, 0, 0
            group.append(source)
            log_bytes, offset_bytes, time_bytes = (
                log_bytes + source.size,
                offset_bytes + offset_size,
                time_bytes + time_size,
            )
        if group:
            yield group

    def _size(self, source: Source, suffix: str) -> int:
        path = source.path.removesuffix(LOG) + suffix
        return self._disk.open(path).size if self._disk.exists(path) else 0

    def _rewrite(self, group: list[Source], leaves: Filter) -> Iterator[int]:
        """Write what is kept of a group of segments into a new one, and sync that to the disk."""
        draft = Draft(self._new_segment(group), self._limits.chunk_bytes)
        pace = Pace()
        last = max((source for source in group if source.size), key=_base_of, default=None)
        for source in group:
            position = 0
            for header, batch in self._batches(source):
                position += header.size
                ends_segment = source is last and position == source.size
                left = leaves.left_of(header, batch, ends_segment=ends_segment)
                if left is not None:
                    draft.add(header if left is batch else header_at(left), left)
                if pace.is_due(header.size + len(left or b""), header.record_count):
                    yield pace.take()
            self.bytes_read += source.size
        self.swaps.append(Swap([source.segment for source in group], draft.finish()))
        self.bytes_left += draft.segment.size

    def _new_segment(self, group: list[Source]) -> Segment:
        return Segment.create(
            self._disk,
            self._directory,
            group[0].segment.base_offset,
            index_interval_bytes=self._config.index_interval_bytes,
            now_ms=group[-1].segment.written_ms,
            ending=CLEANED,
        )

    def _batches(self, source: Source) -> Iterator[tuple[BatchHeader, memoryview]]:
        file: File = self._disk.open(source.path)
        for _, header, batch in whole_batches(file, 0, source.size, chunk_bytes=self._limits.chunk_bytes):
            yield header, batch


class Pace:
    """Says when others should get their turn."""

    __slots__ = ("_bytes", "_effort")

    def __init__(self) -> None:
        self._bytes = self._effort = 0

    def is_due(self, size: int, record_count: int) -> bool:
        """One more batch has been dealt with: is it time for a pause?"""
        self._bytes += size
        self._effort += 8 + size // 128 + record_count
        return self._effort >= _PAUSE_EFFORT

    def take(self) -> int:
        """The bytes since the last pause."""
        size, self._bytes, self._effort = self._bytes, 0, 0
        return size


class Draft:
    """A segment that is being written, some batches at a time."""

    __slots__ = ("_buffer", "_chunk_bytes", "_headers", "segment")

    def __init__(self, segment: Segment, chunk_bytes: int) -> None:
        self.segment = segment
        self._chunk_bytes = chunk_bytes
        self._buffer = bytearray()
        self._headers: list[BatchHeader] = []

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        self._buffer += batch
        self._headers.append(header)
        if len(self._buffer) >= self._chunk_bytes:
            self._write()

    def finish(self) -> Segment:
        """Write the rest, and sync everything to the disk."""
        self._write()
        for file in (*self.segment.seal(), self.segment.file):
            file.sync()
        self.segment.release_file()
        return self.segment

    def _write(self) -> None:
        if self._headers:
            self.segment.file.append(self._buffer)
            for header in self._headers:
                self.segment.note(header.base_offset, header.last_offset, header.max_timestamp, header.size)
            self._buffer = bytearray()
            self._headers.clear()


def _base_of(source: Source) -> int:
    return source.segment.base_offset


def _sources(log: Log) -> list[Source]:
    segments = log.segments
    ends = [*(segment.base_offset for segment in segments[1:]), log.end_offset]
    return [Source(s, s.path(LOG), s.size, end) for s, end in zip(segments, ends, strict=True)]
