"""What the core is given: time, files, a metadata store, randomness, a logger and its log levels.

The core never reaches for any of these itself. ``run/`` hands it the real ones, ``sim/`` seeded ones, and both kinds
pass the same conformance tests.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class Instant:
    """A moment, on both clocks: the wall clock for record timestamps and retention, the monotonic one for durations.

    A plain class, like everything that is made for each request: compiled, its fields are numbers in a struct. The
    fields of a named tuple would be objects, and each access to one a lookup.
    """

    __slots__ = ("mono_ms", "wall_ms")

    def __init__(self, wall_ms: int, mono_ms: int) -> None:
        self.wall_ms = wall_ms
        self.mono_ms = mono_ms


class Syncable(Protocol):
    """Something that can be synced to the disk."""

    def sync(self) -> None: ...


class File(Protocol):
    """A file that grows at its end and can be read anywhere. A failure raises ``StorageError``."""

    @property
    def size(self) -> int: ...

    def append(self, data: Buffer, /) -> None:
        """Write all of *data* at the end; a failure leaves the file as it was."""

    def read(self, position: int, length: int, /) -> bytes:
        """The bytes at *position*: fewer than *length* only at the end of the file."""

    def truncate(self, size: int, /) -> None: ...

    def complete(self) -> None:
        """Nothing more will be appended: give back the space that was reserved for it. Never fails."""

    def sync(self) -> None:
        """Return once everything appended is on the disk. The only method that another thread may call."""

    def close(self) -> None: ...


class FileSlice:
    """Part of a file, which a response sends without anybody reading it.

    Written by hand, not a dataclass: the methods that a dataclass generates are interpreted even where this module is
    compiled.
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
    """A tree of files. Paths are relative, joined by ``/``, and stay inside it. Failures raise ``StorageError``."""

    def open(self, path: str, /, *, create: bool = False) -> File: ...

    def reader(self, path: str, /) -> File:
        """A file for reading only, possibly shared with other readers. The disk keeps the most recently read files open
        for as long as they have this name."""

    def read(self, path: str, /) -> bytes:
        """The whole content of a small file."""

    def replace(self, path: str, data: bytes, /) -> None:
        """Make *data* the whole content of *path*; after a crash, the file has either the old content or the new."""

    def exists(self, path: str, /) -> bool: ...

    def list(self, path: str, /) -> list[str]:
        """The names in a directory, sorted."""

    def make_directory(self, path: str, /) -> None:
        """Create a directory with its parents; it may exist already."""

    def rename(self, old: str, new: str, /) -> None: ...

    def remove(self, path: str, /) -> None:
        """Remove a file; it may be gone already."""

    def remove_tree(self, path: str, /) -> None:
        """Remove a directory and everything in it; it may be gone already. It does not come back after a crash."""

    def usage(self) -> tuple[int, int]:
        """The volume's size and free space, in bytes."""


@dataclass(frozen=True, slots=True)
class Create:
    """A store operation: a new node, and its parents. An *ephemeral* node goes when its creator's session ends."""

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
    """A store operation: change nothing, but fail the whole ``multi`` unless the node has *version*."""

    path: str
    version: int


StoreOp = Create | Set | Delete | Check


class Node(NamedTuple):
    """A node of the metadata store in its current state."""

    path: str
    data: bytes
    version: int


class MetadataChange(NamedTuple):
    """A change of the store's nodes: first those in *deleted* go, with everything below them; then those in *nodes* are
    created or changed as given here."""

    nodes: Sequence[Node] = ()
    deleted: Sequence[str] = ()


class SessionState(Enum):
    """The state of this broker's session with a metadata store that others share."""

    ALIVE = "alive"
    SUSPENDED = "suspended"
    """Not connected at the moment, but the store may still hold the session."""
    LOST = "lost"
    """The store has ended the session, or must have by now: its ephemeral nodes are gone."""


class LinkLoss(Enum):
    """Why there is no connection to another broker."""

    REFUSED = "refused"
    """Nobody listens there: the process is gone."""
    CLOSED = "closed"
    UNREACHABLE = "unreachable"


class MetadataStore(Protocol):
    """A small tree of versioned nodes, like ZooKeeper's: a ``multi`` is atomic and durable."""

    def load(self) -> Iterable[Node]:
        """Every node, parents before children."""

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        """Do all of the operations or none; return what has changed, with the new versions.

        A store that reports every change as it happens, whoever made it, reports this one only in that way.

        Raises:
            StoreConflict: nothing was done: a node is missing, exists already, or has another version.
            StoreAway: nothing was done, but a later attempt may succeed.
            PerhapsDone: a ``StoreAway`` after which it is unknown whether the operations were done.
            StorageError: it cannot be done.
        """

    def purge(self) -> None:
        """Of the changes that the store keeps for other brokers, forget those that all of them have heard of by now."""

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
    """The log levels of the broker's loggers, under Kafka's names; the topmost logger is ``root``."""

    def all(self) -> dict[str, str]:
        """Each logger's level, its own or else its parent's, by the logger's name."""

    def set(self, name: str, level: str | None, /) -> None:
        """Change the level of an existing logger; None: back to its parent's."""
