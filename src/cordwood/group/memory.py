"""How much memory all groups of a broker may take together (``cordwood.max.groups.bytes``).

Kafka has no such limit. Members choose their names, their metadata and how long they may be silent, so anybody who can
join a group could otherwise use up all memory. Beyond the limit, new groups and members are refused; the others
continue.

Groups are rarely weighed: what is admitted is added up, but what is removed is not subtracted, and only when the sum
reaches the limit are all groups weighed again. So nothing can be missed, whichever way a group comes or goes.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from cordwood.errors import Error, Refused
from cordwood.group.committed import CommittedOffsets
from cordwood.group.groups import Group
from cordwood.ports import Instant

GROUP_BYTES: Final = 1500
"""Roughly what a group takes, without its members."""

WEIGHED_EVERY_MS: Final = 1000
OFFSETS_ADDED_EVERY_MS: Final = 100
MUCH_ROOM_BYTES: Final = 64 << 20


class Weighed(Protocol):
    """The groups of a shard."""

    groups: dict[str, Group]
    offsets: CommittedOffsets


class GroupMemory:
    """One for all shards of a broker."""

    def __init__(self, limit_bytes: Callable[[], int], shards: Callable[[], Iterable[Weighed]]) -> None:
        self._limit_bytes = limit_bytes
        self._shards = shards
        self._groups_bytes = 0
        self._weighed_ms: int | None = None
        self._offsets_bytes = 0
        self._offsets_added_ms: int | None = None

    def admit(self, added_bytes: int, now: Instant) -> None:
        """Admit a member or a group of this size. Raises ``Refused`` if there is no room."""
        if self._has_much_room(added_bytes, now):
            self._groups_bytes += added_bytes
            return
        if not self._has_room(added_bytes):
            if self._weighed_ms is None or now.mono_ms >= self._weighed_ms + WEIGHED_EVERY_MS:
                self._weigh(now)
            if not self._has_room(added_bytes):
                raise Refused(Error.COORDINATOR_NOT_AVAILABLE, "There is no memory for more groups and members now.")
        self._groups_bytes += added_bytes

    def add(self, added_bytes: int) -> None:
        """What is there already takes more than before."""
        self._groups_bytes += added_bytes

    def _has_much_room(self, added_bytes: int, now: Instant) -> bool:
        """Adding up the offsets of all shards takes as long as all the rest of a request. As long as there is more room
        than commits can fill until the next time, it is enough to do so now and then."""
        if self._offsets_added_ms is None or now.mono_ms >= self._offsets_added_ms + OFFSETS_ADDED_EVERY_MS:
            self._offsets_added_ms = now.mono_ms
            self._offsets_bytes = sum(shard.offsets.weight_bytes for shard in self._shards())
        return self._groups_bytes + self._offsets_bytes + added_bytes + MUCH_ROOM_BYTES <= self._limit_bytes()

    def _has_room(self, added_bytes: int) -> bool:
        offsets_bytes = sum(shard.offsets.weight_bytes for shard in self._shards())
        return self._groups_bytes + offsets_bytes + added_bytes <= self._limit_bytes()

    def _weigh(self, now: Instant) -> None:
        self._weighed_ms = now.mono_ms
        self._groups_bytes = sum(
            GROUP_BYTES + 4 * len(group_id) + group.weight_bytes
            for shard in self._shards()
            for group_id, group in shard.groups.items()
        )
