"""What can become due in a group. Each is a key of ``Deadlines``; the machine's table says what happens then.

They are tuples, since a heartbeat should cost little. Two tuples are equal whatever their classes, so each has its kind
in a last field, which is never set.
"""

from typing import NamedTuple


class SessionTimeout(NamedTuple):
    """A member of a consumer group has been silent for too long."""

    group_id: str
    member_id: str
    kind: str = "SessionTimeout"


class ClassicSession(NamedTuple):
    """A member of a classic group has been silent for too long."""

    group_id: str
    member_id: str
    kind: str = "ClassicSession"


class PendingMember(NamedTuple):
    """A classic member was given an id and has not joined with it (KIP-394)."""

    group_id: str
    member_id: str
    kind: str = "PendingMember"


class JoinPhase(NamedTuple):
    """A classic group has waited long enough for members to join."""

    group_id: str
    kind: str = "JoinPhase"


class SyncPhase(NamedTuple):
    """The members of a classic group have had enough time to ask for their assignments."""

    group_id: str
    kind: str = "SyncPhase"


class RebalanceTimeout(NamedTuple):
    """A member of a consumer group has had enough time to give up partitions."""

    group_id: str
    member_id: str
    kind: str = "RebalanceTimeout"


class ClassicJoin(NamedTuple):
    """A classic member of a consumer group has had enough time to rejoin."""

    group_id: str
    member_id: str
    kind: str = "ClassicJoin"


class ClassicSync(NamedTuple):
    """A classic member of a consumer group has had enough time to ask for its assignment after it joined."""

    group_id: str
    member_id: str
    kind: str = "ClassicSync"


class OffsetsExpiry(NamedTuple):
    """It is time to look for offsets that are no longer needed."""

    kind: str = "OffsetsExpiry"


class OffsetsExpiryGoesOn(NamedTuple):
    """A round through all groups, in search of such offsets, has not ended yet."""

    kind: str = "OffsetsExpiryGoesOn"


class DeletedTopic(NamedTuple):
    """There are still offsets of a topic that is gone."""

    name: str
    kind: str = "DeletedTopic"
