"""The real disk: files below one directory.

A file's name is as durable as its content: the first ``sync`` of a file also brings its directory to the disk, and the
name of that directory. Not only if this process created it: one before it may have done so, and been killed. A
directory in which no name has changed since is not brought there again (``Names``).

Files close themselves when nothing refers to them any more, so that a segment which the log has let go of stays
readable for the answers that still carry a slice of it.

Opening a file costs several times what reading from it does, so the readers that were used last stay open, under their
names: what changes a name forgets its reader. Threads that compact or remove use a disk too, so the table of readers
has a lock, held for no system call.

A long file that is appended to in large pieces has room taken ahead of its end (``room``). It holds no more of it than
an eighth of its length, and gives it back when it is complete; after a crash it is there for what comes next.
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
_write_at: Final = os.pwrite  # compiled, a name of another module is looked up at every use
_sync_data: Final = getattr(os, "fdatasync", os.fsync)
_NO_ATIME: Final = getattr(os, "O_NOATIME", 0)  # Linux has it
_LARGE_BYTES: Final = 1 << 14  # smaller appends gain little by room
_ROOM_MIN: Final = 1 << 20
_ROOM_MAX: Final = 1 << 24
_STAT_BLOCK: Final = 512
_NEVER: Final = 1 << 63


class RealFile:
    """An open file. Reads and writes name their position, so the file has no cursor to share."""

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
        """So far there are blocks, about; no more are asked for up to there."""
        self._is_torn = False
        """Did a write fail, and is what it left behind the end still there?"""
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
        """Part of a failed write may have reached the file. What cannot be cut off now goes with the next append."""
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
        except OSError as error:  # not by ``_failures``, which would cost more than the read
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

    Whoever changes a name says so when it is changed, and before anybody can rely on it; a sync counts for the changes
    that it was told of when it began. So threads need no lock: at worst a directory is synced twice.
    """

    __slots__ = ("_changes", "_count", "_root", "_synced")

    def __init__(self, root: str) -> None:
        self._root = root
        self._count = count(1)
        self._changes: dict[str, int] = {}
        """By directory the number of the last change, in the order of all."""
        self._synced: dict[str, int] = {}

    def changed(self, path: str) -> None:
        """Something has this name from now on, or nothing has it."""
        self._changes[os.path.dirname(path)] = next(self._count)

    def sync(self, path: str) -> None:
        """Bring a name to the disk, and that of its directory."""
        directory = os.path.dirname(path)
        self._sync_directory(directory)
        if directory != self._root:
            self._sync_directory(os.path.dirname(directory))

    def _sync_directory(self, directory: str) -> None:
        change = self._changes.get(directory, 0)
        if self._synced.get(directory, -1) < change and _sync_names_in(directory):
            self._synced[directory] = change

    def forget(self, directory: str) -> None:
        """It is gone."""
        self._changes.pop(directory, None)
        self._synced.pop(directory, None)


class RealDisk:
    """The tree below *root*, which is created if it is not there."""

    __slots__ = ("_names", "_readers", "_readers_lock", "_readers_max", "root")

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(root)
        self._names = Names(self.root)
        self._readers: dict[str, RealFile] = {}
        """The one used last is the last."""
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
        """The name means another file from now on, or none; so do those below it."""
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
            self._names.forget(changed)  # if it is a directory, it is another one than before
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
    """A descriptor. When its file was last read is not written down: every slice that is sent would have to look."""
    try:
        return os.open(path, flags | _NO_ATIME, 0o644)
    except PermissionError:  # it is somebody else's, who may want to know
        return os.open(path, flags, 0o644)


def _sync_names_in(directory: str) -> bool:
    """Bring the names in a directory to the disk, if it still has that name, even without a descriptor to spare."""
    try:
        _sync_directory(directory)
    except FileNotFoundError:
        return False  # the whole directory has another name meanwhile, or is gone: its topic was deleted
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
