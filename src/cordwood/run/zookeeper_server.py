"""The real ZooKeeper, started from the jars that PySpark's wheel carries: one server, or an ensemble on one machine.

A server is a child process. It ends when its parent ends it, and on Linux also when its parent dies: the system kills
it when the *thread* that started it ends, so start it from a thread that stays. Everything that ZooKeeper has
acknowledged is on its disk: a server that was killed still has it when started again on the same directory.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from cordwood.errors import ConfigError, StorageError
from cordwood.run.children import die_with_parent
from cordwood.run.data_directory import DirectoryLock
from cordwood.run.java import java_command, java_version, missing_java

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# All of Spark's jars would do too, but cost 40 MB and a second at start.
JARS: Final = ("zookeeper", "slf4j-api", "log4j-", "metrics-core", "snappy-java", "netty-", "commons-io")
JAVA_OPTIONS: Final = (
    "-Xms16m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dzookeeper.jmx.log4j.disable=true",
)
TICK_MS: Final = 500
SESSION_MS_MIN: Final = 1_000
SESSION_MS_MAX: Final = 120_000
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 10.0
_PROBE_S: Final = 0.02

Line = Callable[[str], None]


def require_zookeeper() -> None:
    """
    Raises:
        ConfigError: something has to be installed first.
    """
    if (sentence := missing_for_zookeeper()) is not None:
        raise ConfigError(sentence)


def missing_for_zookeeper() -> str | None:
    """What to install before ZooKeeper can run, as a sentence; None if nothing is missing."""
    if _jars() is None:
        return (
            "ZooKeeper comes with PySpark, which is not installed; run: pip install 'cordwood[spark]', or use a "
            "ZooKeeper that runs elsewhere"
        )
    return missing_java(java_version(), wanted_by="ZooKeeper")


class ZooKeeperServer:
    """One server process. With *peers* it is server *number* of an ensemble."""

    def __init__(
        self,
        data: Path,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        number: int = 1,
        peers: Mapping[int, tuple[int, int]] | None = None,
        force_sync: bool = True,
        on_line: Line | None = None,
    ) -> None:
        """
        Args:
            data: its directory, created if it is missing.
            port: where clients connect; 0 takes a free one.
            peers: the ports of every server of the ensemble, including this one: for followers, and for elections.
            force_sync: sync every change to the disk before it is acknowledged. False is only for tests.
            on_line: called with each line that the process writes, from a thread of its own; otherwise lines go to
                stderr.
        """
        self.data = data
        self.host = host
        self.port = port or free_ports(1)[0]
        self.number = number
        self._peers = dict(peers or {})
        self._force_sync = force_sync
        self._on_line = on_line
        self._process: subprocess.Popen[str] | None = None
        self._lock: DirectoryLock | None = None
        self._reader: threading.Thread | None = None

    @property
    def connect(self) -> str:
        """What to tell clients: host and port."""
        return f"{'127.0.0.1' if self.host in ('', '0.0.0.0') else self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start, and return when it is serving.

        Raises:
            ConfigError: something has to be installed first, or the directory or the port is in use.
        """
        require_zookeeper()
        self.launch()
        try:
            self.wait_until_serving()
        except BaseException:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start without waiting."""
        assert not self.running
        self._release()
        self._make_directory()
        self._lock = DirectoryLock(str(self.data), "ZooKeeper")
        self._write_files()
        _require_free(self.host, self.port)
        pipe = None if self._on_line is None else subprocess.PIPE
        self._process = subprocess.Popen(
            self._command(),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if pipe is None else pipe,
            stderr=None if pipe is None else subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,  # Ctrl-C goes to the parent, which ends its children properly
            preexec_fn=die_with_parent(),
        )
        if pipe is not None:
            self._reader = threading.Thread(target=self._read_lines, name="cordwood-zookeeper-lines", daemon=True)
            self._reader.start()

    def wait_until_serving(self, timeout_s: float = START_TIMEOUT_S) -> None:
        pause = threading.Event()
        deadline_s = time.monotonic() + timeout_s
        while not self.serving():
            if not self.running:
                raise StorageError(f"ZooKeeper ended at once; its data is in {self.data}")
            if time.monotonic() > deadline_s:
                raise StorageError(f"ZooKeeper at {self.connect} does not serve after {timeout_s:.0f} s")
            pause.wait(_PROBE_S)

    def serving(self) -> bool:
        """Does it serve requests? In an ensemble, that takes more than half of the servers."""
        return "Mode: " in self.command("srvr")

    def command(self, word: str) -> str:
        """Its answer to one of the four-letter words; empty if it does not listen."""
        try:
            with socket.create_connection((self.connect.rsplit(":", 1)[0], self.port), timeout=1.0) as sock:
                sock.sendall(word.encode())
                return b"".join(iter(lambda: sock.recv(65536), b"")).decode(errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """End it properly; its port is free afterwards."""
        self.terminate()
        self.wait()

    def terminate(self) -> None:
        """Ask it to end, without waiting."""
        if self.running:
            self._send(signal.SIGCONT)
            self._send(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9"""
        self._send(signal.SIGKILL)
        self.wait()

    def pause(self) -> None:
        """Stop it as if its machine hung: connections stay, answers do not come."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def wait(self) -> None:
        """Return when it is gone; kill it if it takes too long."""
        if self._process is not None:
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._reader is not None:
                self._reader.join(STOP_TIMEOUT_S)
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._release()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _read_lines(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._on_line is not None
        for line in self._process.stdout:
            self._on_line(line.rstrip("\n"))

    def _command(self) -> list[str]:
        java, jars = java_command(), _jars()
        assert java is not None
        assert jars is not None
        sync = () if self._force_sync else ("-Dzookeeper.forceSync=no",)
        logging = f"-Dlog4j2.configurationFile={self.data / 'log4j2.properties'}"
        return [java, *JAVA_OPTIONS, *sync, logging, "-cp", jars, MAIN, str(self.data / "zoo.cfg")]

    def _make_directory(self) -> None:
        with self._writing():
            (self.data / "data").mkdir(parents=True, exist_ok=True)

    def _write_files(self) -> None:
        with self._writing():
            (self.data / "zoo.cfg").write_text(self._configuration())
            (self.data / "log4j2.properties").write_text(LOGGING)
            (self.data / "data" / "myid").write_text(f"{self.number}\n")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(
                f"ZooKeeper's directory {self.data} cannot be written to: {error.strerror}; choose another --data"
            ) from None

    def _configuration(self) -> str:
        lines = [
            f"tickTime={TICK_MS}",
            f"minSessionTimeout={SESSION_MS_MIN}",
            f"maxSessionTimeout={SESSION_MS_MAX}",
            "initLimit=20",
            "syncLimit=6",
            f"dataDir={self.data / 'data'}",
            f"clientPortAddress={self.host or '0.0.0.0'}",
            f"clientPort={self.port}",
            "maxClientCnxns=0",
            "preAllocSize=4096",
            "autopurge.snapRetainCount=3",
            "autopurge.purgeInterval=1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=ruok,srvr,stat",
        ]
        lines += [f"server.{number}=127.0.0.1:{ports[0]}:{ports[1]}" for number, ports in sorted(self._peers.items())]
        return "\n".join(lines) + "\n"


LOGGING: Final = """\
# It complains about those who ask too early whether it serves.
logger.questions.name=org.apache.zookeeper.server.ServerCnxn
logger.questions.level=off
rootLogger.level=error
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p zookeeper %m %ex{short.message}%n
"""


class Ensemble:
    """Several servers on this machine that hold the same data: the ensemble works while more than half of them do."""

    def __init__(
        self,
        data: Path,
        *,
        size: int = 3,
        port: int = 0,
        host: str = "127.0.0.1",
        force_sync: bool = True,
        on_line: Callable[[int, str], None] | None = None,
    ) -> None:
        """
        Args:
            port: where clients connect to the first server; the others have the ports after it. 0 takes free ones.
            on_line: called with the number of the server, from 1 on, and each line that it writes.
        """
        assert size >= 1
        clients = [port + offset for offset in range(size)] if port else free_ports(size)
        inner = free_ports(2 * size)
        peers = {number: (inner[2 * number - 2], inner[2 * number - 1]) for number in range(1, size + 1)}
        self.servers = [
            ZooKeeperServer(
                data / str(number),
                port=clients[number - 1],
                host=host,
                number=number,
                peers=peers if size > 1 else None,
                force_sync=force_sync,
                on_line=None if on_line is None else _numbered(on_line, number),
            )
            for number in peers
        ]

    @property
    def connect(self) -> str:
        return ",".join(server.connect for server in self.servers)

    def start(self) -> Self:
        """Start all servers, and return when all are serving."""
        require_zookeeper()
        try:
            for server in self.servers:
                server.launch()
            for server in self.servers:
                server.wait_until_serving()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.wait()

    def kill(self) -> None:
        for server in self.servers:
            server.kill()

    def leader(self) -> ZooKeeperServer | None:
        """The server that leads the others now; None while there is none."""
        for server in self.servers:
            if server.running and "Mode: leader" in server.command("srvr"):
                return server
        return None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_ports(count: int) -> list[int]:
    """Ports of this machine that are free at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def _numbered(on_line: Callable[[int, str], None], number: int) -> Line:
    return lambda line: on_line(number, line)


def _require_free(host: str, port: int) -> None:
    """Refuse a port that is in use: ZooKeeper itself would report it in a page of Java."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None


def _jars() -> str | None:
    """The class path; None if there is no PySpark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    directory = Path(spec.submodule_search_locations[0]) / "jars"
    found = [str(path) for name in JARS for path in sorted(directory.glob(f"{name}*.jar"))]
    return os.pathsep.join(found) if any("zookeeper-" in path for path in found) else None
