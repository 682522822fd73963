"""Identifiers: a type of its own for each, so that one is never mistaken for another."""

from typing import Final, NamedTuple, NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", UUID)
ProducerId = NewType("ProducerId", int)
ConnectionId = NewType("ConnectionId", int)
LinkId = NewType("LinkId", int)

NO_TOPIC_ID: Final = TopicId(UUID(int=0))
NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1


class TopicPartition(NamedTuple):
    """One partition of one topic, by the topic's name."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
