"""Which of a partition's replicas a client can reach: those on live brokers with the listener that it connected to."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.image import NO_LEADER, BrokerInfo, PartitionInfo
from cordwood.errors import Error
from cordwood.ids import NodeId

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Reachable:
    """The brokers that one client can reach."""

    def __init__(self, broker: "Broker", call: Call) -> None:
        self.brokers: list[BrokerInfo] = broker.brokers(call)
        self._nodes = frozenset(info.id for info in self.brokers)
        self._there = frozenset(node for node in broker.image.brokers if not broker.is_cut_off(node))

    def leader(self, partition: PartitionInfo) -> tuple[NodeId, Error]:
        """Which broker to turn to, or why there is none."""
        leader = partition.leader
        if leader in self._nodes:
            return leader, Error.NONE
        return NO_LEADER, Error.LISTENER_NOT_FOUND if leader in self._there else Error.LEADER_NOT_AVAILABLE

    def among(self, replicas: Iterable[NodeId]) -> list[int]:
        return [node for node in replicas if node in self._nodes]

    def not_among(self, replicas: Iterable[NodeId]) -> list[int]:
        return [node for node in replicas if node not in self._nodes]
