"""Apache Kafka's brokers with the face of ours: the same tests, and the same checker, can be tried on them."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks import brokers, clusters, peer

STOP_S = 60.0
TERMINATED = 143
"""How a JVM that was told to end says that it did."""
# What ours get for the tests, in so far as Kafka has it.
SETTINGS: Mapping[str, object] = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "group.initial.rebalance.delay.ms": 0,
    "replica.lag.time.max.ms": 2_000,
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


class KafkaNode:
    """One combined node."""

    def __init__(self, node_id: int, port: int, directory: Path, properties: Path) -> None:
        self.node_id = node_id
        self.bootstrap = f"127.0.0.1:{port}"
        self.data = directory / "logs"
        self._properties = properties
        self._log = directory / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None

    def format(self) -> None:
        arguments = ["format", "-t", brokers.KAFKA_CLUSTER_ID, "-c", str(self._properties), "--ignore-formatted"]
        command = peer.java_command("kafka.tools.StorageTool", arguments, flags=peer.SHORT_LIVED_FLAGS)
        subprocess.run(command, check=True, capture_output=True, timeout=STOP_S)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if not self.data.exists():
            self.format()
        command = peer.java_command("kafka.Kafka", [str(self._properties)], heap=("-Xmx512M", "-Xms256M"))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(STOP_S)
        return 0 if status == TERMINATED else status

    def end(self) -> None:
        if self.running:
            self.kill()

    def last_words(self) -> str:
        return self.all_words()[-2000:]

    def all_words(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


def kafka_nodes(directory: Path, count: int = 3) -> list[KafkaNode]:
    ports = {number: (brokers.free_port(), brokers.free_port()) for number in range(1, count + 1)}
    voters = ",".join(f"{number}@127.0.0.1:{controller}" for number, (_, controller) in ports.items())
    nodes = []
    for number, (port, controller_port) in ports.items():
        home = directory / f"broker-{number}"
        home.mkdir(parents=True)
        file = home / "server.properties"
        fixed = clusters.KAFKA_NODE.format(
            node_id=number, voters=voters, port=port, controller_port=controller_port, data=home
        )
        told = {**SETTINGS, "broker.rack": f"rack-{number}"}
        file.write_text(fixed + "".join(f"{name}={value}\n" for name, value in told.items()))
        nodes.append(KafkaNode(number, port, home, file))
    return nodes
