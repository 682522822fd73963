"""The part of an answer that is the same for all members of a generation: it is encoded once, and completed for each.

A group of hundreds answers hundreds of calls when a generation begins, and again when it is assigned. A member's own
part (its id, its assignment) is the last field that is not empty, so an answer consists of the common beginning, the
member's part, and the common end.
"""

from collections.abc import Iterable
from typing import Final

from cordwood.wire import encode
from cordwood.wire.frame import Encoded
from cordwood.wire.messages import JoinGroupResponse, SyncGroupResponse
from cordwood.wire.runtime import uvarint

from .member import Member

JOIN_COMPACT_FROM: Final = 6
JOIN_INSTANCES_FROM: Final = 5
SYNC_COMPACT_FROM: Final = 4
SHORT_BYTES: Final = 2
LONG_BYTES: Final = 4
NO_STRING: Final = b"\xff\xff"


class Answers:
    """Answers to JoinGroup and SyncGroup, in all versions, as long as generation, leader and protocol stay the same."""

    __slots__ = ("_join_heads", "_joined", "_sync_heads", "_synced")

    def __init__(self, *, generation: int, leader: str, protocol_type: str, protocol: str | None) -> None:
        self._joined = JoinGroupResponse(
            generation_id=generation, protocol_type=protocol_type, protocol_name=protocol, leader=leader
        )
        self._synced = SyncGroupResponse(protocol_type=protocol_type, protocol_name=protocol)
        self._join_heads: dict[int, bytes] = {}
        self._sync_heads: dict[int, bytes] = {}

    def joined(self, version: int, member_id: str) -> Encoded:
        """The answer to a member that does not lead."""
        own = member_id.encode()
        is_compact = version >= JOIN_COMPACT_FROM
        length, end = (uvarint(len(own) + 1), b"\x01\0") if is_compact else (len(own).to_bytes(SHORT_BYTES), bytes(4))
        return Encoded(JoinGroupResponse, version, b"".join((self._join_head(version), length, own, end)))

    def leads(self, version: int, member_id: str, members: Iterable[Member], protocol: str | None) -> Encoded:
        """The answer to the leader, which is told what all members say about the protocol."""
        own = member_id.encode()
        is_compact = version >= JOIN_COMPACT_FROM
        if is_compact:
            told = [_compact_member(member, protocol) for member in members]
            parts = [self._join_head(version), uvarint(len(own) + 1), own, uvarint(len(told) + 1), *told, b"\0"]
        else:
            with_instances = version >= JOIN_INSTANCES_FROM
            told = [_plain_member(member, protocol, with_instances) for member in members]
            length, count = len(own).to_bytes(SHORT_BYTES), len(told).to_bytes(LONG_BYTES)
            parts = [self._join_head(version), length, own, count, *told]
        return Encoded(JoinGroupResponse, version, b"".join(parts))

    def _join_head(self, version: int) -> bytes:
        """Everything before the member's id, which is empty here, as is everything after it."""
        head = self._join_heads.get(version)
        if head is None:
            behind = len(b"\x01\x01\0") if version >= JOIN_COMPACT_FROM else SHORT_BYTES + LONG_BYTES
            head = self._join_heads[version] = encode(self._joined, version)[:-behind]
        return head

    def synced(self, version: int, assignment: bytes) -> Encoded:
        is_compact = version >= SYNC_COMPACT_FROM
        length = uvarint(len(assignment) + 1) if is_compact else len(assignment).to_bytes(LONG_BYTES)
        end = b"\0" if is_compact else b""
        head = self._sync_heads.get(version)
        if head is None:
            whole = encode(self._synced, version)
            head = self._sync_heads[version] = whole[: len(whole) - len(end) - (1 if is_compact else LONG_BYTES)]
        return Encoded(SyncGroupResponse, version, b"".join((head, length, assignment, end)))


def _compact_member(member: Member, protocol: str | None) -> bytes:
    own, metadata = member.id.encode(), member.metadata(protocol)
    instance = b"\0"
    if member.instance_id is not None:
        name = member.instance_id.encode()
        instance = uvarint(len(name) + 1) + name
    return b"".join((uvarint(len(own) + 1), own, instance, uvarint(len(metadata) + 1), metadata, b"\0"))


def _plain_member(member: Member, protocol: str | None, with_instance: bool) -> bytes:
    own, metadata = member.id.encode(), member.metadata(protocol)
    instance = b""
    if with_instance:
        name = None if member.instance_id is None else member.instance_id.encode()
        instance = NO_STRING if name is None else len(name).to_bytes(SHORT_BYTES) + name
    return b"".join((len(own).to_bytes(SHORT_BYTES), own, instance, len(metadata).to_bytes(LONG_BYTES), metadata))
