"""What all groups have in common, whatever protocol their members speak."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.state_record import StateRecord
from cordwood.ports import Instant

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"

CheckPartition = Callable[[str, UUID, int], None]
"""(topic, its id, partition): may an offset of it be committed? Raises ``Refused`` for the whole request if not."""


class Group(Protocol):
    """A group, as far as offsets, listings and deletion need to know it. The ``check_…`` methods raise ``Refused``."""

    @property
    def id(self) -> str: ...

    @property
    def type(self) -> str:
        """``classic`` or ``consumer``."""

    @property
    def protocol_type(self) -> str:
        """``consumer`` for groups of consumers; another name, or none for a group with offsets and no members."""

    @property
    def state_name(self) -> str:
        """As Kafka's tools know it: Empty, Stable, …"""

    @property
    def is_empty(self) -> bool:
        """Has it no members?"""

    @property
    def weight_bytes(self) -> int:
        """Roughly the memory that its members take."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, api_version: int
    ) -> CheckPartition | None:
        """May this member, at this generation or member epoch, commit offsets?

        If a function is returned, it must also be called for every partition. A member of a consumer group that has not
        been told of its newest epoch yet may commit for partitions it has had since the epoch that it knows (KIP-1251).
        """

    def touched(self, member_id: str, deadlines: Deadlines[object], now: Instant) -> None:
        """A commit by this member was accepted: set its session's deadline again if that counts as a heartbeat.

        It does in a classic group that is Stable or PreparingRebalance, and in no consumer group. *member_id* may
        belong to no member, when a simple consumer commits to an empty group.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """May this member fetch offsets? A caller that names neither a member nor an epoch may."""

    def check_offset_delete(self) -> None:
        """May offsets be deleted, of topics that it is not subscribed to?"""

    def check_delete(self) -> None:
        """May the whole group be deleted?"""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_expires_from(self, commit_timestamp: int, topic: str) -> int | None:
        """The wall time from which an offset's retention counts; None as long as it does not.

        Offsets of topics that the group is subscribed to are kept anyway, and this is not asked about them.
        """

    def tombstones(self) -> list[StateRecord]:
        """The records that delete the group itself; its offsets have tombstones of their own."""

    def check(self) -> None: ...


class Decided(NamedTuple):
    """A group as it will be when the records that were decided on in this turn of the loop are written."""

    group: Group
    records: list[StateRecord]
