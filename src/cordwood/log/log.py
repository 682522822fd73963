"""One partition's log.

Invariants, which ``check`` asserts:

- ``log_start_offset <= end_offset``; segments follow each other in offset order, the last one is active.
- Offsets of batches only grow. There are no gaps but those that compaction has made, here or on the leader.
- Everything before ``recovery_point`` is on the disk; so are segments before ``unsynced_from``, with their indexes.
- A call of ``append`` is one write. If it fails, nothing has changed.

The log decides nothing about replication. Its callers pass the high watermark where it matters, sync in a thread what
``files_to_sync`` lists, and remove the paths that deletions return. It has a single owner and needs no lock.
"""

from bisect import bisect_right
from contextlib import suppress
from typing import Final, NamedTuple

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error, Refused, StorageError, TruncationError
from cordwood.ids import NO_LEADER_EPOCH, NO_TIMESTAMP
from cordwood.ports import Disk, FileSlice, Instant, Syncable
from cordwood.record.batch import BatchHeader, batches, header_at, stamp
from cordwood.record.control import EndMarker, build_end_marker, end_marker
from cordwood.record.glance import Effort

from .checkpoint import WrittenFile
from .epochs import EpochEnd, LeaderEpochs
from .names import SWAP
from .produced import ProduceRules
from .producers import BatchSpan, CompletedTransaction, Producers
from .replay import reload_producers, replay_batch
from .retention import segments_before_start, segments_to_delete
from .segment import RELATIVE_OFFSET_MAX, Segment
from .snapshot import SnapshotFiles
from .times import FoundOffset, find_max_timestamp, find_timestamp

FLUSH_MESSAGES_MAX: Final = 1 << 60  # anything above also means never, and a number of this size needs no object
LARGE_BATCH_BYTES: Final = 1 << 14  # sending part of such a batch in vain costs more than finding where it begins


class Piece:
    """What a reader gets, if anything. It may be less than is ``available``: it lies within one segment and begins with
    a whole batch, and where batches are large, it usually ends with a whole one."""

    __slots__ = ("available", "records")

    def __init__(self, records: FileSlice | None, available: int) -> None:
        self.records = records
        self.available = available


class AppendResult:
    """The outcome of an append. ``log_append_time_ms`` is -1 if the records keep their producer's time."""

    __slots__ = ("completed", "duplicate", "first_offset", "last_offset", "log_append_time_ms", "log_start_offset")

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        duplicate: bool = False,
        completed: CompletedTransaction | None = None,
    ) -> None:
        self.first_offset: Final = first_offset
        self.last_offset: Final = last_offset
        self.log_append_time_ms: Final = log_append_time_ms
        self.log_start_offset: Final = log_start_offset
        self.duplicate: Final = duplicate
        self.completed: Final = completed


class Swap(NamedTuple):
    """Consecutive segments, and the one that compaction has made of them."""

    sources: list[Segment]
    cleaned: Segment


class SyncJob(NamedTuple):
    """Files to sync; pass the job to ``Log.synced`` when that is done."""

    files: list[Syncable]
    up_to: int
    active_base: int
    generation: int


class LogState(NamedTuple):
    """What opening a log has found out (see ``recovery``)."""

    disk: Disk
    directory: str
    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    snapshots: SnapshotFiles
    start_offset: int
    end_offset: int
    recovery_point: int
    unsynced_from: int
    unsynced_files: list[Syncable]
    was_cut: bool = False


class Log:
    """The records of one partition on this broker."""

    __slots__ = (
        "_active",
        "_bases",
        "_config",
        "_decompressed_bytes_max",
        "_directory",
        "_disk",
        "_effort",
        "_epochs",
        "_generation",
        "_last_sync_ms",
        "_latest_epoch",
        "_producers",
        "_rolled",
        "_rules",
        "_segments",
        "_snapshots",
        "_unsynced_files",
        "_unsynced_paths",
        "cleaned_to",
        "end_offset",
        "flush_messages",
        "log_start_offset",
        "may_look_inside",
        "min_insync_replicas",
        "recovery_point",
        "unsynced_from",
        "was_cut",
    )

    def __init__(self, state: LogState, config: TopicConfig, *, now: Instant, decompressed_bytes_max: int) -> None:
        self._disk = state.disk
        self._directory = state.directory
        self._segments = state.segments
        self._bases = [segment.base_offset for segment in state.segments]
        self._active = state.segments[-1]
        self._epochs = state.epochs
        self._latest_epoch = state.epochs.latest
        self._producers = state.producers
        self._snapshots = state.snapshots
        self._decompressed_bytes_max = decompressed_bytes_max
        self._effort = Effort()
        self._generation = 0
        self._last_sync_ms = now.mono_ms
        self._rolled = False
        self._unsynced_files = state.unsynced_files
        self._unsynced_paths: list[str] = []
        self.log_start_offset = state.start_offset
        self.end_offset = state.end_offset
        self.recovery_point = state.recovery_point
        self.unsynced_from = state.unsynced_from
        self.cleaned_to = 0
        """The offset up to which the log is compacted."""
        self.was_cut = state.was_cut
        """Was a damaged or incomplete part cut off when the log was opened?"""
        self.update_config(config)

    @property
    def config(self) -> TopicConfig:
        return self._config

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def decompressed_bytes_max(self) -> int:
        return self._decompressed_bytes_max

    @property
    def generation(self) -> int:
        """How often the log was truncated: anything read from it before may no longer be in it."""
        return self._generation

    @property
    def size(self) -> int:
        """Bytes of all segments' records."""
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    @property
    def producers(self) -> Producers:
        return self._producers

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the newest record, or a later one that has begun since; -1 if there is none."""
        return self._latest_epoch

    @property
    def recovery_checkpoint(self) -> int:
        """Where to read the log from after a crash: the base of the first segment not synced with its indexes."""
        return self.unsynced_from

    @property
    def unflushed_messages(self) -> int:
        return self.end_offset - self.recovery_point

    def update_config(self, config: TopicConfig) -> None:
        self._config = config
        self.flush_messages = min(config.flush_messages, FLUSH_MESSAGES_MAX)
        self.min_insync_replicas = config.min_insync_replicas
        limit = self._decompressed_bytes_max
        self._rules = ProduceRules(config, decompressed_bytes_max=limit, effort=self._effort)
        self.may_look_inside = self._rules.may_look_inside

    @property
    def effort(self) -> int:
        """How much work looking inside batches has taken so far, in bytes or their equivalent in time."""
        return self._effort.spent

    # Writing

    def append(
        self, data: memoryview, *, leader_epoch: int, now: Instant, transaction_verified: bool = False
    ) -> AppendResult:
        """Append a client's batch as the leader; its base offset and leader epoch are written into *data*.

        Raises:
            Refused: the topic does not accept this batch, or the producer may not append it now.
            StorageError: it could not be written; the log is unchanged.
        """
        rules, producers = self._rules, self._producers
        data, header = rules.accept(data, now.wall_ms)
        is_sequenced = header.producer_id >= 0
        producer = producers.whose_turn(header) if is_sequenced else None
        if is_sequenced and producer is None:
            duplicate = producers.find_duplicate(header)
            if duplicate is not None:
                return self._duplicate(duplicate)
            producers.check_append(header)
            if header.is_transactional and not transaction_verified:
                self._check_in_transaction(header)
        first_offset = self._write(data, header, leader_epoch, now)
        if producer is not None:
            producer.wrote(header, first_offset)
        elif is_sequenced:
            producers.append(header, first_offset)
        time_ms = now.wall_ms if rules.log_append_time else NO_TIMESTAMP
        return AppendResult(first_offset, self.end_offset - 1, time_ms, self.log_start_offset)

    def append_own(self, data: memoryview, *, leader_epoch: int, now: Instant) -> AppendResult:
        """Append a batch that this broker has made itself, and that therefore needs no checks."""
        first_offset = self._write(data, header_at(data), leader_epoch, now)
        return AppendResult(first_offset, self.end_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def begin_epoch(self, epoch: int) -> None:
        """This broker leads from now on: *epoch* begins here, even if nothing is appended before the next one."""
        if epoch > self._latest_epoch:
            # The file may fail to be written: what it lacks is in the batches, once there are some.
            with suppress(StorageError):
                self._assign_epoch(epoch, self.end_offset)

    def append_marker(
        self, marker: EndMarker, *, producer_id: int, producer_epoch: int, leader_epoch: int, now: Instant
    ) -> AppendResult:
        """Append the marker that ends a producer's transaction, as its coordinator asks."""
        data = memoryview(build_end_marker(marker, producer_id=producer_id, producer_epoch=producer_epoch))
        header = header_at(data)
        self._producers.check_marker(header, marker)
        offset = self._write(data, header, leader_epoch, now)
        completed = self._producers.end_transaction(header, marker, offset)
        return AppendResult(offset, offset, NO_TIMESTAMP, self.log_start_offset, completed=completed)

    def append_as_follower(self, data: memoryview, *, now: Instant) -> AppendResult | None:
        """Append what the leader sent, with its offsets and epochs. None if there is no whole batch in it.

        Raises:
            CorruptData: the bytes are damaged, or their offsets do not follow the log's.
        """
        received = list(batches(data))
        if not received:
            return None
        self._check_received(received)
        first = 0
        while first < len(received):
            first = self._write_as_follower(data, received, first, now)
        first_offset = received[0][1].base_offset
        return AppendResult(first_offset, self.end_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def roll(self, now: Instant, base_offset: int | None = None) -> None:
        """Begin a new segment."""
        base_offset = self.end_offset if base_offset is None else base_offset
        if self._active.base_offset == base_offset:
            assert not self._active.size, "a segment with records has another base offset"
            return
        sealed = self._active
        indexes = sealed.seal()
        self._add_segment(base_offset, now)
        self._unsynced_files += indexes  # only now: if that failed, every further append would add them again
        self._rolled = True
        sealed.release_file()  # there is no limit to how many segments may be waiting for their sync
        self._producers.end_offset = base_offset
        self._snapshots.save(self._producers.snapshot(), base_offset)

    # Reading

    def read(self, offset: int, max_bytes: int, *, up_to_offset: int, first_whole: bool = True) -> FileSlice | None:
        """Batches from the one with *offset* in it on, all of them before *up_to_offset*; None if there are none.

        The slice lies within one segment. Its first batch is whole: if that is larger than *max_bytes*, it is returned
        nevertheless if *first_whole* is set, and otherwise nothing is. The last batch may be cut off by *max_bytes*,
        but seldom is where batches are large.

        Raises:
            Refused: OFFSET_OUT_OF_RANGE.
        """
        piece = self.read_piece(offset, max_bytes, up_to_offset=up_to_offset, first_whole=first_whole)
        return piece.records if piece is not None else None

    def read_piece(self, offset: int, max_bytes: int, *, up_to_offset: int, first_whole: bool) -> Piece | None:
        """Like ``read``, but also tells how much there is to read."""
        if not self.log_start_offset <= offset <= self.end_offset:
            text = f"Offset {offset} is not between {self.log_start_offset} and {self.end_offset}."
            raise Refused(Error.OFFSET_OUT_OF_RANGE, text)
        if offset >= up_to_offset:
            return None
        number = len(self._bases) - 1 if offset >= self._bases[-1] else bisect_right(self._bases, offset) - 1
        while (found := self._segments[number].locate(offset)) is None:
            number += 1
            if number == len(self._segments):
                return None
        segment = self._segments[number]
        end = segment.size
        if up_to_offset < self._end_of(number) and (limit := segment.locate(up_to_offset)) is not None:
            end = limit.position
        position, size = found.position, found.size
        available = min(max(max_bytes, size) if first_whole else max_bytes, end - position)
        if available < size:
            return Piece(None, available)
        length = available
        if size >= LARGE_BATCH_BYTES and available < end - position:
            whole = segment.batch_start_before(position + available) - position
            # A sparse index may know no position nearby: then part of a batch in vain is better than leaving out many.
            if whole >= size and available - whole <= 2 * size:
                length = whole
        if up_to_offset > self._end_of(number):  # there is more, in the next segment
            available = max(available, max_bytes)
        return Piece(FileSlice(segment.reader, position, length), available)

    def earliest(self) -> FoundOffset:
        entry = self._epochs.earliest
        known = entry is not None and entry.start_offset <= self.log_start_offset
        return FoundOffset(self.log_start_offset, leader_epoch=entry.epoch if entry and known else NO_LEADER_EPOCH)

    def latest(self) -> FoundOffset:
        return FoundOffset(self.end_offset, leader_epoch=self._latest_epoch)

    def find_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record with *timestamp* or a later one."""
        limit, effort = self._decompressed_bytes_max, self._effort
        start = self.log_start_offset
        return find_timestamp(self._segments, timestamp, start_offset=start, limit=limit, effort=effort)

    def find_max_timestamp(self) -> FoundOffset | None:
        """The record with the largest timestamp; if several have it, the first one in the first such batch."""
        limit, effort = self._decompressed_bytes_max, self._effort
        return find_max_timestamp(self._segments, start_offset=self.log_start_offset, limit=limit, effort=effort)

    def end_offset_for(self, epoch: int) -> EpochEnd:
        """Where the records of a leader epoch end (KIP-101, KIP-320)."""
        return self._epochs.end_offset_for(epoch, self.end_offset)

    def epoch_for(self, offset: int) -> int | None:
        return self._epochs.epoch_for(offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset before which every transaction is committed or aborted, with its marker below *high_watermark*."""
        unstable = self._producers.first_unstable_offset(high_watermark)
        if unstable is None or unstable >= high_watermark:
            return high_watermark
        return max(unstable, self.log_start_offset)

    # Deleting

    def advance_start(self, offset: int, *, high_watermark: int) -> bool:
        """Give up the records before *offset*. Did that change anything?"""
        if offset > high_watermark:
            text = f"Offset {offset} is beyond the high watermark {high_watermark}."
            raise Refused(Error.OFFSET_OUT_OF_RANGE, text)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        if self._epochs.truncate_until(offset):
            self._epochs.save()
        return True

    def delete_old_segments(self, now: Instant, *, high_watermark: int) -> list[str]:
        """Drop the segments that retention does not keep; return the paths of their files, to be removed later."""
        count = segments_to_delete(
            self._segments,
            self._config,
            start_offset=self.log_start_offset,
            end_offset=self.end_offset,
            high_watermark=high_watermark,
            now_ms=now.wall_ms,
        )
        if count == len(self._segments):
            self.roll(now)
        return self._delete_oldest(count, high_watermark)

    def delete_before_start(self, *, high_watermark: int) -> list[str]:
        """Drop only the segments that lie wholly before the log's start; return the paths likewise."""
        start = self.log_start_offset
        count = segments_before_start(self._segments, start_offset=start, high_watermark=high_watermark)
        return self._delete_oldest(count, high_watermark)

    def _delete_oldest(self, count: int, high_watermark: int) -> list[str]:
        if not count:
            return []
        self.advance_start(self._segments[count].base_offset, high_watermark=high_watermark)
        deleted, self._segments = self._segments[:count], self._segments[count:]
        self._bases = self._bases[count:]
        self.unsynced_from = max(self.unsynced_from, self._bases[0])
        self._snapshots.keep_between(self._bases[0], self.end_offset)
        return [path for segment in deleted for path in segment.mark_deleted()]

    def swap_in(self, swap: Swap) -> list[str]:
        """Replace some segments by what compaction has made of them; return the paths of files to be removed later.

        If the first step fails, nothing has changed. After that the new segment counts, whatever its files are called;
        if a later step fails, the next start completes the swap, and ``is_in_place`` is false until then.
        """
        first = self._segments.index(swap.sources[0])
        last = first + len(swap.sources)
        assert self._segments[first:last] == swap.sources, "segments are replaced that are in the log"
        assert last < len(self._segments), "the active segment is never compacted"
        swap.cleaned.rename(SWAP)
        self._segments[first:last] = [swap.cleaned]
        self._bases[first:last] = [swap.cleaned.base_offset]
        deleted = [path for segment in swap.sources for path in segment.mark_deleted()]
        swap.cleaned.rename("")
        self._snapshots.remove({segment.base_offset for segment in swap.sources[1:]})
        return deleted

    def truncate(self, offset: int, now: Instant) -> list[str]:
        """Drop the records from *offset* on, and those in the same batch; return the paths to be removed later.

        If ``end_offset`` is then less than the recovery point in the last checkpoint, the checkpoint must be lowered
        before anything is appended (``LogDirectory.lower_recovery_point``).

        Raises:
            TruncationError: the disk failed in the middle of it; this object must not be used any more.
        """
        try:
            return self._truncate(offset, now)
        except StorageError as error:
            raise TruncationError(f"a log could not be cut at offset {offset}: {error}") from error

    def _truncate(self, offset: int, now: Instant) -> list[str]:
        if offset >= self.end_offset:
            if self._epochs.truncate_from(self.end_offset):
                self._epochs_changed()
            return []
        if offset < self._bases[0]:
            return self._restart_at(offset, now)
        offset = self._batch_boundary(offset)
        keep = bisect_right(self._bases, offset)
        deleted = self._drop_segments(keep)
        self._epochs.truncate_from(offset)
        if deleted:
            # A crash must not bring the old names back and yet keep the truncation: there would be a gap.
            self._epochs.save_durably()
            self._epochs_changed(save=False)
        else:
            self._epochs_changed()
        self._active.truncate(offset, now.wall_ms)
        offset = self._active.end_offset()  # less if there was a gap: the next segment must begin where this one ends
        self._ended_at(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        start = self.log_start_offset
        reload_producers(self._producers, self._snapshots, self._segments, start_offset=start, end_offset=offset)
        return deleted

    def restart_at(self, offset: int, now: Instant) -> list[str]:
        """Drop everything and continue at *offset*; return the paths to be removed later. Raises like ``truncate``."""
        try:
            return self._restart_at(offset, now)
        except StorageError as error:
            raise TruncationError(f"a log could not begin anew at offset {offset}: {error}") from error

    def _restart_at(self, offset: int, now: Instant) -> list[str]:
        deleted = self._drop_segments(0)
        self._epochs.clear()
        self._epochs.save_durably()
        self._epochs_changed(save=False)
        self._add_segment(offset, now)
        self._ended_at(offset)
        self.log_start_offset = offset
        self.unsynced_from = offset
        self._snapshots.keep_between(0, -1)
        self._producers.clear(offset)
        return deleted

    # Syncing and closing

    def sync_due(self, now: Instant) -> bool:
        """Is it time to sync: by ``flush.messages``, by ``flush.ms``, or because a segment is complete?"""
        unflushed = self.end_offset - self.recovery_point
        if unflushed >= self._config.flush_messages or self._rolled:
            return True
        return unflushed > 0 and now.mono_ms - self._last_sync_ms >= self._config.flush_ms

    def files_to_sync(self) -> SyncJob:
        """Everything that is not known to be on the disk. Sync all of it, then call ``synced``."""
        files: list[Syncable] = [
            segment.written_file() for segment in self._segments[:-1] if segment.base_offset >= self.unsynced_from
        ]
        files.append(self._active.file)
        files += self._unsynced_files
        files += self._snapshots.take_unsynced()
        files += self._epochs.take_unsynced()
        files += [WrittenFile(self._disk, path) for path in self._unsynced_paths]
        self._unsynced_files, self._unsynced_paths = [], []
        self._rolled = False
        return SyncJob(files, self.end_offset, self._active.base_offset, self._generation)

    def synced(self, job: SyncJob, now: Instant) -> None:
        if job.generation != self._generation:
            return  # the log has been truncated in the meantime, and may have other records now
        self.recovery_point = max(self.recovery_point, job.up_to)
        for segment in self._segments:
            if self.unsynced_from <= segment.base_offset < job.active_base:
                segment.release_file()
        self.unsynced_from = max(self.unsynced_from, job.active_base)
        self._last_sync_ms = now.mono_ms

    def sync_too(self, path: str) -> None:
        """Sync this file of the partition with the log's own."""
        self._unsynced_paths.append(path)

    def prepare_to_close(self) -> SyncJob:
        """Write everything that a quick start needs. Once these files are synced, the log may be closed as clean."""
        if self._active.size:
            self._unsynced_files += self._active.seal()
        else:
            self._active.file.complete()  # a failed append may have left something there
        if self.end_offset > self.log_start_offset:
            self._snapshots.save(self._producers.snapshot(), self.end_offset)
        return self.files_to_sync()

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def check(self) -> None:
        """Assert every invariant; reads the whole log."""
        assert self._bases == [segment.base_offset for segment in self._segments], "the bases are the segments'"
        assert self._bases == sorted(set(self._bases)), "segments are in order"
        assert self._active is self._segments[-1], "the last segment is the active one"
        assert self._bases[0] <= self.log_start_offset <= self.end_offset, "the log starts in it and before its end"
        assert self.recovery_point <= self.end_offset, "what is synced was written"
        assert self.cleaned_to <= self.end_offset, "what is compacted was written"
        assert self.unsynced_from <= self._bases[-1], "the active segment is never wholly synced"
        assert self._producers.end_offset == self.end_offset, "producers are known up to the end"
        for number, segment in enumerate(self._segments):
            segment.check(self._end_of(number))
        self._epochs.check()
        assert self._latest_epoch == self._epochs.latest, "the latest epoch is remembered"
        self._producers.check()

    # Details

    def _write(self, data: memoryview, header: BatchHeader, leader_epoch: int, now: Instant) -> int:
        first_offset = self.end_offset
        last_offset = first_offset + header.last_offset_delta
        active, max_timestamp, size = self._active, header.max_timestamp, len(data)
        if active.should_roll(self._config, size, last_offset, max_timestamp, now.wall_ms):
            self.roll(now)
            active = self._active
        stamp(data, first_offset, leader_epoch)
        if leader_epoch != self._latest_epoch:
            assert leader_epoch > self._latest_epoch, "leaders follow each other in order"
            self._assign_epoch(leader_epoch, first_offset)
        active.file.append(data)
        active.note(first_offset, last_offset, max_timestamp, size)
        if max_timestamp < 0:  # then retention has nothing else to go by
            active.written_ms = now.wall_ms
        self.end_offset = self._producers.end_offset = last_offset + 1
        return first_offset

    def _write_as_follower(
        self, data: memoryview, received: list[tuple[memoryview, BatchHeader]], first: int, now: Instant
    ) -> int:
        """Write as many batches from number *first* on as belong in one segment. Return the number of the next one."""
        header = received[first][1]
        if self._active.should_roll(self._config, header.size, header.last_offset, header.max_timestamp, now.wall_ms):
            fits = header.last_offset - self.end_offset <= RELATIVE_OFFSET_MAX
            self.roll(now, self.end_offset if fits else header.base_offset)
        start = sum(header.size for _, header in received[:first])
        end = start
        count = first
        base_offset, room = self._active.base_offset, self._config.segment_bytes - self._active.size
        for _, header in received[first:]:
            is_first = count == first
            if not is_first and (
                end - start + header.size > room or header.last_offset - base_offset > RELATIVE_OFFSET_MAX
            ):
                break
            if header.leader_epoch >= 0:
                self._assign_epoch(header.leader_epoch, header.base_offset)
            end += header.size
            count += 1
        self._active.file.append(data[start:end])
        self._active.written_ms = now.wall_ms
        for batch, header in received[first:count]:
            self._active.note(header.base_offset, header.last_offset, header.max_timestamp, header.size)
            replay_batch(self._producers, header, batch)
        self.end_offset = self._producers.end_offset = received[count - 1][1].next_offset
        return count

    def _check_received(self, received: list[tuple[memoryview, BatchHeader]]) -> None:
        expected = self.end_offset
        for batch, header in received:
            if header.base_offset < expected:
                raise CorruptData(f"a batch at offset {header.base_offset} was sent after offset {expected - 1}")
            if header.is_control:
                end_marker(batch, header)
            expected = header.next_offset

    def _duplicate(self, span: BatchSpan) -> AppendResult:
        time_ms = span.timestamp if self._rules.log_append_time else NO_TIMESTAMP
        return AppendResult(span.first_offset, span.last_offset, time_ms, self.log_start_offset, duplicate=True)

    def _check_in_transaction(self, header: BatchHeader) -> None:
        if not self._producers.in_transaction(header.producer_id):
            text = f"Producer {header.producer_id} has no transaction under way that this partition is part of."
            raise Refused(Error.INVALID_TXN_STATE, text)

    def _batch_boundary(self, offset: int) -> int:
        """*offset*, or the base offset of the batch, if it lies in the middle of one."""
        segment = self._segments[bisect_right(self._bases, offset) - 1]
        found = segment.locate(offset)
        return offset if found is None else min(offset, segment.header_at(found.position).base_offset)

    def _end_of(self, number: int) -> int:
        return self._bases[number + 1] if number + 1 < len(self._bases) else self.end_offset

    def _assign_epoch(self, epoch: int, start_offset: int) -> None:
        if self._epochs.assign(epoch, start_offset):
            self._epochs_changed()

    def _epochs_changed(self, *, save: bool = True) -> None:
        self._latest_epoch = self._epochs.latest
        if save:
            self._epochs.save()

    def _add_segment(self, base_offset: int, now: Instant) -> None:
        self._active = Segment.create(
            self._disk,
            self._directory,
            base_offset,
            index_interval_bytes=self._config.index_interval_bytes,
            now_ms=now.wall_ms,
        )
        self._segments.append(self._active)
        self._bases.append(base_offset)

    def _drop_segments(self, keep: int) -> list[str]:
        """Drop all segments but the first *keep*, the newest first, so that a crash never leaves a gap."""
        deleted: list[str] = []
        while len(self._segments) > keep:
            deleted += self._segments.pop().mark_deleted()
            self._bases.pop()
        if self._segments:
            self._active = self._segments[-1]
        return deleted

    def _ended_at(self, offset: int) -> None:
        self._generation += 1
        self.end_offset = offset
        self.cleaned_to = min(self.cleaned_to, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.unsynced_from = min(self.unsynced_from, self._bases[-1])
