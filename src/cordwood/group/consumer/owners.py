"""Who has which partition. No partition is given to a member before its last owner has given it up.

Kafka keeps the owners' epochs for this; the owner itself says more, and is just as easy to keep.
"""

from uuid import UUID

from .member import Held


class Owners:
    """The owner of each partition that has one."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[UUID, dict[int, str]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owners) and self._topics == other._topics

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "Owners":
        other = Owners()
        other._topics = {topic_id: owners.copy() for topic_id, owners in self._topics.items()}
        return other

    def of(self, topic_id: UUID, partition: int) -> str | None:
        owners = self._topics.get(topic_id)
        return None if owners is None else owners.get(partition)

    def is_free(self, topic_id: UUID, partition: int) -> bool:
        owners = self._topics.get(topic_id)
        return owners is None or partition not in owners

    def take(self, member_id: str, held: Held) -> None:
        for topic_id, partitions in held.items():
            self._topics.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def release(self, member_id: str, held: Held) -> None:
        """A partition that a later record gave to another member stays there: the log may lack what came between."""
        for topic_id, partitions in held.items():
            owners = self._topics.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self._topics.pop(topic_id, None)
