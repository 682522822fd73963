"""What all groups have in common, whatever protocol their members speak."""

from typing import Protocol

from cordwood.coordinator.outcome import StateRecord

CLASSIC = "classic"
CONSUMER = "consumer"


class Group(Protocol):
    """A group, as far as offsets, listings and deletion need to know it. The ``check_…`` methods raise ``Refused``."""

    @property
    def id(self) -> str: ...

    @property
    def type(self) -> str:
        """``classic`` or ``consumer``."""

    @property
    def protocol_type(self) -> str:
        """``consumer`` for groups of consumers; another name, or none for a group that has offsets and no members."""

    @property
    def state_name(self) -> str:
        """As Kafka's tools know it: Empty, Stable, …"""

    @property
    def is_empty(self) -> bool:
        """Has it no members?"""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, api_version: int
    ) -> None:
        """May this member, at this generation or member epoch, commit offsets?"""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """May this member fetch offsets? Whoever names neither a member nor an epoch may."""

    def check_offset_delete(self) -> None:
        """May offsets of topics that it is not subscribed to be deleted?"""

    def check_delete(self) -> None:
        """May the whole group be deleted?"""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_expires_from(self, commit_timestamp: int, topic: str) -> int | None:
        """The wall time from which an offset's retention counts; None while it does not."""

    def tombstones(self) -> list[StateRecord]:
        """What to write to delete the group itself; its offsets have tombstones of their own."""

    def check(self) -> None: ...
