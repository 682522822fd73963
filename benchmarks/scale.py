"""How much load a run makes: everything in which a full run and a quick one differ."""

from dataclasses import dataclass
from typing import Final

ROW_KEYS: Final = (
    *("start", "produce-8k", "produce-64k", "produce-1k", "consume", "consume-1k", "consume-tool", "partitions"),
    *("latency", "latency-parked", "latency-partitions", "connections"),
    *("groups-classic-2", "groups-classic-50", "groups-classic-500"),
    *("groups-consumer-2", "groups-consumer-50", "groups-consumer-500", "groups-commit", "groups-load"),
    *("spark-first", "spark-memory", "spark-read", "spark-stream", "spark-write", "spark-trickle"),
    *("memory", "growth"),
    *("cluster-produce", "cluster-failover", "cluster-restart", "cluster-5000"),
)
LEFT_OUT_WHEN_QUICK: Final = (
    *("consume-1k", "consume-tool", "partitions", "latency-parked", "latency-partitions"),
    *("groups-classic-50", "groups-consumer-2", "groups-consumer-500"),
)


@dataclass(frozen=True, slots=True)
class Scale:
    rows: tuple[str, ...]
    unmeasured_rounds: int
    produce_small_records: int
    produce_large_records: int
    consume_records: int
    consume_warm_ups: int
    """Passes over a topic that do not count: Java keeps compiling for that long."""
    consume_passes: int
    consume_tool_records: int
    latency_warm_up: int
    latency_records: int
    partition_records: int
    idle_s: float
    active_s: float
    rebalances: tuple[int, int, int]
    """In each round, for groups with 2, 50 and 500 members."""
    spark_warm_ups: int
    """Measurements of each Spark row that do not count, in addition to the unmeasured rounds."""
    spark_records: int
    spark_peak_records: int
    spark_rows: int
    spark_trickle_batches: int
    growth_bytes: tuple[int, ...]
    growth_requests: int
    cluster_records: int
    cluster_restart_partitions: int
    cluster_many_partitions: int


FULL: Final = Scale(
    rows=ROW_KEYS,
    unmeasured_rounds=1,
    produce_small_records=5_000_000,
    produce_large_records=3_000_000,
    consume_records=5_000_000,
    consume_warm_ups=4,
    consume_passes=6,
    consume_tool_records=4_000_000,
    latency_warm_up=3_000,
    latency_records=10_000,
    partition_records=500_000,
    idle_s=5.0,
    active_s=10.0,
    rebalances=(50, 30, 10),
    spark_warm_ups=8,
    spark_records=10_000_000,
    spark_peak_records=10_000_000,
    spark_rows=5_000_000,
    spark_trickle_batches=100,
    growth_bytes=(10**6, 10**7, 10**8, 10**9, 10**10),
    growth_requests=20_000,
    cluster_records=5_000_000,
    cluster_restart_partitions=1_000,
    cluster_many_partitions=5_000,
)
QUICK: Final = Scale(
    rows=tuple(key for key in ROW_KEYS if key not in LEFT_OUT_WHEN_QUICK),
    unmeasured_rounds=0,
    produce_small_records=1_500_000,
    produce_large_records=300_000,
    consume_records=1_000_000,
    consume_warm_ups=1,
    consume_passes=3,
    consume_tool_records=1_000_000,
    latency_warm_up=500,
    latency_records=2_000,
    partition_records=100_000,
    idle_s=2.0,
    active_s=3.0,
    rebalances=(20, 10, 5),
    spark_warm_ups=2,
    spark_records=1_000_000,
    spark_peak_records=5_000_000,
    spark_rows=500_000,
    spark_trickle_batches=40,
    growth_bytes=(10**6, 10**7, 10**8, 5 * 10**8),
    growth_requests=4_000,
    cluster_records=1_000_000,
    cluster_restart_partitions=300,
    cluster_many_partitions=1_000,
)
