"""What the core asks its driver to do. Each effect is an order; its outcome comes back as an event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cordwood.ids import ConnectionId, LinkId
from cordwood.ports import Chunk, StoreOp, Syncable


class Send:
    """Send these bytes on a connection, after everything that was sent there before.

    Not a dataclass, because every request makes one, and a dataclass's ``__init__`` is never compiled.
    """

    __slots__ = ("chunks", "connection")
    __match_args__: ClassVar = ("connection", "chunks")

    def __init__(self, connection: ConnectionId, chunks: list[Chunk]) -> None:
        self.connection = connection
        self.chunks = chunks


@dataclass(frozen=True, slots=True)
class Close:
    """End a connection, and say why in the log."""

    connection: ConnectionId
    reason: str


@dataclass(frozen=True, slots=True)
class WriteMetadata:
    """Do a ``multi`` on the metadata store; answer with ``metadata_written`` or ``metadata_refused`` and this token."""

    token: int
    operations: Sequence[StoreOp]


@dataclass(frozen=True, slots=True)
class Sync:
    """Sync files to the disk, off the main thread; answer with ``synced`` and this token."""

    token: int
    files: Sequence[Syncable]


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove files or directories that are no longer referred to, off the main thread; answer with ``removed``."""

    token: int
    files: Sequence[str] = ()
    directories: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Compact:
    """Run this work to its end, off the main thread and at low priority; answer with ``compacted`` and this token.

    Each step of the work yields the number of bytes it has read and written; after each one, others get their turn.
    """

    token: int
    work: Iterator[int]


@dataclass(frozen=True, slots=True)
class Linger:
    """Deliver everything that has already arrived first, then answer with ``lingered``."""


@dataclass(frozen=True, slots=True)
class PurgeChanges:
    """Let the metadata store forget those changes that every broker has heard of by now. Nothing comes back."""


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to another broker; answer with ``link_up`` or ``link_lost``."""

    link: LinkId
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send these bytes on a link that is up. The answers arrive as ``link_received``, one frame at a time."""

    link: LinkId
    chunks: list[Chunk]


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close a link, even if it is not up yet. No further events come from it."""

    link: LinkId


Effect = Send | Close | WriteMetadata | Sync | Remove | Compact | Linger | PurgeChanges | Dial | Transmit | HangUp
