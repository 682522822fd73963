"""What the core asks its driver to do. Each is an order; what comes of it returns as an event."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cordwood.ids import ConnectionId, LinkId
from cordwood.ports import Chunk, StoreOp, Syncable


class Send:
    """Put these bytes on a connection, after all that was sent there before.

    Not a dataclass, because every request makes one: the ``__init__`` of those is never compiled.
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
    """Bring files to the disk, off the main thread; answer with ``synced`` and this token."""

    token: int
    files: Sequence[Syncable]


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove files or directories that nothing refers to any more, off the main thread; answer with ``removed``."""

    token: int
    files: Sequence[str] = ()
    directories: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Compact:
    """Do this work to its end, off the main thread and without haste; answer with ``compacted`` and this token.

    Each step of the work tells how many bytes it has read and written. After each one others have their turn.
    """

    token: int
    work: Iterator[int]


@dataclass(frozen=True, slots=True)
class Linger:
    """Let all that has arrived by now come in first; answer with ``lingered``."""


@dataclass(frozen=True, slots=True)
class PurgeChanges:
    """Let the metadata store forget of its changes those that everybody has heard of by now. Nothing comes back."""


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to another broker; answer with ``link_up`` or ``link_lost``."""

    link: LinkId
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Transmit:
    """Put these bytes on a link that is up. What comes back is ``link_received``, a frame at a time."""

    link: LinkId
    chunks: list[Chunk]


@dataclass(frozen=True, slots=True)
class HangUp:
    """End a link, whether it is up or not yet. Nothing more is heard of it."""

    link: LinkId


Effect = Send | Close | WriteMetadata | Sync | Remove | Compact | Linger | PurgeChanges | Dial | Transmit | HangUp
