"""The rows that need an unused Spark session: its first query, and how much memory a task comes to need.

Each measurement is a process of its own (`spark_child.py`), with a session that ends with it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .brokers import Broker
from .clients import Clients, delete_topic
from .metrics import Metric
from .processes import Processes
from .rows import PARTITIONS
from .spark_load import FORMATS, fill
from .spark_metrics import FIRST_QUERY, KERNELS, PEAK, PEAK_GROWTH_DIRECT, PEAK_GROWTH_FETCH

FIRST_QUERY_RECORDS: Final = 10_000
CHILD_LIMIT_S: Final = 300.0


def _child(processes: Processes, *arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.spark_child", *arguments]
    lines = list(processes.lines_of(command, name="spark-child", limit_s=CHILD_LIMIT_S))
    figures: dict[str, float] = json.loads(lines[-1])
    return figures


@dataclass(slots=True)
class FirstQueryRow:
    """A small batch is the first thing that a session does.

    Numba's part of that is measured separately, in processes that do nothing else: first one, like the process that
    plans the query, then two at once, like those that run its tasks.
    """

    clients: Clients
    processes: Processes
    directory: Path
    key: str = "spark-first"
    title: str = "first query of a Spark session"
    metrics: Sequence[Metric] = (FIRST_QUERY, KERNELS)

    def prepare(self, broker: Broker) -> None:
        """Measure once without counting, so that the kernels are compiled and the files of both sides are cached."""
        fill(broker, self.clients, self._topic, FIRST_QUERY_RECORDS, partitions=PARTITIONS)
        self.measure(broker)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        arguments = [str(self.directory), FORMATS[broker.name], broker.bootstrap, self._topic]
        figures = _child(self.processes, "first", *arguments)
        if broker.name == "kafka":
            return figures
        return {**figures, **_child(self.processes, "kernels")}

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class PeakRow:
    """One task reads some of a partition, and then ten times as much: the peak memory of its process. Ours alone."""

    clients: Clients
    processes: Processes
    directory: Path
    records: int
    key: str = "spark-memory"
    title: str = "memory of a Spark task"
    metrics: Sequence[Metric] = (PEAK, PEAK_GROWTH_DIRECT, PEAK_GROWTH_FETCH)

    def prepare(self, broker: Broker) -> None:
        if broker.name == "cordwood":
            fill(broker, self.clients, self._topic, self.records, partitions=1)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        if broker.name != "cordwood":
            return {}
        arguments = [str(self.directory), broker.bootstrap, self._topic, str(self.records)]
        direct = _child(self.processes, "peak", *arguments, "auto")
        fetch = _child(self.processes, "peak", *arguments, "never")
        return {
            PEAK.key: max(direct["large"], fetch["large"]),
            PEAK_GROWTH_DIRECT.key: direct["large"] / direct["small"],
            PEAK_GROWTH_FETCH.key: fetch["large"] / fetch["small"],
        }

    def finish(self, broker: Broker) -> None:
        if broker.name == "cordwood":
            delete_topic(broker, self._topic)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"
