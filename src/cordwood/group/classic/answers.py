"""What all members of a generation are told alike: made once, as bytes, and told each with what is its own.

A group of hundreds answers hundreds of calls when a generation begins, and again when it is assigned. A member's own
part (its id, its assignment) is the last field but for what is empty, so the answer is: the same beginning for all, the
member's part, the same end for all.
"""

from cordwood.wire import Encoded, encode
from cordwood.wire.messages import JoinGroupResponse, SyncGroupResponse
from cordwood.wire.runtime import uvarint

JOIN_COMPACT_FROM = 6
SYNC_COMPACT_FROM = 4
SHORT_BYTES = 2
LONG_BYTES = 4


class Answers:
    """To JoinGroup and SyncGroup, in all versions, as long as neither generation nor leader nor protocol change."""

    __slots__ = ("_join_heads", "_joined", "_sync_heads", "_synced")

    def __init__(self, *, generation: int, leader: str, protocol_type: str, protocol: str | None) -> None:
        self._joined = JoinGroupResponse(
            generation_id=generation, protocol_type=protocol_type, protocol_name=protocol, leader=leader
        )
        self._synced = SyncGroupResponse(protocol_type=protocol_type, protocol_name=protocol)
        self._join_heads: dict[int, bytes] = {}
        self._sync_heads: dict[int, bytes] = {}

    def joined(self, version: int, member_id: str) -> Encoded:
        """To a member that does not lead."""
        own = member_id.encode()
        is_compact = version >= JOIN_COMPACT_FROM
        length, end = (uvarint(len(own) + 1), b"\x01\0") if is_compact else (len(own).to_bytes(SHORT_BYTES), bytes(4))
        head = self._join_heads.get(version)
        if head is None:
            whole = encode(self._joined, version)
            head = self._join_heads[version] = whole[: -len(end) - (1 if is_compact else SHORT_BYTES)]
        return Encoded(JoinGroupResponse, version, b"".join((head, length, own, end)))

    def synced(self, version: int, assignment: bytes) -> Encoded:
        is_compact = version >= SYNC_COMPACT_FROM
        length = uvarint(len(assignment) + 1) if is_compact else len(assignment).to_bytes(LONG_BYTES)
        end = b"\0" if is_compact else b""
        head = self._sync_heads.get(version)
        if head is None:
            whole = encode(self._synced, version)
            head = self._sync_heads[version] = whole[: len(whole) - len(end) - (1 if is_compact else LONG_BYTES)]
        return Encoded(SyncGroupResponse, version, b"".join((head, length, assignment, end)))
