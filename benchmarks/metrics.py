"""What is measured and what we aim for: the figures of a row, their targets, medians and ratios. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf
from statistics import median
from typing import Final

MB: Final = 1_000_000
GB: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a row. `bound` limits the ratio ours/Kafka's: from below if more is better, else from above.

    An `absolute` bound applies to our figure itself, whatever Kafka's is. An infinite bound is no target.
    """

    key: str
    title: str
    unit: str
    bound: float
    more_is_better: bool = False
    absolute: bool = False

    @property
    def has_target(self) -> bool:
        return not isinf(self.bound)

    def meets(self, value: float) -> bool:
        return value >= self.bound if self.more_is_better else value <= self.bound

    @property
    def target(self) -> str:
        if not self.has_target:
            return "–"
        return f"{'≥' if self.more_is_better else '≤'} {self.bound:g}{f' {self.unit}' if self.absolute else '×'}"


RATE: Final = Metric("rate", "throughput", "MB/s", 1.1, more_is_better=True)
CEILING: Final = Metric("ceiling", "throughput beside a broker that costs nothing", "MB/s", inf, more_is_better=True)
CPU_PER_GB: Final = Metric("cpu_per_gb", "broker CPU", "s/GB", 0.5)
CPU_PER_REQUEST: Final = Metric("cpu_per_request", "broker CPU", "µs/request", 0.5)
P50: Final = Metric("p50_ms", "p50", "ms", 1.0)
P99: Final = Metric("p99_ms", "p99", "ms", 1.0)
P999: Final = Metric("p999_ms", "p99.9", "ms", 1.0)
RSS: Final = Metric("rss", "memory (RSS)", "MB", 0.1)
START: Final = Metric("start", "start to first Metadata", "s", 0.1)
IDLE_CPU: Final = Metric("idle_cpu", "broker CPU while idle", "% of a core", 0.5)
IDLE_RSS: Final = Metric("idle_rss", "memory (RSS)", "MB", 0.1)
ASSIGNED: Final = Metric("assigned_ms", "last join until all are assigned", "ms", 1.0)
COMMIT_RATE: Final = Metric("commit_rate", "throughput", "commits/s", 0.8, more_is_better=True)
COMMIT_CPU: Final = Metric("commit_cpu", "broker CPU", "µs/commit", 0.6)
LOADED: Final = Metric("loaded", "start until all offsets are there", "s", 5.0, absolute=True)
LOADED_RSS: Final = Metric("loaded_rss", "memory (RSS)", "MB", 150.0, absolute=True)

CLUSTER_RATE: Final = Metric("rate", "throughput", "MB/s", 1.2, more_is_better=True)
CLUSTER_CPU_PER_GB: Final = Metric("cpu_per_gb", "CPU of all brokers", "s/GB", 0.6)
KEEPER_CPU_PER_GB: Final = Metric("keeper_cpu_per_gb", "the same with ZooKeeper", "s/GB", inf)
CLUSTER_RSS: Final = Metric("rss", "memory (RSS) of all brokers", "MB", 0.15)
KEEPER_RSS: Final = Metric("keeper_rss", "the same with ZooKeeper", "MB", inf)
FAILOVER: Final = Metric("failover", "longest time without an acknowledgement", "s", 1.0, absolute=True)
FULL_ISR: Final = Metric("full_isr", "start until all replicas are in sync", "s", 1.0)
ELECTED: Final = Metric("elected", "until all partitions have leaders", "s", 3.0, absolute=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one row, with each side's value in every round. Kafka has no values where we are measured alone."""

    row: str
    metric: Metric
    ours: Sequence[float]
    kafka: Sequence[float]

    @property
    def ours_median(self) -> float:
        return median(self.ours)

    @property
    def alone(self) -> bool:
        return not self.kafka

    @property
    def kafka_median(self) -> float:
        """1 if we are measured alone: the ratio is then our figure itself."""
        return median(self.kafka) if self.kafka else 1.0

    @property
    def ratio(self) -> float:
        """Ours divided by Kafka's; if both are 0 it is a tie."""
        if self.kafka_median == 0:
            return 1.0 if self.ours_median == 0 else float("inf")
        return self.ours_median / self.kafka_median

    @property
    def met(self) -> bool:
        return self.metric.meets(self.ours_median if self.metric.absolute else self.ratio)

    @property
    def bound_ratio(self) -> float:
        """The bound as a ratio to Kafka's figure."""
        if not self.metric.absolute:
            return self.metric.bound
        return self.metric.bound / self.kafka_median if self.kafka_median else float("inf")


def figures(row: str, metrics: Sequence[Metric], rounds: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Figure]:
    """Turn what each side measured, round by round, into one figure per metric."""
    return [
        Figure(
            row,
            metric,
            [seen[metric.key] for seen in rounds["cordwood"]],
            [seen[metric.key] for seen in rounds["kafka"] if metric.key in seen],
        )
        for metric in metrics
    ]
