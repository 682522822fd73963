"""The two brokers as processes: how each is started, when it answers, what it costs.

Both get the same settings, a data directory of their own and a free port. Kafka gets the heap and the flags of its own
start script, and no log appender.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import psutil

from . import peer, raw
from .processes import Processes, ToolFailedError

START_LIMIT_S: Final = 60.0
POLL_S: Final = 0.002
DELETE_LIMIT_S: Final = 120.0
DELETE_POLL_S: Final = 0.1

# The same on both sides. Anything else is each broker's default.
SETTINGS: Final[Mapping[str, str]] = {
    "num.partitions": "4",
    # A coordinator's deliberate waits say nothing about its speed.
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    # By default Kafka keeps deleted files for a minute, and would then remove gigabytes while something is measured:
    # with rounds of ten seconds, perhaps always the same broker.
    "log.segment.delete.delay.ms": "1000",
}

KAFKA_SETTINGS: Final = """process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={node_id}@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
KAFKA_CLUSTER_ID: Final = "Y29yZHdvb2QtYmVuY2gtMQ"


class StartError(Exception):
    """A broker ended, or did not answer in time."""


@dataclass(slots=True)
class Broker:
    """A running broker. Its partitions are in `logs`; `start_s` is the time until its first Metadata answer."""

    name: str
    port: int
    logs: Path
    process: subprocess.Popen[bytes]
    start_s: float

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        """User and system time of the process and all its children so far."""
        return sum(_cpu_s(process) for process in self._family())

    def written_bytes(self) -> int:
        """What the process has written so far, to files and sockets. Linux counts that."""
        return sum(int(process.io_counters().write_chars) for process in self._family())

    def rss_bytes(self) -> int:
        return sum(int(process.memory_info().rss) for process in self._family())

    def wait_until_gone(self, topic: str) -> None:
        """Wait until the files of a deleted topic are gone, so that the next measurement does not pay for that."""
        deadline = time.monotonic() + DELETE_LIMIT_S
        while any(name.startswith(f"{topic}-") for name in os.listdir(self.logs)):
            if _ends_within(self.process, DELETE_POLL_S) or time.monotonic() > deadline:
                raise ToolFailedError(f"{self.name} still has files of {topic}, which was deleted")

    def _family(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]


class Launch(Protocol):
    """Starts a broker with its files in `data`. `{port}` in the value of a setting stands for the chosen port."""

    def __call__(self, processes: Processes, data: Path, settings: Mapping[str, str] = SETTINGS) -> Broker: ...


def launch_cordwood(processes: Processes, data: Path, settings: Mapping[str, str] = SETTINGS) -> Broker:
    port = free_port()
    command = [sys.executable, "-m", "cordwood", "serve", "--data", str(data)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value.format(port=port)}"]
    return _start(processes, "cordwood", command, port, logs=data)


def launch_kafka(processes: Processes, data: Path, settings: Mapping[str, str] = SETTINGS) -> Broker:
    port, controller_port = free_port(), free_port()
    properties = data / "server.properties"
    data.mkdir(parents=True, exist_ok=True)
    node_id = settings.get("node.id", "1")
    text = KAFKA_SETTINGS.format(node_id=node_id, port=port, controller_port=controller_port, data=data)
    properties.write_text(text + "".join(f"{name}={value.format(port=port)}\n" for name, value in settings.items()))
    arguments = ["format", "-t", KAFKA_CLUSTER_ID, "-c", str(properties), "--ignore-formatted"]
    for _ in processes.lines_of(peer.java_command("kafka.tools.StorageTool", arguments), name="format", limit_s=60):
        pass
    command = peer.java_command("kafka.Kafka", [str(properties)], heap=("-Xmx1G", "-Xms1G"))
    return _start(processes, "kafka", command, port, logs=data / "logs")


# Ours first: the order of every round and of every table.
SIDES: Final[Mapping[str, Launch]] = {"cordwood": launch_cordwood, "kafka": launch_kafka}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(processes: Processes, name: str, command: list[str], port: int, *, logs: Path) -> Broker:
    begin = time.perf_counter()
    process = processes.start(command, name=name)
    while not _answers(port):
        if time.perf_counter() - begin > START_LIMIT_S:
            raise StartError(f"{name} did not answer within {START_LIMIT_S:.0f} s")
        if _ends_within(process, POLL_S):
            raise StartError(f"{name} ended before it answered:\n{processes.last_words(process)}")
    return Broker(name=name, port=port, logs=logs, process=process, start_s=time.perf_counter() - begin)


def _answers(port: int) -> bool:
    """Whether the broker answers Metadata and lists itself in the answer."""
    try:
        with raw.RawConnection(port, timeout_s=5.0) as connection:
            return raw.broker_count(connection.ask(raw.metadata_frame())) > 0
    except (OSError, raw.RawError):
        return False


def _ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
