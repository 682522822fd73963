"""What can become due in a group. Each is a key of ``Deadlines``; the machine's table says what then happens.

They are no tuples: two tuples of the same texts are the same key, whatever their classes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionTimeout:
    """A member of a consumer group has been silent for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicSession:
    """A member of a classic group has been silent for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class PendingMember:
    """A classic member was given an id and has not joined with it (KIP-394)."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinPhase:
    """A classic group has waited long enough for members to join."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncPhase:
    """A classic group's members had time enough to ask for their assignments."""

    group_id: str


@dataclass(frozen=True, slots=True)
class RebalanceTimeout:
    """A member of a consumer group had time enough to give up partitions."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicJoin:
    """A classic member of a consumer group had time enough to join again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicSync:
    """A classic member of a consumer group had time enough to ask for its assignment after it joined."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Assign:
    """A consumer group may be given its next target assignment."""

    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetsExpiry:
    """It is time to look for offsets that nobody needs any more."""


@dataclass(frozen=True, slots=True)
class OffsetsExpiryGoesOn:
    """A round through all groups, in search of such offsets, has not ended."""


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """Offsets of a topic that is gone are still there."""

    name: str
