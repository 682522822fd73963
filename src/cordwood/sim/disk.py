"""A disk in memory whose power can fail.

It guarantees no more than a journaling file system does. Appended bytes are safe once their file has been synced;
before that, a crash keeps a prefix of them and may leave garbage after it. Changes of names (created, renamed, removed)
and truncations reach the disk in order, all of them with the next ``sync``, ``replace`` or ``remove_tree``; before
that, a crash keeps the first few and undoes the others. The same seed loses the same bytes.

``power_fails_after`` and ``fails_after`` count down over everything that changes the disk: that is how a test puts a
crash, or one failing operation, at every point.
"""

from collections.abc import Callable
from random import Random

from cordwood.errors import StorageError
from cordwood.ports import Buffer

_CAPACITY = 1 << 40
_GARBAGE_MAX = 16


class PowerLost(BaseException):
    """The machine is gone. Not an ``Exception``, because nothing under test may handle it."""


class _Node:
    """The content of a file, and what must be known to tell which part of it is on the disk.

    The first ``safe`` bytes of ``data`` are on the disk, followed there by the bytes in ``cuts``: what was cut off by
    truncations that have not reached the disk, the last one's first.
    """

    __slots__ = ("cuts", "data", "safe")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.safe = len(data)
        self.cuts: list[bytearray] = []

    def truncate(self, size: int) -> "Change | None":
        """Cut the file; returns the change that makes the cut final, if there is anything to make final."""
        cut = self.data[size : self.safe]
        del self.data[size:]
        if not cut:
            return None
        self.safe = size
        self.cuts.insert(0, cut)
        return lambda files, directories: cut.clear()

    def sync(self) -> None:
        self.safe = len(self.data)
        self.cuts.clear()

    def lose_power(self, random: Random) -> None:
        unsafe = len(self.data) - self.safe
        undone = b"".join(self.cuts)
        if undone:
            self.data[self.safe :] = undone
        elif unsafe:
            kept = random.choice((0, unsafe, random.randint(0, unsafe)))
            del self.data[self.safe + kept :]
            if kept < unsafe and random.random() < 0.5:
                garbage = min(unsafe - kept, random.randint(1, _GARBAGE_MAX))
                self.data += bytes(garbage) if random.random() < 0.5 else random.randbytes(garbage)
        self.sync()


Change = Callable[[dict[str, _Node], set[str]], None]


class SimFile:
    """An open file of a ``SimDisk``."""

    __slots__ = ("_disk", "_life", "_node")

    def __init__(self, disk: "SimDisk", node: _Node) -> None:
        self._disk = disk
        self._node = node
        self._life = disk.life

    @property
    def size(self) -> int:
        return len(self._node.data)

    def append(self, data: Buffer, /) -> None:
        self._changes()
        self._node.data += data

    def read(self, position: int, length: int, /) -> bytes:
        self._check_open()
        return bytes(self._node.data[position : position + length])

    def truncate(self, size: int, /) -> None:
        assert 0 <= size <= self.size, "a file is truncated to less than it is"
        self._changes()
        change = self._node.truncate(size)
        if change is not None:
            self._disk.journal(change)

    def complete(self) -> None:
        """No space is reserved here."""

    def sync(self) -> None:
        self._changes()
        self._node.sync()
        self._disk.commit_names()

    def close(self) -> None:
        self._life = -1

    def _changes(self) -> None:
        self._check_open()
        self._disk.changes()

    def _check_open(self) -> None:
        if self._life != self._disk.life:
            raise StorageError("the file is closed")


class SimDisk:
    """A tree of files that forgets, after ``crash``, what was not synced."""

    def __init__(self, random: Random) -> None:
        self.life = 0
        self.power_fails_after: int | None = None
        self.fails_after: int | None = None
        self._random = random
        self._files: dict[str, _Node] = {}
        self._directories = {""}
        self._safe_files: dict[str, _Node] = {}
        self._safe_directories = {""}
        self._journal: list[Change] = []

    def crash(self) -> None:
        """The power fails and comes back: every open file is gone, and so is much of what was not synced."""
        self.life += 1
        self.power_fails_after = self.fails_after = None
        for change in self._journal[: self._random.randint(0, len(self._journal))]:
            change(self._safe_files, self._safe_directories)
        self._journal.clear()
        self._files = dict(self._safe_files)
        self._directories = set(self._safe_directories)
        for path in sorted(self._files):
            self._files[path].lose_power(self._random)

    def kill(self) -> None:
        """The process ends, not the machine: every open file is gone, but all that was written is still there."""
        self.life += 1
        self.power_fails_after = self.fails_after = None

    def changes(self) -> None:
        """Called before anything that changes the disk."""
        if self.power_fails_after is not None:
            if self.power_fails_after <= 0:
                raise PowerLost
            self.power_fails_after -= 1
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self.fails_after = None
                raise StorageError("the disk fails, as it was told to")

    def commit_names(self) -> None:
        for change in self._journal:
            change(self._safe_files, self._safe_directories)
        self._journal.clear()

    def journal(self, change: Change) -> None:
        """Note a change that reaches the disk in its turn."""
        self._journal.append(change)

    def open(self, path: str, /, *, create: bool = False) -> SimFile:
        self._check_path(path)
        if path not in self._files:
            if not create:
                raise StorageError(f"{path}: there is no such file")
            self._check_parent(path)
            self.changes()
            self._add(path, _Node())
        return SimFile(self, self._files[path])

    def reader(self, path: str, /) -> SimFile:
        return self.open(path)

    def read(self, path: str, /) -> bytes:
        return bytes(self._file(path).data)

    def replace(self, path: str, data: bytes, /) -> None:
        self._check_path(path)
        self._check_parent(path)
        self.changes()
        self._add(path, _Node(data))
        self.commit_names()

    def exists(self, path: str, /) -> bool:
        self._check_path(path)
        return path in self._files or path in self._directories

    def list(self, path: str, /) -> list[str]:
        self._check_path(path)
        if path not in self._directories:
            raise StorageError(f"{path}: there is no such directory")
        return sorted(_name(p) for p in (*self._files, *self._directories) if p and _parent(p) == path)

    def make_directory(self, path: str, /) -> None:
        self._check_path(path)
        parts = path.split("/")
        for depth in range(len(parts)):
            self._make_directory("/".join(parts[: depth + 1]))

    def _make_directory(self, path: str) -> None:
        if path in self._files:
            raise StorageError(f"{path}: a file is in the way")
        if path not in self._directories:
            self.changes()
            self._change(lambda files, directories: directories.add(path))

    def rename(self, old: str, new: str, /) -> None:
        self._check_path(old)
        self._check_path(new)
        self._check_parent(new)
        if not self.exists(old):
            raise StorageError(f"{old}: there is no such file")
        self.changes()
        self._change(lambda files, directories: _rename(files, directories, old, new))

    def remove(self, path: str, /) -> None:
        self._check_path(path)
        if path in self._directories:
            raise StorageError(f"{path}: is a directory")
        if path in self._files:
            self.changes()
            self._change(lambda files, directories: _forget(files, path))

    def remove_tree(self, path: str, /) -> None:
        self._check_path(path)
        below = [p for p in sorted(self._files) if p.startswith(path + "/")]
        for name in below:
            self.remove(name)
        if path in self._directories:
            self.changes()
            self._change(lambda files, directories: _forget_directories(directories, path))
            self.commit_names()

    def usage(self) -> tuple[int, int]:
        return _CAPACITY, _CAPACITY - sum(len(node.data) for node in self._files.values())

    def _add(self, path: str, node: _Node) -> None:
        self._change(lambda files, directories: files.update({path: node}))

    def _change(self, change: Change) -> None:
        change(self._files, self._directories)
        self._journal.append(change)

    def _file(self, path: str) -> _Node:
        self._check_path(path)
        node = self._files.get(path)
        if node is None:
            raise StorageError(f"{path}: there is no such file")
        return node

    def _check_parent(self, path: str) -> None:
        if path in self._directories:
            raise StorageError(f"{path}: is a directory")
        if _parent(path) not in self._directories:
            raise StorageError(f"{path}: there is no such directory")

    def _check_path(self, path: str) -> None:
        if path and any(part in ("", ".", "..") or "\0" in part for part in path.split("/")):
            raise StorageError(f"{path!r} is not a path below the root")


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _rename(files: dict[str, _Node], directories: set[str], old: str, new: str) -> None:
    if old in files:
        files[new] = files.pop(old)
        return
    for path in [p for p in files if p.startswith(old + "/")]:
        files[new + path[len(old) :]] = files.pop(path)
    for path in [p for p in directories if p == old or p.startswith(old + "/")]:
        directories.remove(path)
        directories.add(new + path[len(old) :])


def _forget(files: dict[str, _Node], path: str) -> None:
    files.pop(path, None)


def _forget_directories(directories: set[str], path: str) -> None:
    for name in [d for d in directories if d == path or d.startswith(path + "/")]:
        directories.remove(name)
