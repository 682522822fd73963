"""The rows about members of groups: how long a rebalance takes, in groups of several sizes and of both protocols."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .brokers import Broker
from .clients import create_topic, delete_topic
from .groups_classic import ClassicGroup
from .groups_commit import CommitRow
from .groups_consumer import ConsumerGroup
from .groups_wires import Wires, find_coordinators
from .metrics import ASSIGNED, Metric
from .rows import Row
from .scale import Scale


@dataclass(slots=True)
class RebalanceRow:
    """The time from the last join until all members are assigned, the median of several rebalances of one group."""

    members: int
    turns: int
    warm_up_turns: int
    kind: type[ClassicGroup] | type[ConsumerGroup]
    metrics: Sequence[Metric] = (ASSIGNED,)
    _groups: int = 0

    @property
    def key(self) -> str:
        return f"groups-{self._protocol}-{self.members}"

    @property
    def title(self) -> str:
        return f"{self.members} members join, {self._protocol} protocol"

    @property
    def _protocol(self) -> str:
        return "classic" if self.kind is ClassicGroup else "consumer"

    def prepare(self, broker: Broker) -> None:
        find_coordinators(broker.port)
        create_topic(broker, self._topic, partitions=self.members)
        self._rebalances_s(broker, self.warm_up_turns)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        return {ASSIGNED.key: 1000 * median(self._rebalances_s(broker, self.turns))}

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    def _rebalances_s(self, broker: Broker, turns: int) -> list[float]:
        self._groups += 1
        with Wires(broker.port, self.members) as wires:
            group = self.kind(wires, f"{self._topic}-{self._groups}", self._topic, range(self.members))
            group.form()
            took_s = [group.rebalance() for _ in range(turns)]
            group.leave()
        return took_s

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


def group_rows(scale: Scale) -> list[Row]:
    """Every row about groups that needs nothing but a running broker."""
    few, some, many = scale.rebalances
    return [
        RebalanceRow(2, few, 5 * few, ClassicGroup),
        RebalanceRow(50, some, 2 * some, ClassicGroup),
        RebalanceRow(500, many, many, ClassicGroup),
        RebalanceRow(2, few, 5 * few, ConsumerGroup),
        RebalanceRow(50, some, 2 * some, ConsumerGroup),
        RebalanceRow(500, many, many, ConsumerGroup),
        CommitRow(active_s=scale.active_s, warm_up_s=2 * scale.active_s),
    ]
