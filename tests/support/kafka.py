"""Apache Kafka in a process of its own, where a test can have either broker: the judge of our tests."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks import brokers, peer, raw

from support.waiting import eventually

START_TIMEOUT_S = 60.0


class KafkaProcess:
    """One broker that is its own controller. It can be stopped, and started again on its data."""

    def __init__(self, data: Path, settings: Mapping[str, object]) -> None:
        self._port = brokers.free_port()
        self._file = data / "server.properties"
        self._log = data / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None
        data.mkdir(parents=True, exist_ok=True)
        controller_port = brokers.free_port()
        fixed = brokers.KAFKA_SETTINGS.format(node_id=1, port=self._port, controller_port=controller_port, data=data)
        self._file.write_text(fixed + "".join(f"{name}={value}\n" for name, value in settings.items()))
        arguments = ["format", "-t", brokers.KAFKA_CLUSTER_ID, "-c", str(self._file)]
        command = peer.java_command("kafka.tools.StorageTool", arguments, flags=peer.SHORT_LIVED_FLAGS)
        subprocess.run(command, check=True, capture_output=True, timeout=START_TIMEOUT_S)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        flags, heap = peer.SHORT_LIVED_FLAGS, ("-Xmx512M", "-Xms256M")
        command = peer.java_command("kafka.Kafka", [str(self._file)], flags=flags, heap=heap)
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._process = process
        eventually(
            lambda: process.poll() is not None or self._answers(),
            within_s=START_TIMEOUT_S,
            what="the start of Apache Kafka",
        )
        assert process.poll() is None, self._log.read_text()[-2_000:]

    def _answers(self) -> bool:
        try:
            with raw.RawConnection(self._port, timeout_s=5.0) as connection:
                return raw.broker_count(connection.ask(raw.metadata_frame())) > 0
        except (OSError, raw.RawError):
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(START_TIMEOUT_S)
            finally:
                self.kill()

    def kill(self) -> None:
        """kill -9"""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
