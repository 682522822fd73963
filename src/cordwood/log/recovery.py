"""Open a partition's log: after a clean stop without reading it, after any other by reading from its recovery point on.

Recovery reads every batch, beginning at the first segment that was not synced with all its files. The first batch that
is damaged, cut off or out of order ends the log: it and everything after it are cut off (whole segments are kept
aside). Indexes, producers and leader epochs of what was read are rebuilt, whatever their files say. Older segments are
trusted; their indexes are checked when first used.
"""

from bisect import bisect_right

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData
from cordwood.ports import Disk, Instant, Logger, Syncable
from cordwood.record.batch import BatchHeader

from .compaction_swaps import complete_swaps
from .epochs import EpochStart, LeaderEpochs
from .log import Log, LogState
from .names import LEADER_EPOCHS, LEFTOVERS, LOG, SEGMENT_SUFFIXES, SNAPSHOT, offset_of
from .producers import Producers
from .replay import fill_epochs, reload_producers, replay_batch
from .scan import whole_batches
from .segment import RELATIVE_OFFSET_MAX, Segment
from .snapshot import SnapshotFiles

DECOMPRESSED_BYTES_MAX = 64 << 20
DAMAGED = ".damaged"
_COPIED_BYTES = 1 << 20


def open_log(
    disk: Disk,
    directory: str,
    config: TopicConfig,
    *,
    now: Instant,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    logger: Logger | None = None,
) -> Log:
    """The log in *directory*, which is created if it does not exist.

    *clean* says that the log was closed properly; *recovery_point* and *log_start_offset* come from the checkpoints.
    """
    opening = _Opening(disk, directory, config, now, logger)
    state = opening.open(clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset)
    return Log(state, config, now=now, decompressed_bytes_max=decompressed_bytes_max)


class _Opening:
    """The work of opening one log."""

    def __init__(self, disk: Disk, directory: str, config: TopicConfig, now: Instant, logger: Logger | None) -> None:
        self._disk = disk
        self._directory = directory
        self._config = config
        self._now = now
        self._logger = logger
        self._segments: list[Segment] = []
        self._epochs = LeaderEpochs(disk, f"{directory}/{LEADER_EPOCHS}")
        self._stored_epochs: tuple[EpochStart, ...] | None = ()
        """What the file of leader epochs says; None if it cannot be read."""
        self._producers = Producers()
        self._snapshots = SnapshotFiles(disk, directory)
        self._stopped_cleanly = False
        self._was_cut = False
        self._unsynced: list[Syncable] = []

    def open(self, *, clean: bool, recovery_point: int, log_start_offset: int) -> LogState:
        self._stopped_cleanly = clean
        self._load_files()
        self._drop_before(log_start_offset)
        end_offset = self._trusted_end() if clean else None
        trusted = end_offset is not None
        first = self._number_of(recovery_point)
        if self._segments and not trusted:
            end_offset = self._recover(first)
        if end_offset is None or end_offset < log_start_offset:
            self._was_cut |= end_offset is not None
            if end_offset is not None:
                self._say(
                    "%s ends at offset %d, before offset %d where it should begin; it begins there anew",
                    self._directory,
                    end_offset,
                    log_start_offset,
                )
            self._start_over(log_start_offset)
            end_offset = log_start_offset
            first = 0
        start_offset = max(log_start_offset, self._segments[0].base_offset)
        self._settle_epochs(start_offset, end_offset)
        if trusted:
            self._settle_producers(start_offset, end_offset)
        for segment in self._segments[:-1]:
            segment.release_file()
        return LogState(
            disk=self._disk,
            directory=self._directory,
            segments=self._segments,
            epochs=self._epochs,
            producers=self._producers,
            snapshots=self._snapshots,
            start_offset=start_offset,
            end_offset=end_offset,
            recovery_point=end_offset if trusted else max(min(recovery_point, end_offset), start_offset),
            unsynced_from=self._segments[-1 if trusted else first].base_offset,
            unsynced_files=self._unsynced,
            was_cut=self._was_cut,
        )

    def _load_files(self) -> None:
        """Find segments, epochs and snapshots, and remove what belongs to none of them."""
        self._disk.make_directory(self._directory)
        for base_offset in complete_swaps(self._disk, self._directory):
            self._say("%s: the compacted segment at offset %d is put in its place", self._directory, base_offset)
        names = self._disk.list(self._directory)
        bases = {offset for name in names if (offset := offset_of(name, LOG)) is not None}
        for name in names:
            if name.endswith(LEFTOVERS) or _is_orphan(name, bases):
                self._disk.remove(f"{self._directory}/{name}")
        for base_offset in sorted(bases):
            self._segments.append(
                Segment.existing(
                    self._disk,
                    self._directory,
                    base_offset,
                    index_interval_bytes=self._config.index_interval_bytes,
                    now_ms=self._now.wall_ms,
                )
            )
        offsets = [offset for name in names if (offset := offset_of(name, SNAPSHOT)) is not None]
        self._snapshots = SnapshotFiles(self._disk, self._directory, offsets)
        self._load_epochs(exists=LEADER_EPOCHS in names)

    def _load_epochs(self, *, exists: bool) -> None:
        path = f"{self._directory}/{LEADER_EPOCHS}"
        if not exists:
            return
        try:
            self._epochs = LeaderEpochs.load(self._disk, path)
            self._stored_epochs = self._epochs.entries
        except CorruptData as error:
            if self._stopped_cleanly:  # otherwise a power failure may have come before the file was on the disk
                self._say("%s: %s; leader epochs are read from the log", self._directory, error)
            self._stored_epochs = None

    def _drop_before(self, log_start_offset: int) -> None:
        """Remove segments that had been dropped, but whose deletion a crash has undone. They may be damaged."""
        while len(self._segments) > 1 and self._segments[1].base_offset <= log_start_offset:
            self._remove(self._segments.pop(0))

    def _trusted_end(self) -> int | None:
        """Where the log ends, if its last segment looks as a clean stop leaves it. Does not read all of it."""
        if not self._segments:
            return None
        try:
            return self._segments[-1].end_offset()
        except CorruptData as error:
            self._say("%s, although the last stop was clean", error)
            return None

    def _number_of(self, offset: int) -> int:
        return max(0, bisect_right(self._segments, offset, key=_base_of) - 1)

    def _recover(self, first: int) -> int:
        """Read the segments from number *first* on and cut the log at the first fault. Return its end offset."""
        self._forget_from(first)
        for number in range(first, len(self._segments)):
            segment = self._segments[number]
            next_base = self._segments[number + 1].base_offset if number + 1 < len(self._segments) else None
            if not self._recover_segment(segment, next_base):
                self._was_cut = True
                self._drop_after(number)
                break
            if next_base is not None:
                segment.release_file()
                self._unsynced += segment.seal()
                self._producers.end_offset = next_base
                self._snapshots.save(self._producers.snapshot(), next_base)
        return self._producers.end_offset

    def _forget_from(self, first: int) -> None:
        """Reset producers and epochs to where the first segment to be read begins."""
        base_offset = self._segments[first].base_offset
        reload_producers(
            self._producers,
            self._snapshots,
            self._segments[: first + 1],
            start_offset=self._segments[0].base_offset,
            end_offset=base_offset,
        )
        self._epochs.truncate_from(base_offset)

    def _recover_segment(self, segment: Segment, next_base: int | None) -> bool:
        """Read one segment and rebuild its indexes. Is it whole?"""
        end = segment.size
        segment.restart()
        self._producers.end_offset = max(self._producers.end_offset, segment.base_offset)
        try:
            for _, header, batch in whole_batches(segment.file, 0, end):
                self._check_order(header, segment, next_base)
                replay_batch(self._producers, header, batch)
                segment.note(header.base_offset, header.last_offset, header.max_timestamp, header.size)
                if header.leader_epoch > self._epochs.latest:
                    self._epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptData as error:
            self._say("%s: %s; the log is cut at offset %d", self._directory, error, self._producers.end_offset)
            if self._stopped_cleanly:
                self._keep_rest(segment, end)
            segment.cut()
            return False
        if next_base is None or next_base == self._producers.end_offset:
            return True
        # A segment begins where the one before it ended, unless the offsets jump further than an index can express.
        # Any other gap means that the end of this segment never reached the disk.
        return next_base - segment.base_offset > RELATIVE_OFFSET_MAX

    def _keep_rest(self, segment: Segment, end: int) -> None:
        """Keep a copy of what is cut off. A crash damages only the end of a log; damage after a clean stop is something
        else, and what follows it may be intact."""
        path = segment.path(LOG) + DAMAGED
        copy = self._disk.open(path, create=True)
        copy.truncate(0)
        for position in range(segment.size, end, _COPIED_BYTES):
            copy.append(segment.file.read(position, min(_COPIED_BYTES, end - position)))
        copy.complete()
        copy.sync()
        copy.close()
        self._say("what was cut off is kept in %s, %d bytes", path, end - segment.size)

    def _check_order(self, header: BatchHeader, segment: Segment, next_base: int | None) -> None:
        if header.base_offset < self._producers.end_offset:
            raise CorruptData(f"offset {header.base_offset} is stored after offset {self._producers.end_offset - 1}")
        if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptData(f"offset {header.last_offset} is too far from {segment.base_offset}")
        if next_base is not None and header.last_offset >= next_base:
            raise CorruptData(f"offset {header.last_offset} belongs into the next segment")
        if 0 <= header.leader_epoch < self._epochs.latest:
            raise CorruptData(f"leader epoch {header.leader_epoch} is stored after epoch {self._epochs.latest}")

    def _drop_after(self, number: int) -> None:
        """Take the segments after *number* out of the log for good: the newest first, and before anything is written.

        No log may have a hole in it; a replica gets what it lacks from the others. But the records in these segments
        may be intact, and exist nowhere else, so they are kept beside the log.
        """
        dropped = self._segments[number + 1 :]
        while len(self._segments) > number + 1:
            self._put_away(self._segments.pop())
        if dropped:
            self._say(
                "%s ends at offset %d; what it had from offset %d on, in %d segments, is kept in files that end in %s",
                self._directory,
                self._producers.end_offset,
                dropped[0].base_offset,
                len(dropped),
                DAMAGED,
            )
        self._snapshots.keep_between(0, self._producers.end_offset)
        self._epochs.save_durably()

    def _start_over(self, offset: int) -> None:
        """Begin an empty log at *offset*."""
        while self._segments:
            self._remove(self._segments.pop())
        self._snapshots.keep_between(0, -1)
        self._producers.clear(offset)
        self._epochs.clear()
        interval = self._config.index_interval_bytes
        segment = Segment.create(
            self._disk, self._directory, offset, index_interval_bytes=interval, now_ms=self._now.wall_ms
        )
        self._segments.append(segment)

    def _put_away(self, segment: Segment) -> None:
        path = segment.path(LOG)
        segment.close()
        self._disk.rename(path, path + DAMAGED)
        self._remove(segment)

    def _remove(self, segment: Segment) -> None:
        segment.close()
        for suffix in SEGMENT_SUFFIXES:
            self._disk.remove(segment.path(suffix))

    def _settle_epochs(self, start_offset: int, end_offset: int) -> None:
        self._epochs.truncate_from(end_offset)
        earliest = self._epochs.earliest
        if end_offset > start_offset and (earliest is None or earliest.start_offset > start_offset):
            fill_epochs(self._epochs, self._segments, start_offset=start_offset, end_offset=end_offset)
        self._epochs.truncate_until(start_offset)
        if self._epochs.entries != self._stored_epochs:
            self._epochs.save()

    def _settle_producers(self, start_offset: int, end_offset: int) -> None:
        self._snapshots.keep_only({segment.base_offset for segment in self._segments})
        reload_producers(
            self._producers, self._snapshots, self._segments, start_offset=start_offset, end_offset=end_offset
        )

    def _say(self, text: str, *values: object) -> None:
        if self._logger is not None:
            self._logger.warning(text, *values)


def _base_of(segment: Segment) -> int:
    return segment.base_offset


def _is_orphan(name: str, bases: set[int]) -> bool:
    """Is this an index without its log file?"""
    for suffix in SEGMENT_SUFFIXES:
        if suffix != LOG and (offset := offset_of(name, suffix)) is not None:
            return offset not in bases
    return False
