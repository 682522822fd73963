"""The real disk: files below one directory.

A file's name is as durable as its content: the first ``sync`` of a file also syncs its directory, and the name of that
directory. It does so even if this process did not create the file: an earlier process may have, and been killed. A
directory in which no name has changed since is not synced again (``Names``).

Files close themselves when nothing refers to them any more, so that a segment that the log has dropped stays readable
for the responses that still carry a slice of it.

Opening a file costs several times as much as reading from it, so the most recently used readers stay open, under their
names; whatever changes a name forgets its reader. Threads that compact or remove use a disk too, so the table of
readers has a lock, which is never held during a system call.

For a long file that is appended to in large pieces, room is reserved beyond its end (``room``). This is never more than
an eighth of its length, and is given back when the file is complete; after a crash it is there for further appends.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Final

from cordwood.errors import StorageError
from cordwood.ports import Buffer
from cordwood.run.descriptors import readers_max
from cordwood.run.room import take_room

_CLOSED: Final = -1
_TEMPORARY_SUFFIX: Final = ".tmp"
_write_at: Final = os.pwrite  # in compiled code, another module's name is looked up at every use
_sync_data: Final = getattr(os, "fdatasync", os.fsync)
_NO_ATIME: Final = getattr(os, "O_NOATIME", 0)  # Linux has it
_LARGE_BYTES: Final = 1 << 14  # smaller appends gain little from reserved room
_ROOM_MIN: Final = 1 << 20
_ROOM_MAX: Final = 1 << 24
_STAT_BLOCK: Final = 512
_NEVER: Final = 1 << 63


class RealFile:
    """An open file. Reads and writes name their position, so there is no shared cursor."""

    __slots__ = ("_descriptor", "_is_torn", "_name_is_safe", "_names", "_path", "_room_end", "size")

    def __init__(self, path: str, *, create: bool, names: "Names") -> None:
        self._descriptor = _CLOSED
        self._names = names
        self._path = path
        self._name_is_safe = False
        with _failures(path):
            self._descriptor = _open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0))
            status = os.fstat(self._descriptor)
        self.size = status.st_size
        self._room_end = status.st_blocks * _STAT_BLOCK
        """Up to about here, blocks are allocated; none need to be requested before that."""
        self._is_torn = False
        """Has a write failed, and is what it left beyond the end still there?"""
        if create:
            names.changed(path)

    def append(self, data: Buffer, /) -> None:
        size, length = self.size, len(data)
        if self._is_torn:
            self._cut_back(size)
        try:
            written = _write_at(self._descriptor, data, size)
            if written != length:
                self._append_rest(memoryview(data), written)
        except OSError as error:
            self._cut_back(size)
            raise StorageError(f"{self._path}: {error}") from error
        self.size = size = size + length
        if size > self._room_end and length >= _LARGE_BYTES:
            self._take_room()

    def _take_room(self) -> None:
        room = min(self.size // 8, _ROOM_MAX)
        if room >= _ROOM_MIN:
            if take_room(self._descriptor, self.size, room):
                self._room_end = self.size + room
            else:
                self._cut_back(self.size)
                self._room_end = _NEVER

    def _append_rest(self, data: memoryview, written: int) -> None:
        while written < len(data):
            written += _write_at(self._descriptor, data[written:], self.size + written)

    def _cut_back(self, size: int) -> None:
        """Cut off what a failed write may have left, or reserved room. If that fails, it is tried again later."""
        try:
            os.ftruncate(self._descriptor, size)
        except OSError:
            self._is_torn = True
        else:
            self._is_torn = False

    def read(self, position: int, length: int, /) -> bytes:
        try:
            data = os.pread(self._descriptor, length, position)
            return data if len(data) == length else self._read_rest(position, length, data)
        except OSError as error:  # without ``_failures``, which would cost more than the read
            raise StorageError(f"{self._path}: {error}") from error

    def _read_rest(self, position: int, length: int, data: bytes) -> bytes:
        while len(data) < length and position + len(data) < self.size:
            more = os.pread(self._descriptor, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def truncate(self, size: int, /) -> None:
        assert 0 <= size <= self.size, "a file is truncated to less than it is"
        with _failures(self._path):
            os.ftruncate(self._descriptor, size)
        self.size = self._room_end = size
        self._is_torn = False

    def complete(self) -> None:
        if self._is_torn or self.size < self._room_end < _NEVER:
            self._cut_back(self.size)
            self._room_end = self.size

    def sync(self) -> None:
        with _failures(self._path):
            _sync_data(self._descriptor)
            if not self._name_is_safe:
                self._names.sync(self._path)
                self._name_is_safe = True

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def fileno(self) -> int:
        """The descriptor, for the system calls that send a slice of the file."""
        if self._descriptor == _CLOSED:
            raise StorageError(f"{self._path}: the file is closed")
        return self._descriptor

    def __del__(self) -> None:
        self.close()


class Names:
    """Which directories have names in them that may not be on the disk yet.

    Every change of a name is reported after it was made, and before anybody can rely on it; a sync covers the changes
    reported before it began. So threads need no lock: at worst a directory is synced twice.
    """

    __slots__ = ("_changes", "_count", "_root", "_synced")

    def __init__(self, root: str) -> None:
        self._root = root
        self._count = count(1)
        self._changes: dict[str, int] = {}
        """For each directory the number of its last change; all changes are numbered in order."""
        self._synced: dict[str, int] = {}

    def changed(self, path: str) -> None:
        """From now on this name means something else, or nothing."""
        self._changes[os.path.dirname(path)] = next(self._count)

    def sync(self, path: str) -> None:
        """Sync a name to the disk, and the name of its directory."""
        directory = os.path.dirname(path)
        self._sync_directory(directory)
        if directory != self._root:
            self._sync_directory(os.path.dirname(directory))

    def _sync_directory(self, directory: str) -> None:
        change = self._changes.get(directory, 0)
        if self._synced.get(directory, -1) < change and _sync_names_in(directory):
            self._synced[directory] = change

    def forget(self, directory: str) -> None:
        """This directory is gone."""
        self._changes.pop(directory, None)
        self._synced.pop(directory, None)


class RealDisk:
    """The tree below *root*, which is created if it does not exist."""

    __slots__ = ("_names", "_readers", "_readers_lock", "_readers_max", "root")

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(root)
        self._names = Names(self.root)
        self._readers: dict[str, RealFile] = {}
        """In the order of their last use."""
        self._readers_lock = Lock()
        self._readers_max = readers_max()
        with _failures(self.root):
            os.makedirs(self.root, exist_ok=True)

    def open(self, path: str, /, *, create: bool = False) -> RealFile:
        return RealFile(self._full(path), create=create, names=self._names)

    def reader(self, path: str, /) -> RealFile:
        with self._readers_lock:
            file = self._readers.pop(path, None)
            if file is not None:
                self._readers[path] = file
                return file
        file = self.open(path)
        with self._readers_lock:
            self._readers[path] = file
            if len(self._readers) > self._readers_max:
                del self._readers[next(iter(self._readers))]
        return file

    def _forget_readers(self, path: str) -> None:
        """From now on the name, and all names below it, mean other files or none."""
        below = f"{path}/"
        with self._readers_lock:
            for name in [name for name in self._readers if name == path or name.startswith(below)]:
                del self._readers[name]

    def read(self, path: str, /) -> bytes:
        full = self._full(path)
        with _failures(full), open(full, "rb") as file:
            return file.read()

    def replace(self, path: str, data: bytes, /) -> None:
        full = self._full(path)
        temporary = full + _TEMPORARY_SUFFIX
        with _failures(full):
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, full)
            self._forget_readers(path)
            self._names.changed(full)
            _sync_directory(os.path.dirname(full))

    def exists(self, path: str, /) -> bool:
        return os.path.exists(self._full(path))

    def list(self, path: str, /) -> list[str]:
        full = self._full(path)
        with _failures(full):
            return sorted(os.listdir(full))

    def make_directory(self, path: str, /) -> None:
        full = self._full(path)
        with _failures(full):
            os.makedirs(full, exist_ok=True)
        self._names.changed(full)

    def rename(self, old: str, new: str, /) -> None:
        full_old, full_new = self._full(old), self._full(new)
        with _failures(full_old):
            os.replace(full_old, full_new)
        for changed in (full_old, full_new):
            self._names.changed(changed)
            self._names.forget(changed)  # a directory of this name is no longer the same one
        self._forget_readers(old)
        self._forget_readers(new)

    def remove(self, path: str, /) -> None:
        full = self._full(path)
        with _failures(full):
            try:
                os.remove(full)
            except FileNotFoundError:
                return
            finally:
                self._forget_readers(path)

    def remove_tree(self, path: str, /) -> None:
        full = self._full(path)
        with _failures(full):
            try:
                shutil.rmtree(full)
            except FileNotFoundError:
                return
            finally:
                self._forget_readers(path)
                self._names.forget(full)
            _sync_directory(os.path.dirname(full))

    def usage(self) -> tuple[int, int]:
        with _failures(self.root):
            volume = os.statvfs(self.root)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def _full(self, path: str) -> str:
        if not path:
            return self.root
        for part in path.split("/"):
            if part in ("", ".", "..") or "\0" in part:
                raise StorageError(f"{path!r} is not a path below {self.root}")
        return f"{self.root}/{path}"


def _open(path: str, flags: int) -> int:
    """A descriptor that does not update the file's access time, which would be checked for every slice that is sent."""
    try:
        return os.open(path, flags | _NO_ATIME, 0o644)
    except PermissionError:  # the file belongs to another user: only its owner may leave the access time alone
        return os.open(path, flags, 0o644)


def _sync_names_in(directory: str) -> bool:
    """Sync the names in a directory, if it still has that name, even if no descriptor is left."""
    try:
        _sync_directory(directory)
    except FileNotFoundError:
        return False  # the directory has been renamed or removed in the meantime: its topic was deleted
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        os.sync()
    return True


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _failures(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error
