"""One run of the benchmarks: start-up first, then both brokers side by side until the end.

Owns the order of things: warm-up, alternating rounds, what is measured when. Each row knows how to measure itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from . import report
from .brokers import SIDES, Broker
from .clients import Clients, create_topic, delete_topic
from .cluster_rows import cluster_rows, measure_clusters, steps_of
from .connections import ConnectionsRow
from .groups import group_rows
from .groups_load import TITLE as GROUPS_LOAD_TITLE
from .groups_load import measure_load
from .growth import GrowthPoint, measure_growth
from .metrics import LOADED, LOADED_RSS, MB, RSS, START, Figure, Metric, figures
from .processes import Processes, ToolFailedError
from .progress import Progress
from .rows import PARTITIONS, Row, load_rows, warm_up_load
from .scale import FULL, QUICK
from .spark_rows import spark_rows
from .spark_session import Spark

WARM_UP_TOPIC: Final = "bench-warm-up"
# Measured by looking at the broker processes, or at one of them; all other rows are Row objects.
PROCESS_ROWS: Final = ("start", "groups-load", "memory", "growth")
CLUSTER_ROWS: Final = ("cluster-produce", "cluster-failover", "cluster-restart", "cluster-5000")


class Run:
    """`only` names the rows to measure, all of the scale's by default; the brokers' data and logs go to `directory`."""

    def __init__(
        self, processes: Processes, directory: Path, *, quick: bool, rounds: int, only: Sequence[str] | None = None
    ) -> None:
        self._processes = processes
        self._directory = directory
        self._quick = quick
        self._scale = QUICK if quick else FULL
        self._rounds = rounds
        self._only = self._scale.rows if only is None else only
        self._progress = Progress(steps=self._count_steps())
        self._clients = Clients(processes, directory, self._progress.detail)
        self._spark = Spark(directory)
        self._figures: list[Figure] = []

    def report(self) -> report.Report:
        if "start" in self._only:
            self._measure_start()
        if "groups-load" in self._only:
            seen = measure_load(self._processes, self._directory, self._rounds, self._progress.step)
            self._add(GROUPS_LOAD_TITLE, [LOADED, LOADED_RSS], seen)
        growth: list[GrowthPoint] = []
        rows = self._rows()
        if rows or "memory" in self._only or "growth" in self._only:
            brokers = [launch(self._processes, self._directory / name) for name, launch in SIDES.items()]
            with closing(self._spark), self._blaming_the_dead(brokers):
                growth = self._measure_running(brokers, rows)
            for broker in brokers:
                self._processes.stop(broker.process)
        self._measure_clusters()
        return report.Report(quick=self._quick, rounds=self._rounds, figures=self._figures, growth=growth)

    @contextmanager
    def _blaming_the_dead(self, brokers: Sequence[Broker]) -> Iterator[None]:
        """Report a failure as a broker that ended, if one has ended."""
        try:
            yield
        except Exception as error:
            for broker in brokers:
                if (code := broker.process.poll()) is not None:
                    words = self._processes.last_words(broker.process)
                    raise ToolFailedError(f"{broker.name} ended with {code} while it was measured:\n{words}") from error
            raise

    def _rows(self) -> list[Row]:
        connections = ConnectionsRow(idle_s=self._scale.idle_s, active_s=self._scale.active_s)
        rows = [
            *load_rows(self._clients, self._scale),
            connections,
            *group_rows(self._scale),
            *spark_rows(self._clients, self._processes, self._spark, self._scale),
        ]
        return [row for row in rows if row.key in self._only]

    def _measure_running(self, brokers: Sequence[Broker], rows: Sequence[Row]) -> list[GrowthPoint]:
        if rows:
            self._warm_up(brokers)
        for row in rows:
            self._measure_row(row, brokers)
        if "memory" in self._only:
            self._add(
                "memory after the run", [RSS], {side.name: [{RSS.key: side.rss_bytes() / MB}] for side in brokers}
            )
        if "growth" not in self._only:
            return []
        self._progress.step("cost of a request as a log grows")
        return measure_growth(brokers[0], self._clients, self._scale, self._progress.part)

    def _measure_clusters(self) -> None:
        """Runs after the single brokers have stopped: six brokers are enough for a machine."""
        rows = [row for row in cluster_rows(self._clients, self._scale) if row.key in self._only]
        if not rows:
            return
        for row, seen in measure_clusters(
            self._processes,
            self._directory,
            rows,
            rounds=self._rounds,
            unmeasured_rounds=self._scale.unmeasured_rounds,
            on_step=self._progress.step,
        ):
            self._add(row.title, row.metrics, seen)

    def _measure_start(self) -> None:
        seen: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
        for turn in range(self._rounds):
            for name, launch in SIDES.items():
                self._progress.step(f"start, round {turn + 1} of {self._rounds}, {name}")
                broker = launch(self._processes, self._directory / f"start-{name}-{turn}")
                seen[name].append({START.key: broker.start_s})
                self._processes.stop(broker.process)
        self._add("start", [START], seen)

    def _warm_up(self, brokers: Sequence[Broker]) -> None:
        for broker in brokers:
            self._progress.step(f"warm-up, {broker.name}")
            create_topic(broker, WARM_UP_TOPIC, partitions=PARTITIONS)
            self._clients.produce(broker, WARM_UP_TOPIC, warm_up_load(self._scale))
            delete_topic(broker, WARM_UP_TOPIC)
            broker.wait_until_gone(WARM_UP_TOPIC)

    def _measure_row(self, row: Row, brokers: Sequence[Broker]) -> None:
        """A round that does not count, if the scale has one, then those that do: ours, Kafka, ours, Kafka …"""
        for broker in brokers:
            self._progress.step(f"{row.title}, preparing {broker.name}")
            row.prepare(broker)
        seen: dict[str, list[Mapping[str, float]]] = {broker.name: [] for broker in brokers}
        for turn in range(1 - self._scale.unmeasured_rounds, self._rounds + 1):
            for broker in brokers:
                label = f"round {turn} of {self._rounds}" if turn > 0 else "warm-up"
                self._progress.step(f"{row.title}, {label}, {broker.name}")
                measured = row.measure(broker)
                if turn > 0:
                    seen[broker.name].append(measured)
        for broker in brokers:
            row.finish(broker)
        self._add(row.title, row.metrics, seen)

    def _add(self, title: str, metrics: Sequence[Metric], seen: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
        for figure in figures(title, metrics, seen):
            self._figures.append(figure)
            self._progress.note(report.line(figure))

    def _count_steps(self) -> int:
        rows = len([key for key in self._only if key not in (*PROCESS_ROWS, *CLUSTER_ROWS)])
        cluster = len([key for key in self._only if key in CLUSTER_ROWS])
        starts = 2 * self._rounds if "start" in self._only else 0
        return (
            starts
            + 2 * (self._rounds + 1) * ("groups-load" in self._only)
            + 2 * bool(rows)
            + rows * 2 * (self._rounds + 1 + self._scale.unmeasured_rounds)
            + ("growth" in self._only)
            + steps_of(cluster, rounds=self._rounds, unmeasured_rounds=self._scale.unmeasured_rounds)
        )
