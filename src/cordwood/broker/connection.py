"""One client's connection: calls come in, replies leave in the order of the calls.

A call may be answered at once or later (a fetch that waits for data, a topic that is being created). Later calls on the
same connection are served in the meantime, but their replies wait for their turn, as the protocol demands.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cordwood.ids import ConnectionId, NodeId
from cordwood.ports import Chunk, FileSlice


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, and which of our addresses it dialled."""

    host: str
    port: int
    local_host: str
    local_port: int
    listener: str = "PLAINTEXT"


class Connection:
    """What is kept of a connection from one request to the next."""

    __slots__ = (
        "active_ms",
        "closed",
        "id",
        "kept_bytes",
        "peer",
        "replica",
        "room_bytes",
        "software",
        "takes_turns",
        "unread",
        "waiting",
        "waits_for_room",
    )

    def __init__(self, connection: ConnectionId, peer: Peer, now_ms: int) -> None:
        self.id = connection
        self.peer = peer
        self.active_ms = now_ms
        self.closed = False
        self.software = ""
        self.replica: NodeId | None = None
        """The broker that follows partitions over this connection, if there is one."""
        self.waiting: deque[Call] = deque()
        self.kept_bytes = 0
        """Memory held by replies that are finished and wait for their turn."""
        self.room_bytes = 0
        """How much of the memory that all clients' requests share is held by those that are incomplete, or waiting."""
        self.waits_for_room = False
        """Has it begun a request that there is no room for?"""
        self.takes_turns = False
        """Is one of its requests being worked on over several turns of the loop? Meanwhile no other is begun."""
        self.unread = False
        """Is its socket full, because the client does not read?"""

    @property
    def waits_for_us(self) -> bool:
        """Is it not the client's fault that nothing happens?

        A client may wait for an answer for weeks, as long as nothing takes up memory meanwhile: neither another
        request, nor answers behind the awaited one, nor answers that it does not read.
        """
        if self.waits_for_room:
            return True
        return bool(self.waiting) and not (self.room_bytes or self.kept_bytes or self.unread)

    def __str__(self) -> str:
        """For the log: its number, its address, and what software the client says it is."""
        return f"{self.id} from {self.peer.host}" + (f" ({self.software})" if self.software else "")

    def check(self) -> None:
        assert not self.waiting or self.waiting[0].frame is None, "a finished reply is kept back"
        assert self.kept_bytes == sum(memory_of(call.frame) for call in self.waiting if call.frame is not None)


EFFORT_MAX: Final = 32 << 20
"""A request of a few kilobytes can name gigabytes of records to look at. After this much, others have their turn."""


class Call:
    """One request on its way to a reply: what was asked, and the reply's place in the order."""

    __slots__ = ("abandon", "api_key", "api_version", "client_id", "connection", "correlation_id", "effort", "frame")

    def __init__(
        self, connection: Connection, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame: list[Chunk] | None = None
        """The finished reply, while it waits for its turn."""
        self.effort = 0
        """How many bytes inside batches were looked at for it; see ``EFFORT_MAX``."""
        self.abandon: Callable[[], None] | None = None
        """What to undo if the client disconnects first."""


def memory_of(frame: Sequence[Chunk]) -> int:
    """The bytes of memory that a reply holds: slices of files hold none."""
    return sum(len(chunk) for chunk in frame if not isinstance(chunk, FileSlice))
