"""A member of a classic group: what it said about itself, its assignment, and whether it waits for an answer."""

from dataclasses import dataclass
from typing import Final

from cordwood.coordinator.outcome import Caller
from cordwood.group.timers import ClassicSession

MEMBER_BYTES: Final = 2000
PROTOCOL_BYTES: Final = 200


def member_bytes(client_id: str, instance_id: str | None, protocols: dict[str, bytes]) -> int:
    """Roughly how much memory a member with this metadata takes."""
    return MEMBER_BYTES + 4 * len(client_id) + 4 * len(instance_id or "") + protocols_bytes(protocols)


def protocols_bytes(protocols: dict[str, bytes]) -> int:
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols.items())


@dataclass(slots=True)
class Member:
    """``joining`` and ``syncing`` are its parked calls; see ``Roster`` for who may set the first."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes]
    """The protocols that it knows, in its order of preference, with its metadata for each."""
    assignment: bytes = b""
    is_new: bool = False
    """It waits for its first generation. Its call is not kept for ever: a client that is still there will ask again."""
    joining: Caller | None = None
    syncing: Caller | None = None
    session: ClassicSession | None = None
    """The key of its session's deadline, made when it is first needed."""
    heard_ms: int = -1
    """When a commit last set its session's deadline; -1 if something else has since. Commits come in bursts."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def waits(self) -> bool:
        """A member that waits for our answer need not say that it is alive."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    @property
    def weight_bytes(self) -> int:
        return member_bytes(self.client_id, self.instance_id, self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for the protocol that the group has chosen."""
        return self.protocols.get(protocol or "", b"")

    def says(self, protocols: dict[str, bytes]) -> bool:
        """Are these its protocols, in this order?"""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: set[str]) -> str:
        return next(name for name in self.protocols if name in candidates)
