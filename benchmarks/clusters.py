"""Three brokers as a cluster, ours or Kafka's: started and measured together, killed and restarted one by one.

Kafka's are combined nodes (each is broker and controller), each with the heap of its start script. Ours share one
ZooKeeper, which is counted separately: Kafka's controllers live inside its brokers.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from cordwood.run.zookeeper_server import ZooKeeperServer

from . import peer, raw
from .brokers import KAFKA_CLUSTER_ID, SETTINGS, StartError, free_port
from .processes import Processes

BROKERS: Final = (1, 2, 3)
REPLICAS: Final = 3
START_LIMIT_S: Final = 120.0
POLL_S: Final = 0.02
CLUSTER_SETTINGS: Final[Mapping[str, str]] = {
    **SETTINGS,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
}

KAFKA_NODE: Final = """process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}/logs
"""


@dataclass(slots=True)
class Member:
    """One broker of a cluster, and how to start it again."""

    node_id: int
    port: int
    command: Sequence[str]
    process: subprocess.Popen[bytes]


@dataclass(slots=True)
class BrokerCluster:
    """A running cluster. ``keeper`` is the ZooKeeper, where there is one."""

    name: str
    processes: Processes
    members: dict[int, Member]
    keeper: ZooKeeperServer | None = None
    start_s: float = 0.0
    _ended_cpu_s: float = field(default=0.0)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{member.port}" for member in self.members.values())

    def cpu_s(self) -> float:
        """User and system time of all brokers so far, including those that have ended."""
        return self._ended_cpu_s + sum(_cpu_s(member.process.pid) for member in self._running())

    def rss_bytes(self) -> int:
        return sum(_rss_bytes(member.process.pid) for member in self._running())

    def keeper_cpu_s(self) -> float:
        return 0.0 if self.keeper is None else _cpu_s(self.keeper.pid)

    def keeper_rss_bytes(self) -> int:
        return 0 if self.keeper is None else _rss_bytes(self.keeper.pid)

    def written_bytes(self) -> int:
        """What all brokers have written so far, to files and sockets. Linux counts that."""
        return sum(int(p.io_counters().write_chars) for m in self._running() for p in _family(m.process.pid))

    def kill(self, node_id: int) -> float:
        """kill -9; return when, by the monotonic clock."""
        member = self.members[node_id]
        self._ended_cpu_s += _cpu_s(member.process.pid)
        at_s = time.monotonic()
        member.process.kill()
        self.processes.stop(member.process)
        return at_s

    def stop(self, node_id: int) -> None:
        member = self.members[node_id]
        self._ended_cpu_s += _cpu_s(member.process.pid)
        self.processes.stop(member.process)

    def start(self, node_id: int) -> None:
        """Start a broker again on its data, and return at once."""
        member = self.members[node_id]
        member.process = self.processes.start(member.command, name=f"{self.name}-{node_id}")

    def close(self) -> None:
        for member in self._running():
            self.processes.stop(member.process)
        if self.keeper is not None:
            self.keeper.stop()

    def _running(self) -> list[Member]:
        return [member for member in self.members.values() if member.process.poll() is None]


LaunchCluster = Callable[[Processes, Path], BrokerCluster]


def launch_cordwood_cluster(processes: Processes, data: Path) -> BrokerCluster:
    keeper = ZooKeeperServer(data / "zookeeper", on_line=_nobody_listens).start()
    ports = {node_id: free_port() for node_id in BROKERS}
    commands = {}
    for node_id, port in ports.items():
        command = [sys.executable, "-m", "cordwood", "serve", "--data", str(data / f"broker-{node_id}")]
        command += ["--host", "127.0.0.1", "--port", str(port), "--node-id", str(node_id)]
        command += ["--zookeeper", f"{keeper.connect}/bench"]
        for name, value in CLUSTER_SETTINGS.items():
            command += ["--set", f"{name}={value}"]
        commands[node_id] = command
    try:
        return _start(processes, "cordwood", ports, commands, keeper=keeper)
    except BaseException:
        keeper.kill()
        raise


def _nobody_listens(line: str) -> None:
    """Drop what ZooKeeper prints."""


def launch_kafka_cluster(processes: Processes, data: Path) -> BrokerCluster:
    ports = {node_id: (free_port(), free_port()) for node_id in BROKERS}
    voters = ",".join(f"{node_id}@127.0.0.1:{controller}" for node_id, (_, controller) in ports.items())
    commands = {}
    for node_id, (port, controller_port) in ports.items():
        directory = data / f"broker-{node_id}"
        directory.mkdir(parents=True, exist_ok=True)
        fixed = KAFKA_NODE.format(
            node_id=node_id, voters=voters, port=port, controller_port=controller_port, data=directory
        )
        file = directory / "server.properties"
        file.write_text(fixed + "".join(f"{name}={value}\n" for name, value in CLUSTER_SETTINGS.items()))
        arguments = ["format", "-t", KAFKA_CLUSTER_ID, "-c", str(file), "--ignore-formatted"]
        formatting = peer.java_command("kafka.tools.StorageTool", arguments, flags=peer.SHORT_LIVED_FLAGS)
        for _ in processes.lines_of(formatting, name="format", limit_s=60):
            pass
        commands[node_id] = peer.java_command("kafka.Kafka", [str(file)], heap=("-Xmx1G", "-Xms1G"))
    return _start(processes, "kafka", {n: p for n, (p, _) in ports.items()}, commands, keeper=None)


# Ours first: the order of every round and of every table.
CLUSTERS: Final[Mapping[str, LaunchCluster]] = {"cordwood": launch_cordwood_cluster, "kafka": launch_kafka_cluster}


def _start(
    processes: Processes,
    name: str,
    ports: Mapping[int, int],
    commands: Mapping[int, Sequence[str]],
    *,
    keeper: ZooKeeperServer | None,
) -> BrokerCluster:
    begin = time.perf_counter()
    members = {
        n: Member(n, ports[n], command, processes.start(command, name=f"{name}-{n}")) for n, command in commands.items()
    }
    cluster = BrokerCluster(name, processes, members, keeper)
    for member in members.values():
        while not answers(member.port, brokers=len(members)):
            if time.perf_counter() - begin > START_LIMIT_S:
                raise StartError(f"{name}'s brokers did not find each other within {START_LIMIT_S:.0f} s")
            if _ends_within(member.process, POLL_S):
                raise StartError(f"{name}'s broker {member.node_id} ended:\n{processes.last_words(member.process)}")
    cluster.start_s = time.perf_counter() - begin
    return cluster


def answers(port: int, *, brokers: int) -> bool:
    """Whether this broker answers Metadata, and knows this many brokers."""
    try:
        with raw.RawConnection(port, timeout_s=5.0) as connection:
            return raw.broker_count(connection.ask(raw.metadata_frame())) == brokers
    except (OSError, raw.RawError):
        return False


def _ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _family(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def _cpu_s(pid: int) -> float:
    times = [one.cpu_times() for one in _family(pid)]
    return float(sum(time.user + time.system for time in times))


def _rss_bytes(pid: int) -> int:
    return sum(int(one.memory_info().rss) for one in _family(pid))
