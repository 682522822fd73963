"""Who leads instead: an error that names the leader saves the client a Metadata request (KIP-951)."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from cordwood.broker.connection import Call
from cordwood.cluster.image import NO_LEADER
from cordwood.errors import Error
from cordwood.ids import TopicId, TopicName
from cordwood.wire.messages import FetchResponse, LeaderIdAndEpoch, NodeEndpoint, ProduceResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

PRODUCE_SINCE: Final = 10
FETCH_SINCE: Final = 16


def name_leaders_of_produce(broker: "Broker", call: Call, response: ProduceResponse) -> None:
    """Add to the answer the leaders of all partitions that were refused because this broker does not lead them."""
    if call.api_version < PRODUCE_SINCE:
        return
    leaders = Leaders(broker, call)
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = leaders.find(topic.name, topic.topic_id, answer.index)
    response.node_endpoints = leaders.endpoints()


def name_leaders_of_fetch(broker: "Broker", call: Call, response: FetchResponse) -> None:
    if call.api_version < FETCH_SINCE:
        return
    leaders = Leaders(broker, call)
    for topic in response.responses:
        for answer in topic.partitions:
            if answer.error_code in (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH):
                answer.current_leader = leaders.find(topic.topic, topic.topic_id, answer.partition_index)
    response.node_endpoints = leaders.endpoints()


class Leaders:
    """The leaders that one answer names, and where its client can reach them."""

    def __init__(self, broker: "Broker", call: Call) -> None:
        self._broker = broker
        self._call = call
        self._named: set[int] = set()

    def find(self, name: str, topic_id: UUID, index: int) -> LeaderIdAndEpoch | None:
        """The other broker that leads the partition; None if there is none, as far as this one knows."""
        image = self._broker.image
        topic = image.topics.get(TopicName(name)) if name else image.topic_by_id(TopicId(topic_id))
        if topic is None or index >= len(topic.partitions):
            return None
        info = topic.partitions[index]
        if info.leader in (NO_LEADER, self._broker.node):
            return None
        self._named.add(info.leader)
        return LeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)

    def endpoints(self) -> list[NodeEndpoint]:
        if not self._named:
            return []
        return [
            NodeEndpoint(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in self._broker.brokers(self._call)
            if broker.id in self._named
        ]
