"""What can become due in a group. Each is a key of ``Deadlines``; the machine's table says what then happens."""

from typing import NamedTuple


class SessionTimeout(NamedTuple):
    """A member of a consumer group has been silent for too long."""

    group_id: str
    member_id: str


class ClassicSession(NamedTuple):
    """A member of a classic group has been silent for too long."""

    group_id: str
    member_id: str


class PendingMember(NamedTuple):
    """A classic member was given an id and has not joined with it (KIP-394)."""

    group_id: str
    member_id: str


class JoinPhase(NamedTuple):
    """A classic group has waited long enough for members to join."""

    group_id: str


class SyncPhase(NamedTuple):
    """A classic group's members had time enough to ask for their assignments."""

    group_id: str


class RebalanceTimeout(NamedTuple):
    """A member of a consumer group had time enough to give up partitions."""

    group_id: str
    member_id: str


class ClassicJoin(NamedTuple):
    """A classic member of a consumer group had time enough to join again."""

    group_id: str
    member_id: str


class ClassicSync(NamedTuple):
    """A classic member of a consumer group had time enough to ask for its assignment after it joined."""

    group_id: str
    member_id: str


class Assign(NamedTuple):
    """A consumer group may be given its next target assignment."""

    group_id: str


class OffsetsExpiry(NamedTuple):
    """It is time to look for offsets that nobody needs any more."""
