"""The names of things: one type for each, so that an offset is never mistaken for an epoch."""

from typing import NamedTuple, NewType
from uuid import UUID

NodeId = NewType("NodeId", int)
TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", UUID)
ProducerId = NewType("ProducerId", int)
ConnectionId = NewType("ConnectionId", int)
LinkId = NewType("LinkId", int)

NO_TOPIC_ID = TopicId(UUID(int=0))
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_OFFSET = -1
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    """One partition of one topic, by the topic's name."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
