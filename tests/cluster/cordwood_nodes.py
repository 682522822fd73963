"""Our brokers as processes of a cluster, with short timeouts, over plain wires or over such as can be cut."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster.network import Network
from cordwood.run.zookeeper_server import free_ports
from support.process import BrokerProcess

SESSION_TIMEOUT_MS = 3_000
REPLICA_LAG_MS = 2_000

SETTINGS: Mapping[str, object] = {
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    "zookeeper.connection.timeout.ms": 20_000,
    "replica.lag.time.max.ms": REPLICA_LAG_MS,
    "replica.socket.timeout.ms": 2_000,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


class CordwoodNode:
    """One broker, in a rack of its own, on ports of its own that stay the same."""

    def __init__(
        self,
        node_id: int,
        directory: Path,
        *,
        keepers: Iterable[int],
        chroot: str,
        port: int,
        network: Network | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.node_id = node_id
        self.data = directory
        self._network = network
        told = {**SETTINGS, "broker.rack": f"rack-{node_id}", **(settings or {})}
        doors, shown = list(keepers), port
        if network is not None:
            doors = [network.to_keeper(node_id, keeper) for keeper in doors]
            shown = network.to_broker(node_id, port, self._pid_if_running)
            told["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{shown}"
        self.bootstrap = f"127.0.0.1:{shown}"
        zookeeper = ",".join(f"127.0.0.1:{door}" for door in doors) + chroot
        self._process = BrokerProcess(
            directory, settings=told, arguments=["--node-id", str(node_id), "--zookeeper", zookeeper], port=port
        )

    @property
    def pid(self) -> int:
        return self._process.process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    def _pid_if_running(self) -> int | None:
        return self.pid if self.running else None

    def start(self) -> None:
        assert not self.running
        if self._network is not None:
            self._network.back(self.node_id)
        self._process.launch()

    def kill(self) -> None:
        self._gone()
        self._process.kill()

    def stop(self) -> int:
        status = self._process.stop()
        self._gone()
        return status

    def end(self) -> None:
        self._gone()
        self._process.end()

    def _gone(self) -> None:
        if self._network is not None:
            self._network.gone(self.node_id)

    def last_words(self) -> str:
        return "\n".join(self._process.log[-60:])

    def all_words(self) -> str:
        return self._process.log_text()


def cordwood_nodes(
    directory: Path,
    *,
    keepers: Iterable[int],
    chroot: str,
    count: int = 3,
    network: Network | None = None,
    settings: Mapping[str, object] | None = None,
) -> list[CordwoodNode]:
    """Brokers 1, 2, 3 … of one cluster, which is kept under *chroot* by ZooKeepers on these ports."""
    doors = list(keepers)
    return [
        CordwoodNode(
            number,
            directory / f"broker-{number}",
            keepers=doors,
            chroot=chroot,
            port=port,
            network=network,
            settings=settings,
        )
        for number, port in enumerate(free_ports(count), 1)
    ]
