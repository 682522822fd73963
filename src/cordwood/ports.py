"""What the core is given: time, files, a metadata store, randomness, a place for log lines and how many go there.

The core never reaches for any of these itself. ``run/`` hands it the real ones, ``sim/`` hands it seeded ones, and both
kinds pass the same conformance tests.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class Instant:
    """A moment, on both clocks: the wall's for record timestamps and retention, the monotonic one for durations.

    Plain, as all that every request makes: compiled, its fields are then numbers in a struct. A named tuple's would be
    objects, and each look at one a search.
    """

    __slots__ = ("mono_ms", "wall_ms")

    def __init__(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms = wall_ms
        self.mono_ms = mono_ms


class Syncable(Protocol):
    """What can be brought to the disk itself."""

    def sync(self) -> None: ...


class File(Protocol):
    """A file that grows at its end and is read anywhere. A failure raises ``StorageError``."""

    @property
    def size(self) -> int: ...

    def append(self, data: Buffer, /) -> None:
        """Write all of *data* at the end; a failure leaves the file as it was."""

    def read(self, position: int, length: int, /) -> bytes:
        """The bytes at *position*: fewer than *length* only at the end of the file."""

    def truncate(self, size: int, /) -> None: ...

    def complete(self) -> None:
        """Nothing more will be appended: what was held ready for it is given back. Never fails."""

    def sync(self) -> None:
        """Return when what was appended is on the disk itself. The one method that another thread may call."""

    def close(self) -> None: ...


class FileSlice:
    """Part of a file that a response sends and nobody reads.

    By hand, not a dataclass: what that writes is interpreted even where this module is compiled.
    """

    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file: Final = file
        self.position: Final = position
        self.length: Final = length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        return self.file.read(self.position, self.length)


Chunk = bytes | bytearray | memoryview | FileSlice


class Disk(Protocol):
    """A tree of files. Paths are relative, joined by ``/``, and do not leave it. Failures raise ``StorageError``."""

    def open(self, path: str, /, *, create: bool = False) -> File: ...

    def reader(self, path: str, /) -> File:
        """A file to read from alone, perhaps one that others read from too. The disk keeps those open that were read
        last, as long as they have this name."""

    def read(self, path: str, /) -> bytes:
        """A small file, whole."""

    def replace(self, path: str, data: bytes, /) -> None:
        """Make *data* the whole content of *path*: after a crash it is the old content or the new one."""

    def exists(self, path: str, /) -> bool: ...

    def list(self, path: str, /) -> list[str]:
        """The names in a directory, sorted."""

    def make_directory(self, path: str, /) -> None:
        """With its parents; it may be there already."""

    def rename(self, old: str, new: str, /) -> None: ...

    def remove(self, path: str, /) -> None:
        """A file; it may be gone already."""

    def remove_tree(self, path: str, /) -> None:
        """A directory with all below it; it may be gone already. It does not come back after a crash."""

    def usage(self) -> tuple[int, int]:
        """Bytes of the volume: (all of them, those still free)."""


@dataclass(frozen=True, slots=True)
class Create:
    """A store operation: a new node, and its parents. An *ephemeral* one goes with its maker's session."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """A store operation: new data for a node, if it still has *version* (None: whatever it has)."""

    path: str
    data: bytes
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """A store operation: the node and everything below it goes, if it still has *version* (None: whatever it has)."""

    path: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A store operation: change nothing, but let the whole ``multi`` fail unless the node has *version*."""

    path: str
    version: int


StoreOp = Create | Set | Delete | Check


class Node(NamedTuple):
    """A node of the metadata store as it stands."""

    path: str
    data: bytes
    version: int


class MetadataChange(NamedTuple):
    """What became of the store's nodes: first some went, with all below them, then these are as they now are."""

    nodes: Sequence[Node] = ()
    deleted: Sequence[str] = ()


class SessionState(Enum):
    """How this broker stands with a metadata store that others share."""

    ALIVE = "alive"
    SUSPENDED = "suspended"
    """Not connected now, but the store may still hold the session."""
    LOST = "lost"
    """The store has ended the session, or must have by now: what was ephemeral is gone."""


class LinkLoss(Enum):
    """Why a connection to another broker is not there."""

    REFUSED = "refused"
    """Nobody listens there: the process is gone."""
    CLOSED = "closed"
    UNREACHABLE = "unreachable"


class MetadataStore(Protocol):
    """A small tree of versioned nodes, shaped like ZooKeeper's: all or none of a ``multi`` happens, durably."""

    def load(self) -> Iterable[Node]:
        """Every node, parents before children."""

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        """Do all of it or nothing; what has changed comes back, with the new versions.

        A store that tells of all changes as they happen, others' and one's own, tells of this one that way alone.

        Raises:
            StoreConflict: nothing was done: a node is missing, exists already, or has another version.
            StoreAway: nothing was done, and it may be in a moment; but
            PerhapsDone: it could not be found out whether it was done.
            StorageError: it cannot be done.
        """

    def purge(self) -> None:
        """Forget of the changes that it tells others those that everybody has heard of by now."""

    def close(self) -> None: ...


class Entropy(Protocol):
    """Where random numbers come from. A ``random.Random`` is one."""

    def getrandbits(self, k: int, /) -> int: ...


class Logger(Protocol):
    """Where log lines go. A ``logging.Logger`` is one."""

    def debug(self, msg: str, /, *args: object) -> None: ...
    def info(self, msg: str, /, *args: object) -> None: ...
    def warning(self, msg: str, /, *args: object) -> None: ...
    def error(self, msg: str, /, *args: object) -> None: ...


class LogLevels(Protocol):
    """How much the broker's loggers say, with Kafka's names of levels; the one above all is ``root``."""

    def all(self) -> dict[str, str]:
        """By the names of the loggers: their own levels, or those of their parents."""

    def set(self, name: str, level: str | None, /) -> None:
        """Give a logger that there is another level; None: its parent's."""
