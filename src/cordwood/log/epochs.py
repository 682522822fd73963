"""Which leader wrote what: for each leader epoch, the offset at which its records begin (KIP-101).

Epochs and start offsets both grow from entry to entry. Replicas compare them to find where their logs diverge. The file
is Kafka's ``leader-epoch-checkpoint``. It is rewritten with every change but synced only when the log is: whatever it
lacks after a crash is in the headers of the batches that recovery reads anyway.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cordwood.errors import CorruptData
from cordwood.ids import NO_LEADER_EPOCH, NO_OFFSET
from cordwood.ports import Disk, Syncable

from .checkpoint import WrittenFile, format_checkpoint, parse_checkpoint, write_unsynced


class EpochStart(NamedTuple):
    """The first offset of a leader epoch."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """Where an epoch ends: the largest known epoch up to the one asked for, and the offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN_END: Final = EpochEnd(NO_LEADER_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """The epochs of one partition's log."""

    __slots__ = ("_disk", "_entries", "_path", "_unsynced")

    def __init__(self, disk: Disk, path: str, entries: Iterable[EpochStart] = ()) -> None:
        self._disk = disk
        self._path = path
        self._entries = list(entries)
        self._unsynced = False

    @classmethod
    def load(cls, disk: Disk, path: str) -> "LeaderEpochs":
        """Read the file. ``CorruptData`` if it is incomplete or inconsistent."""
        epochs = cls(disk, path, [_parsed(words) for words in parse_checkpoint(disk.read(path))])
        for earlier, later in zip(epochs._entries, epochs._entries[1:], strict=False):
            if not (earlier.epoch < later.epoch and earlier.start_offset < later.start_offset):
                raise CorruptData(f"{path}: epoch {later.epoch} is out of order")
        return epochs

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch, -1 if there is none."""
        return self._entries[-1].epoch if self._entries else NO_LEADER_EPOCH

    @property
    def earliest(self) -> EpochStart | None:
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Records of *epoch* begin at *start_offset*. Was that new? Entries that contradict it are dropped."""
        assert epoch >= 0, "an epoch that records have is not negative"
        assert start_offset >= 0, "an offset is not negative"
        if self._entries:
            last = self._entries[-1]
            if last.epoch == epoch and last.start_offset <= start_offset:
                return False
        while self._entries and (self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        return True

    def fill(self, older: Sequence[EpochStart]) -> None:
        """Put *older* entries, found later, before the known ones."""
        self._entries = [*older, *(entry for entry in self._entries if not older or entry.epoch > older[-1].epoch)]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where the records of *epoch*, or of the nearest one before it, end."""
        if epoch == NO_LEADER_EPOCH:
            return UNKNOWN_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(self._entries, epoch, key=_epoch_of)
        if higher == len(self._entries):
            return UNKNOWN_END
        found = self._entries[higher - 1].epoch if higher else epoch
        return EpochEnd(found, self._entries[higher].start_offset)

    def epoch_for(self, offset: int) -> int | None:
        """The epoch of the record at *offset*; None if the record is older than all known epochs."""
        number = bisect_right(self._entries, offset, key=_start_of)
        return self._entries[number - 1].epoch if number else None

    def truncate_from(self, end_offset: int) -> bool:
        """Forget epochs that begin at *end_offset* or later. Were there any?"""
        number = bisect_left(self._entries, end_offset, key=_start_of)
        removed = number < len(self._entries)
        del self._entries[number:]
        return removed

    def truncate_until(self, start_offset: int) -> bool:
        """Forget what lies before *start_offset*; the epoch in force there then begins there. Did anything change?"""
        number = bisect_right(self._entries, start_offset, key=_start_of)
        if not number or (number == 1 and self._entries[0].start_offset == start_offset):
            return False
        self._entries[:number] = [EpochStart(self._entries[number - 1].epoch, start_offset)]
        return True

    def clear(self) -> None:
        self._entries.clear()

    def save(self) -> None:
        """Write the file without syncing it; ``take_unsynced`` then returns it to be synced."""
        write_unsynced(self._disk, self._path, self._encoded())
        self._unsynced = True

    def save_durably(self) -> None:
        """Write the file and wait for the disk: with it, all earlier renames reach the disk, too."""
        self._disk.replace(self._path, self._encoded())
        self._unsynced = False

    def take_unsynced(self) -> list[Syncable]:
        was_unsynced, self._unsynced = self._unsynced, False
        return [WrittenFile(self._disk, self._path)] if was_unsynced else []

    def check(self) -> None:
        for earlier, later in zip(self._entries, self._entries[1:], strict=False):
            assert earlier.epoch < later.epoch, "epochs grow"
            assert earlier.start_offset < later.start_offset, "start offsets grow"

    def _encoded(self) -> bytes:
        return format_checkpoint(f"{entry.epoch} {entry.start_offset}" for entry in self._entries)


def _epoch_of(entry: EpochStart) -> int:
    return entry.epoch


def _start_of(entry: EpochStart) -> int:
    return entry.start_offset


def _parsed(words: list[str]) -> EpochStart:
    try:
        epoch, start_offset = map(int, words)
    except ValueError as error:
        raise CorruptData(f"{' '.join(words)!r} is no leader epoch and offset") from error
    if epoch < 0 or start_offset < 0:
        raise CorruptData(f"leader epoch {epoch} cannot begin at {start_offset}")
    return EpochStart(epoch, start_offset)
