"""The rows that need a cluster: three brokers of ours with a ZooKeeper, beside three of Kafka's.

Both clusters run all the time and are measured in turns, like the single brokers. A row is prepared once for each
cluster, measured many times, and finished. Whatever a row does to a cluster, it leaves it intact: all brokers up, all
replicas in sync.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from cordwood.client.raw_replicas import Replicas
from cordwood.client.raw_settings import RawSettings

from .clients import Clients, ProduceLoad, create_topic, delete_topic
from .cluster_watch import Acknowledgements, in_sync, led_by, wait_until
from .clusters import CLUSTERS, REPLICAS, BrokerCluster
from .metrics import (
    CLUSTER_CPU_PER_GB,
    CLUSTER_RATE,
    CLUSTER_RSS,
    ELECTED,
    FAILOVER,
    FULL_ISR,
    GB,
    KEEPER_CPU_PER_GB,
    KEEPER_RSS,
    MB,
    Metric,
)
from .page_reserve import PageReserve
from .processes import Processes
from .scale import Scale

PRODUCE_PARTITIONS: Final = 6
BATCH_BYTES: Final = 64 * 1024
WARM_UP_BATCH_BYTES: Final = 8 * 1024
STORED_PER_BYTE: Final = 1.15
TOPICS_OF_MANY: Final = 5
SETTLE_S: Final = 180.0
NOBODY: Final = -1
PACE: Final = 200
"""Acknowledged records before a leader is killed: everything is warm by then."""


class ClusterRow(Protocol):
    """One measurement, made on both clusters in turn."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def metrics(self) -> Sequence[Metric]: ...
    def prepare(self, cluster: BrokerCluster) -> None: ...
    def measure(self, cluster: BrokerCluster) -> Mapping[str, float]: ...
    def finish(self, cluster: BrokerCluster) -> None: ...


@dataclass(slots=True)
class ClusterProduceRow:
    """ProducerPerformance, as in the rows of a single broker; the cost is that of all brokers together."""

    clients: Clients
    load: ProduceLoad
    key: str = "cluster-produce"
    title: str = "cluster: produce 100 B, batch 64 KB, 3 replicas, acks all"
    metrics: Sequence[Metric] = (CLUSTER_RATE, CLUSTER_CPU_PER_GB, KEEPER_CPU_PER_GB, CLUSTER_RSS, KEEPER_RSS)
    _topics: int = field(default=0)

    def prepare(self, cluster: BrokerCluster) -> None:
        """Warm up with small batches, so that Java compiles every path of a request."""
        topic = f"bench-{self.key}-warm-up"
        create_topic(cluster, topic, partitions=PRODUCE_PARTITIONS, replicas=REPLICAS)
        self.clients.produce(cluster, topic, replace(self.load, batch_bytes=WARM_UP_BATCH_BYTES))
        delete_topic(cluster, topic)

    def measure(self, cluster: BrokerCluster) -> Mapping[str, float]:
        self._topics += 1
        topic = f"bench-{self.key}-{self._topics}"
        create_topic(cluster, topic, partitions=PRODUCE_PARTITIONS, replicas=REPLICAS)
        wait_until(lambda: in_sync(cluster, [topic]), f"{cluster.name} has {topic} in sync", limit_s=SETTLE_S)
        with PageReserve(round(REPLICAS * self.load.total_bytes * STORED_PER_BYTE), cluster.written_bytes):
            before, keeper_before = cluster.cpu_s(), cluster.keeper_cpu_s()
            rate = self.clients.produce(cluster, topic, self.load)
            cpu_s, keeper_cpu_s = cluster.cpu_s() - before, cluster.keeper_cpu_s() - keeper_before
        rss, keeper_rss = cluster.rss_bytes(), cluster.keeper_rss_bytes()
        delete_topic(cluster, topic)
        return {
            CLUSTER_RATE.key: rate,
            CLUSTER_CPU_PER_GB.key: cpu_s * GB / self.load.total_bytes,
            KEEPER_CPU_PER_GB.key: (cpu_s + keeper_cpu_s) * GB / self.load.total_bytes,
            CLUSTER_RSS.key: rss / MB,
            KEEPER_RSS.key: (rss + keeper_rss) / MB,
        }

    def finish(self, cluster: BrokerCluster) -> None:
        """Nothing is left."""


@dataclass(slots=True)
class FailoverRow:
    """A producer of one partition has its leader killed, and goes on with another one."""

    key: str = "cluster-failover"
    title: str = "cluster: kill -9 of a leader"
    metrics: Sequence[Metric] = (FAILOVER,)

    def prepare(self, cluster: BrokerCluster) -> None:
        create_topic(cluster, self._topic, partitions=1, replicas=REPLICAS)

    def measure(self, cluster: BrokerCluster) -> Mapping[str, float]:
        self._wait_in_sync(cluster)
        leader = led_by(cluster, self._topic)[0]
        with Acknowledgements(cluster.bootstrap, self._topic) as seen:
            seen.wait(PACE, limit_s=SETTLE_S)
            cluster.kill(leader)
            seen.forget_gaps()
            wait_until(
                lambda: led_by(cluster, self._topic, not_from=leader).get(0, leader) != leader,
                f"{cluster.name} has another leader",
                limit_s=SETTLE_S,
            )
            seen.wait(PACE, limit_s=SETTLE_S)
            gap_s = seen.longest_gap_s
        cluster.start(leader)
        self._wait_in_sync(cluster)
        return {FAILOVER.key: gap_s}

    def finish(self, cluster: BrokerCluster) -> None:
        delete_topic(cluster, self._topic)

    def _wait_in_sync(self, cluster: BrokerCluster) -> None:
        wait_until(lambda: in_sync(cluster, [self._topic]), f"{cluster.name} is in sync", limit_s=SETTLE_S)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class RestartRow:
    """A broker shuts down cleanly and starts again: timed from its start until all its replicas are in sync."""

    clients: Clients
    load: ProduceLoad
    partitions: int
    key: str = "cluster-restart"
    metrics: Sequence[Metric] = (FULL_ISR,)

    @property
    def title(self) -> str:
        return f"cluster: restart of a broker, {self.partitions:,} partitions"

    def prepare(self, cluster: BrokerCluster) -> None:
        create_topic(cluster, self._topic, partitions=self.partitions, replicas=REPLICAS)
        self.clients.produce(cluster, self._topic, self.load)
        self._wait_in_sync(cluster)

    def measure(self, cluster: BrokerCluster) -> Mapping[str, float]:
        node = max(cluster.members)
        cluster.stop(node)
        begin_s = time.monotonic()
        cluster.start(node)
        self._wait_in_sync(cluster)
        return {FULL_ISR.key: time.monotonic() - begin_s}

    def finish(self, cluster: BrokerCluster) -> None:
        delete_topic(cluster, self._topic)

    def _wait_in_sync(self, cluster: BrokerCluster) -> None:
        wait_until(lambda: in_sync(cluster, [self._topic]), f"{cluster.name} is in sync", limit_s=SETTLE_S)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class ManyPartitionsRow:
    """Of thousands of partitions, a killed broker led a third: timed until each of them has another leader."""

    partitions: int
    key: str = "cluster-5000"
    metrics: Sequence[Metric] = (ELECTED,)

    @property
    def title(self) -> str:
        return f"cluster: kill -9 of one broker, {self.partitions:,} partitions"

    def prepare(self, cluster: BrokerCluster) -> None:
        for topic in self._topics:
            create_topic(cluster, topic, partitions=self.partitions // TOPICS_OF_MANY, replicas=REPLICAS)
        self._wait_in_sync(cluster)

    def measure(self, cluster: BrokerCluster) -> Mapping[str, float]:
        victim = max(cluster.members)
        self._wait_for_a_share(cluster, victim)
        begin_s = cluster.kill(victim)
        for topic in self._topics:
            wait_until(
                lambda topic=topic: self._elected(cluster, topic, victim),  # type: ignore[misc]
                f"{cluster.name} has leaders for all of {topic}",
                limit_s=SETTLE_S,
            )
        elected_s = time.monotonic() - begin_s
        cluster.start(victim)
        self._wait_in_sync(cluster)
        return {ELECTED.key: elected_s}

    def _wait_for_a_share(self, cluster: BrokerCluster, victim: int) -> None:
        """Elect preferred leaders: a broker that was killed before leads nothing, so there would be none to replace."""
        self._wait_in_sync(cluster)
        with Replicas(RawSettings(cluster.bootstrap)) as replicas:
            replicas.elect(None, unclean=False)
        share = self.partitions // len(cluster.members) // TOPICS_OF_MANY // 2
        for topic in self._topics:
            wait_until(
                lambda topic=topic: [*led_by(cluster, topic).values()].count(victim) > share,  # type: ignore[misc]
                f"broker {victim} of {cluster.name} leads its share of {topic}",
                limit_s=SETTLE_S,
            )

    def _elected(self, cluster: BrokerCluster, topic: str, victim: int) -> bool:
        leaders = led_by(cluster, topic, not_from=victim)
        return len(leaders) == self.partitions // TOPICS_OF_MANY and not {victim, NOBODY} & {*leaders.values()}

    def finish(self, cluster: BrokerCluster) -> None:
        for topic in self._topics:
            delete_topic(cluster, topic)

    def _wait_in_sync(self, cluster: BrokerCluster) -> None:
        wait_until(lambda: in_sync(cluster, self._topics), f"{cluster.name} is in sync", limit_s=2 * SETTLE_S)

    @property
    def _topics(self) -> list[str]:
        return [f"bench-{self.key}-{number}" for number in range(TOPICS_OF_MANY)]


def cluster_rows(clients: Clients, scale: Scale) -> list[ClusterRow]:
    small = scale.cluster_records
    load = ProduceLoad(records=small, record_bytes=100, batch_bytes=BATCH_BYTES, acks="all", warm_up=small // 4)
    few = ProduceLoad(
        records=scale.cluster_restart_partitions * 100,
        record_bytes=100,
        batch_bytes=16 * 1024,
        acks="all",
        warm_up=1_000,
    )
    return [
        ClusterProduceRow(clients, load),
        FailoverRow(),
        RestartRow(clients, few, scale.cluster_restart_partitions),
        ManyPartitionsRow(scale.cluster_many_partitions),
    ]


Seen = dict[str, list[Mapping[str, float]]]


def measure_clusters(
    processes: Processes,
    directory: Path,
    rows: Sequence[ClusterRow],
    *,
    rounds: int,
    unmeasured_rounds: int,
    on_step: Callable[[str], None],
) -> Iterator[tuple[ClusterRow, Seen]]:
    """Start both clusters, and yield what each row measured on them, round by round."""
    with ExitStack() as stack:
        clusters: list[BrokerCluster] = []
        for name, launch in CLUSTERS.items():
            on_step(f"three brokers, {name}")
            clusters.append(launch(processes, directory / f"cluster-{name}"))
            stack.callback(clusters[-1].close)
        for row in rows:
            yield row, _measured(row, clusters, rounds, unmeasured_rounds, on_step)


def steps_of(rows: int, *, rounds: int, unmeasured_rounds: int) -> int:
    """How many steps ``measure_clusters`` reports."""
    return 2 * bool(rows) + rows * 2 * (rounds + unmeasured_rounds + 1)


def _measured(
    row: ClusterRow,
    clusters: Sequence[BrokerCluster],
    rounds: int,
    unmeasured_rounds: int,
    on_step: Callable[[str], None],
) -> Seen:
    for cluster in clusters:
        on_step(f"{row.title}, preparing {cluster.name}")
        row.prepare(cluster)
    seen: Seen = {cluster.name: [] for cluster in clusters}
    for turn in range(1 - unmeasured_rounds, rounds + 1):
        for cluster in clusters:
            on_step(f"{row.title}, {f'round {turn} of {rounds}' if turn > 0 else 'warm-up'}, {cluster.name}")
            measured = row.measure(cluster)
            if turn > 0:
                seen[cluster.name].append(measured)
    for cluster in clusters:
        row.finish(cluster)
    return seen
