"""The load: Kafka's own Java tools, and our small Java program where no tool fits, as functions that return figures."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from . import peer
from .payloads import payload_file
from .processes import Processes, ToolFailedError

TOOL_LIMIT_S: Final = 600.0
ADMIN_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.2
BENCH_CLIENT: Final = str(Path(__file__).parent / "java" / "BenchClient.java")
CONSUMED_RECORDS: Final = 4  # a column of the line that ConsumerPerformance prints
FETCH_RATE: Final = 8
MIB: Final = 1 << 20
STEADY_STATE: Final = re.compile(r"steady state records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\)")

OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ProduceLoad:
    """What ProducerPerformance is asked to send; its first `warm_up` records do not count."""

    records: int
    record_bytes: int
    batch_bytes: int
    acks: str
    warm_up: int

    @property
    def total_bytes(self) -> int:
        return self.records * self.record_bytes


@dataclass(frozen=True, slots=True)
class ConsumeLoad:
    """Read every partition from beginning to end, `passes` times after `warm_ups` passes that do not count."""

    warm_ups: int
    passes: int
    consumers: int


@dataclass(frozen=True, slots=True)
class LatencyLoad:
    """`fetch_wait_ms=0` is what EndToEndLatency does: no fetch ever waits at the broker."""

    warm_up: int
    records: int
    fetch_wait_ms: int
    record_bytes: int = 100
    acks: str = "all"


class Reachable(Protocol):
    """A broker, or a cluster of them."""

    @property
    def name(self) -> str: ...
    @property
    def bootstrap(self) -> str: ...


class Clients:
    """Runs tools against a broker, one at a time, and hands their output lines to `on_line`."""

    def __init__(self, processes: Processes, directory: Path, on_line: OnLine) -> None:
        self._processes = processes
        self._directory = directory
        self._on_line = on_line

    def produce(self, broker: Reachable, topic: str, load: ProduceLoad) -> float:
        """Run ProducerPerformance; return its steady rate in MB (10⁶ bytes) a second."""
        payloads = str(payload_file(self._directory, load.record_bytes))
        arguments = ["--topic", topic, "--num-records", str(load.records), "--payload-file", payloads]
        arguments += ["--throughput", "-1", "--warmup-records", str(load.warm_up), "--reporting-interval", "1000"]
        arguments += ["--bootstrap-server", broker.bootstrap, "--command-property"]
        arguments += [f"acks={load.acks}", f"batch.size={load.batch_bytes}"]
        lines = self._run("org.apache.kafka.tools.ProducerPerformance", arguments)
        found = [match for line in lines if (match := STEADY_STATE.search(line))]
        if not found:
            raise ToolFailedError("ProducerPerformance printed no steady state:\n" + "\n".join(lines[-5:]))
        return float(found[-1][1]) * load.record_bytes / 1e6

    def consume(self, broker: Reachable, topic: str, load: ConsumeLoad) -> tuple[float, int]:
        """Read the whole topic again and again; return MB a second of the counted passes, and the bytes of one pass."""
        sizes = (load.warm_ups, load.passes, load.consumers)
        figures = self._own("consume", broker.bootstrap, topic, *map(str, sizes))
        return figures["bytes"] * load.passes / 1e6 / figures["seconds"], int(figures["bytes"])

    def consume_by_tool(self, broker: Reachable, topic: str, group: str, *, records: int) -> float:
        """Run ConsumerPerformance; return its rate in MB (10⁶ bytes) a second, once it has its partitions."""
        arguments = ["--topic", topic, "--group", group, "--num-records", str(records), "--hide-header"]
        arguments += ["--bootstrap-server", broker.bootstrap]
        fields = self._run("org.apache.kafka.tools.ConsumerPerformance", arguments)[-1].split(", ")
        read = int(fields[CONSUMED_RECORDS])
        if read < records:
            raise ToolFailedError(f"ConsumerPerformance read {read:,} of {records:,} records of {broker.name}")
        return float(fields[FETCH_RATE]) * MIB / 1e6

    def latency(self, broker: Reachable, topic: str, load: LatencyLoad) -> dict[str, float]:
        sizes = (load.warm_up, load.records, load.record_bytes)
        return self._own("latency", broker.bootstrap, topic, *map(str, sizes), load.acks, str(load.fetch_wait_ms))

    def _own(self, *arguments: str) -> dict[str, float]:
        lines = self._run(BENCH_CLIENT, list(arguments))
        figures: dict[str, float] = json.loads(lines[-1])
        return figures

    def _run(self, main: str, arguments: list[str]) -> list[str]:
        lines: list[str] = []
        name = Path(main).suffix.strip(".")
        for line in self._processes.lines_of(peer.java_command(main, arguments), name=name, limit_s=TOOL_LIMIT_S):
            self._on_line(line)
            lines.append(line)
        return lines


def create_topic(broker: Reachable, topic: str, *, partitions: int, replicas: int = 1) -> None:
    """Create it and wait until every partition can be used: Kafka answers before its partitions exist."""
    admin = _admin(broker)
    futures = admin.create_topics([NewTopic(topic, partitions, replicas)], operation_timeout=ADMIN_TIMEOUT_S)
    futures[topic].result(ADMIN_TIMEOUT_S)
    end_offsets(broker, topic, partitions=partitions)


def end_offsets(broker: Reachable, topic: str, *, partitions: int) -> int:
    """The sum of the partitions' end offsets: the number of records in a topic from which none was deleted."""
    latest = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    admin = _admin(broker)
    deadline = time.monotonic() + ADMIN_TIMEOUT_S
    while True:
        futures = admin.list_offsets(latest, request_timeout=ADMIN_TIMEOUT_S)
        try:
            return sum(future.result(ADMIN_TIMEOUT_S).offset for future in futures.values())
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise ToolFailedError(f"{broker.name} has no leaders for {topic}: {error}") from error
        admin.poll(POLL_S)


def delete_topic(broker: Reachable, topic: str) -> None:
    admin = _admin(broker)
    try:
        admin.delete_topics([topic], operation_timeout=ADMIN_TIMEOUT_S)[topic].result(ADMIN_TIMEOUT_S)
    except KafkaException as error:
        raise ToolFailedError(f"{broker.name} did not delete {topic}: {error}") from error


def _admin(broker: Reachable) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
