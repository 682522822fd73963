"""The two sparse indexes of a segment, in Kafka's file formats.

An entry is a pair of numbers, and both numbers grow from entry to entry. New entries gather in memory, packed as they
will be in the file, and are written there in groups, and whenever ``flush`` is called. While a segment is active they
need no sync of their own, because its indexes are rebuilt after a crash. Of the file, two things are held in memory:
the first entry of every block, so that a search reads only one block however long the index is, and the block that was
needed last. The file is open only while it is written, and for as long as the disk keeps its reader: a broker has
thousands of such files.
"""

from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from struct import Struct
from typing import Final

from cordwood.errors import CorruptData, StorageError
from cordwood.ports import Disk, Syncable
from cordwood.wire.native import native

from .checkpoint import WrittenFile
from .search import SECOND_BYTES, count_at_most, count_numbers_at_most, entry_at_most

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")

_add_entry: Final[Callable[[bytearray, int, int, int], None] | None] = getattr(native, "add_entry", None)
"""Packs an entry and appends it, in C: one call instead of two, and no intermediate object."""

_GROUP: Final = 512  # opening the file to write them takes as long as making sixty entries
_BLOCK: Final = 128


class Index:
    """Entries of two growing numbers in a file."""

    __slots__ = (
        "_block",
        "_block_first",
        "_disk",
        "_firsts",
        "_has_newest",
        "_iter_unpack",
        "_newest_first",
        "_newest_second",
        "_pack",
        "_path",
        "_size",
        "_stored",
        "_tail",
        "_unpack",
    )

    def __init__(self, disk: Disk, path: str, entry: Struct) -> None:
        self._disk = disk
        self._path = path
        self._pack = entry.pack
        self._unpack = entry.unpack_from
        self._iter_unpack = entry.iter_unpack
        self._size = entry.size
        self._stored = 0
        self._tail = bytearray()
        self._has_newest = False
        self._newest_first = 0
        self._newest_second = 0
        self._firsts = (array("q"), array("q"))
        """The first entries of the blocks, column by column, as far as searches have needed them."""
        self._block = b""
        self._block_first = 0

    def __len__(self) -> int:
        return self._stored + len(self._tail) // self._size

    def load(self) -> None:
        """Start from what the file holds. ``StorageError`` if there is no file, ``CorruptData`` if it is no index."""
        size = self._disk.open(self._path).size
        if size % self._size:
            raise CorruptData(f"{self._path}: {size} bytes are no whole number of entries")
        self._stored = size // self._size
        self._has_newest = False
        self._forget_firsts(0)
        self._forget_block()
        if self._stored and not self._grows(0, self._stored - 1):
            raise CorruptData(f"{self._path}: the entries do not grow")

    def moved_to(self, path: str) -> None:
        """The file has another name now."""
        self._path = path

    def reset(self) -> None:
        """Start empty, whatever the file holds, even if there is no file."""
        self.forget()
        if self._disk.exists(self._path):
            file = self._disk.open(self._path)
            if file.size:
                file.truncate(0)

    def forget(self) -> None:
        """Start empty in memory. The file stays as it is until something is flushed or stored."""
        self._tail.clear()
        self._has_newest = False
        self._stored = 0
        self._forget_firsts(0)
        self._forget_block()

    def store(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace everything by *entries*, in a file that is written atomically."""
        data = b"".join([self._pack(first, second) for first, second in entries])
        self._disk.replace(self._path, data)
        self.forget()
        self._stored = len(data) // self._size

    def entry(self, number: int) -> tuple[int, int]:
        if number >= self._stored:
            return self._unpacked(self._tail, (number - self._stored) * self._size)
        if not self._block_first <= number < self._block_first + len(self._block) // self._size:
            self._read_block(number)
        return self._unpacked(self._block, (number - self._block_first) * self._size)

    def last(self) -> tuple[int, int] | None:
        if self._has_newest:
            return self._newest_first, self._newest_second
        return self.entry(len(self) - 1) if len(self) else None

    def ends_before(self, first: int) -> bool:
        """Is *first* more than the first number of the last entry, if there is one?"""
        if self._has_newest:
            return self._newest_first < first
        last = self.last()
        return last is None or last[0] < first

    def add(self, first: int, second: int) -> None:
        self._newest_first = first
        self._newest_second = second
        self._has_newest = True
        if _add_entry is not None:
            _add_entry(self._tail, self._size, first, second)
        else:
            self._tail += self._pack(first, second)
        if len(self._tail) >= _GROUP * self._size:
            # The batch is in the log already, so nothing may fail now. The entries stay here until the disk recovers.
            with suppress(StorageError):
                self.flush()

    def last_at_most(self, value: int, *, column: int = 0) -> tuple[int, int] | None:
        """The last entry whose number in *column* is at most *value*."""
        if self._tail and (entry := entry_at_most(self._tail, self._size, column, value)) is not None:
            return entry
        return entry_at_most(self._block, self._size, column, value) if self._has_block_for(value, column) else None

    def around(self, value: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The last entry whose first number is at most *value*, and the one after it."""
        number = self._count_at_most(value, 0)
        after = self.entry(number) if number < len(self) else None
        return self.entry(number - 1) if number else None, after

    def truncate_before(self, value: int, *, column: int = 0) -> None:
        """Drop every entry whose number in *column* is *value* or more."""
        self._has_newest = False
        keep = self._count_at_most(value - 1, column)
        if keep >= self._stored:
            del self._tail[(keep - self._stored) * self._size :]
            return
        self._tail.clear()
        self._disk.open(self._path).truncate(keep * self._size)
        self._stored = keep
        self._forget_firsts(-(-keep // _BLOCK))
        self._forget_block()

    def flush(self) -> Syncable:
        """Write all entries to the file, which is created if necessary, and return it for the caller to sync."""
        file = self._disk.open(self._path, create=True)
        if file.size > (stored_bytes := self._stored * self._size):
            file.truncate(stored_bytes)  # left by a failed flush that could not cut it off either
        if self._tail:
            file.append(self._tail)
            self._stored += len(self._tail) // self._size
            self._tail.clear()
            self._forget_block()
        return WrittenFile(self._disk, self._path)

    def entries(self) -> list[tuple[int, int]]:
        """All of them."""
        found: list[tuple[int, int]] = []
        while len(found) < self._stored:
            if self._block_first != len(found) or not self._block:
                self._read_block(len(found))
            found += self._iter_unpack(self._block)
        return [*found, *self._iter_unpack(self._tail)]

    def check(self) -> None:
        entries = self.entries()
        assert self._newest is None or self._newest == entries[-1], f"{self._path}: the last entry is another one"
        for number, ((first, second), (next_first, next_second)) in enumerate(pairwise(entries), 1):
            assert first < next_first, f"{self._path}: entry {number} does not grow"
            assert second <= next_second, f"{self._path}: entry {number} does not grow"
        for block, of_block in enumerate(zip(*self._firsts, strict=True)):
            assert entries[block * _BLOCK] == of_block, f"{self._path}: block {block} begins with another entry"

    @property
    def _newest(self) -> tuple[int, int] | None:
        """The last entry, if it was added since the index was last loaded, replaced or truncated."""
        return (self._newest_first, self._newest_second) if self._has_newest else None

    def _grows(self, number: int, later: int) -> bool:
        if number == later:
            return True
        (first, second), (later_first, later_second) = self.entry(number), self.entry(later)
        return first < later_first and second <= later_second

    def _count_at_most(self, value: int, column: int) -> int:
        """How many entries have at most *value* in *column*. Recent entries are in memory; of the others, one block has
        the answer."""
        if self._tail and (count := self._count_in(self._tail, value, column)):
            return self._stored + count
        if not self._has_block_for(value, column):
            return 0
        return self._block_first + self._count_in(self._block, value, column)

    def _has_block_for(self, value: int, column: int) -> bool:
        """Load the block with the file's last entry that has at most *value* in *column*. Is there one?"""
        if len(self._firsts[0]) * _BLOCK < self._stored:
            self._read_firsts()
        block = count_numbers_at_most(self._firsts[column], value)
        if not block:
            return False
        first = (block - 1) * _BLOCK
        if self._block_first != first or not self._block:
            self._read_block(first)
        return True

    def _count_in(self, entries: bytes | bytearray, value: int, column: int) -> int:
        """How many packed entries have at most *value* in *column*."""
        size = self._size
        if column == 0:
            return count_at_most(entries, size, 0, size - SECOND_BYTES, value)
        return count_at_most(entries, size, size - SECOND_BYTES, SECOND_BYTES, value)

    def _read_firsts(self) -> None:
        """Read the first entries of the blocks that no search has needed before."""
        known, size = len(self._firsts[0]) * _BLOCK, self._size
        data = self._disk.reader(self._path).read(known * size, (self._stored - known) * size)
        if len(data) != (self._stored - known) * size:
            raise CorruptData(f"{self._path}: the file is shorter than it was")
        for at in range(0, len(data), _BLOCK * size):
            for column, number in zip(self._firsts, self._unpacked(data, at), strict=True):
                column.append(number)

    def _unpacked(self, data: bytes | bytearray, position: int) -> tuple[int, int]:
        first: int
        second: int
        first, second = self._unpack(data, position)
        return first, second

    def _read_block(self, number: int) -> None:
        first = number - number % _BLOCK
        size = self._size
        count = min(_BLOCK, self._stored - first)
        self._block = self._disk.reader(self._path).read(first * size, count * size)
        self._block_first = first
        if len(self._block) != count * size:
            self._forget_block()
            raise CorruptData(f"{self._path}: the file is shorter than it was")

    def _forget_firsts(self, keep: int) -> None:
        for column in self._firsts:
            del column[keep:]

    def _forget_block(self) -> None:
        self._block = b""
        self._block_first = 0


def offset_index(disk: Disk, path: str) -> Index:
    """Entries of (last offset of a batch, relative to the segment's base; position of that batch in the log file)."""
    return Index(disk, path, OFFSET_ENTRY)


def time_index(disk: Disk, path: str) -> Index:
    """Entries of (largest timestamp so far; last offset of the batch that has it, relative to the segment's base)."""
    return Index(disk, path, TIME_ENTRY)
