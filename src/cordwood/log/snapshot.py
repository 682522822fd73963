"""Producer snapshots: files with the state of all producers as of some offset, in Kafka's format.

A version (16 bits), the CRC-32C of everything after it, a count, and an entry of fixed size for each producer. A log
writes one whenever it begins a segment, and one when it closes, so that it need not read older segments to restore its
producers.
"""

from collections.abc import Container, Iterable
from struct import Struct
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ports import Disk, Syncable
from cordwood.record.crc import crc32c

from .checkpoint import WrittenFile, write_unsynced
from .names import SNAPSHOT, file_name

VERSION = 1
_HEAD = Struct(">hIi")
_ENTRIES_AT = 6
"""Where the part that the CRC covers begins: the count and the entries."""
_ENTRY = Struct(">qhiqiqiq")


class SnapshotEntry(NamedTuple):
    """One producer's state: only its last batch is kept in a snapshot."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_start: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    data = bytearray(_HEAD.pack(VERSION, 0, len(packed))) + b"".join(packed)
    _HEAD.pack_into(data, 0, VERSION, crc32c(memoryview(data)[_ENTRIES_AT:]), len(packed))
    return bytes(data)


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    if len(data) < _HEAD.size:
        raise CorruptData("a producer snapshot is cut off")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptData(f"a producer snapshot has version {version}, expected {VERSION}")
    if crc32c(memoryview(data)[_ENTRIES_AT:]) != crc:
        raise CorruptData("the checksum of a producer snapshot does not match its bytes")
    if len(data) - _HEAD.size != count * _ENTRY.size:
        raise CorruptData(f"a producer snapshot of {len(data)} bytes does not hold {count} producers")
    return [SnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]


class SnapshotFiles:
    """The snapshots of one partition, by the offset as of which each was taken."""

    __slots__ = ("_directory", "_disk", "_offsets", "_unsynced")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self._directory = directory
        self._offsets = sorted(offsets)
        self._unsynced: list[int] = []

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self._offsets)

    def save(self, entries: Iterable[SnapshotEntry], offset: int) -> None:
        """Write a snapshot as of *offset*, unless there is one; ``take_unsynced`` then returns it to be synced."""
        if self._offsets and self._offsets[-1] >= offset:
            return
        write_unsynced(self._disk, self._path(offset), encode_snapshot(entries))
        self._offsets.append(offset)
        self._unsynced.append(offset)

    def load_latest(self) -> tuple[int, list[SnapshotEntry]] | None:
        """The newest snapshot that can be read, and its offset. Those that cannot be are removed."""
        while self._offsets:
            offset = self._offsets[-1]
            try:
                return offset, decode_snapshot(self._disk.read(self._path(offset)))
            except CorruptData:
                self._remove(offset)
        return None

    def keep_between(self, low: int, high: int) -> None:
        """Remove snapshots below *low* and above *high*."""
        for offset in [o for o in self._offsets if not low <= o <= high]:
            self._remove(offset)

    def keep_only(self, offsets: Container[int]) -> None:
        """Remove snapshots that belong to none of *offsets*, except the last one, which a clean stop may have left."""
        for offset in [o for o in self._offsets[:-1] if o not in offsets]:
            self._remove(offset)

    def remove(self, offsets: Container[int]) -> None:
        """Remove the snapshots of *offsets*, where no segment begins any more."""
        for offset in [o for o in self._offsets if o in offsets]:
            self._remove(offset)

    def take_unsynced(self) -> list[Syncable]:
        offsets, self._unsynced = self._unsynced, []
        return [WrittenFile(self._disk, self._path(offset)) for offset in offsets if offset in self._offsets]

    def _remove(self, offset: int) -> None:
        self._disk.remove(self._path(offset))
        self._offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT)}"
