"""One client's connection: calls come in, replies leave in the order of the calls.

A call may be answered at once or later (a fetch that waits for data, a topic being created); what comes behind it on
the same connection is served in the meantime, but its reply waits for its turn, as the protocol demands.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cordwood.ids import ConnectionId, NodeId
from cordwood.ports import Chunk, FileSlice


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, and which address of ours it dialled."""

    host: str
    port: int
    local_host: str
    local_port: int
    listener: str = "PLAINTEXT"


class Connection:
    """The state of one connection that outlives a request."""

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
        """The broker that follows partitions over this connection, if it is one."""
        self.waiting: deque[Call] = deque()
        self.kept_bytes = 0
        """Memory of the replies that are finished and wait for their turn."""
        self.room_bytes = 0
        """Of the room for all clients' requests: what it takes for those that are not whole, or wait."""
        self.waits_for_room = False
        """Has it begun a request that there is no room for?"""
        self.takes_turns = False
        """Is a request of it worked out in several turns of the loop? Meanwhile no other one is begun."""
        self.unread = False
        """Does its socket not take what there is to send?"""

    @property
    def waits_for_us(self) -> bool:
        """Is it not the client's fault that nothing happens?

        Who waits for an answer may wait for weeks, as long as it takes no memory meanwhile: for another request, for
        answers behind the one that it waits for, or for answers that it does not read.
        """
        if self.waits_for_room:
            return True
        return bool(self.waiting) and not (self.room_bytes or self.kept_bytes or self.unread)

    def __str__(self) -> str:
        """For the log: its number, from where, and what the client says it is."""
        return f"{self.id} from {self.peer.host}" + (f" ({self.software})" if self.software else "")

    def check(self) -> None:
        assert not self.waiting or self.waiting[0].frame is None, "a finished reply is kept back"
        assert self.kept_bytes == sum(memory_of(call.frame) for call in self.waiting if call.frame is not None)


EFFORT_MAX: Final = 32 << 20
"""A few kilobytes of a request can stand for gigabytes of records to look at. After so much others have their turn."""


class Call:
    """One request on its way to a reply: what it asked, and the place of its reply in the order."""

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
        """How much was looked at inside of batches for it, see ``EFFORT_MAX``."""
        self.abandon: Callable[[], None] | None = None
        """What to undo if the client goes away first."""


def memory_of(frame: Sequence[Chunk]) -> int:
    """Bytes that a reply holds in memory: slices of files hold none."""
    return sum(len(chunk) for chunk in frame if not isinstance(chunk, FileSlice))
