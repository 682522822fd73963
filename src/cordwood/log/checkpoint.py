"""Small text files in Kafka's checkpoint format, and how to write such files without waiting for the disk.

The format is a version, a count, then that many lines. It has no checksum, so a reader must be strict: the count, and
the newline that ends the last line, reveal a file that lost its end, or that ends with another file's content.
"""

from collections.abc import Iterable

from cordwood.errors import CorruptData, StorageError
from cordwood.ports import Disk

_VERSION = "0"
_TEMPORARY = ".tmp"


def format_checkpoint(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(entries)), *entries)).encode()


def parse_checkpoint(data: bytes) -> list[list[str]]:
    """The words of each line. ``CorruptData`` if the file is not whole."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptData("a checkpoint file is not text") from error
    if len(lines) < 3 or lines[-1]:
        raise CorruptData("a checkpoint file is cut off")
    if lines[0] != _VERSION:
        raise CorruptData(f"a checkpoint file has version {lines[0]!r}, expected {_VERSION}")
    if lines[1] != str(len(lines) - 3):
        raise CorruptData(f"a checkpoint file has {len(lines) - 3} lines and says {lines[1]!r}")
    return [line.split() for line in lines[2:-1]]


def write_unsynced(disk: Disk, path: str, data: bytes) -> None:
    """Replace a small file without waiting for the disk. ``WrittenFile`` then makes it safe from a crash."""
    temporary = path + _TEMPORARY
    file = disk.open(temporary, create=True)
    if file.size:
        file.truncate(0)
    file.append(data)
    file.complete()
    disk.rename(temporary, path)


class WrittenFile:
    """A file that was written and closed, to be synced later. It is open only during the sync, however many such files
    are waiting for theirs."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def sync(self) -> None:
        """Make its content and its name durable, unless the file or its whole partition has been removed since."""
        try:
            self._disk.open(self._path).sync()
        except StorageError:
            if self._disk.exists(self._path):
                raise
