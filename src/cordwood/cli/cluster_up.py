"""``cordwood cluster up``: a ZooKeeper and some brokers on this machine, each in its own process, until a signal comes.

Log lines go to standard error, each prefixed with the name of its process. A process that ends by itself is reported;
the cluster goes on as long as its ZooKeeper and one broker do.
"""

import argparse
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from cordwood.errors import ConfigError, StorageError
from cordwood.run.children import die_with_parent
from cordwood.run.zookeeper_server import ZooKeeperServer

from .options import PORT_MAX, pairs, port, positive

HOST = "127.0.0.1"
PORT = 9092
DATA = "cordwood-cluster"
BROKERS_MAX = 100
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
LOOK_S = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Broker 1 listens on --port, the others on the ports after it. Started again with the same --data, the cluster "
        "comes back with everything it had. SIGTERM or Ctrl-C ends it; a second one ends it without waiting. ZooKeeper "
        "needs Java 17."
    )
    parser.add_argument("--brokers", type=positive, default=3, metavar="N", help="how many; default: 3")
    parser.add_argument("--data", default=DATA, metavar="DIR", help=f"the directory of all data; default: ./{DATA}")
    parser.add_argument("--port", type=port, default=PORT, help=f"the first broker's port; default: {PORT}")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of all brokers; may be repeated"
    )
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="warning")
    parser.set_defaults(act=run)


def run(arguments: argparse.Namespace) -> int:
    pairs("--set", arguments.set)  # report bad arguments before anything starts
    if arguments.brokers > BROKERS_MAX or arguments.port + arguments.brokers > PORT_MAX + 1:
        raise ConfigError(
            f"--brokers {arguments.brokers} from --port {arguments.port} on are too many; "
            f"there can be {BROKERS_MAX}, and ports end at {PORT_MAX}"
        )
    start_s = time.monotonic()
    ending = threading.Event()
    with _ended_by_signals(ending):
        up = Up(arguments, ending)
        try:
            up.start()
            print(f"cluster is ready at {up.bootstrap}, data in {arguments.data} ({time.monotonic() - start_s:.1f} s)")
            sys.stdout.flush()
            return up.watch()
        except _Interrupted:
            return 0
        finally:
            up.stop()


class _Interrupted(Exception):
    """A signal came while the cluster was starting."""


class Up:
    """The processes of one cluster."""

    def __init__(self, arguments: argparse.Namespace, ending: threading.Event) -> None:
        self._ending = ending
        self._say = _Voice()
        data = Path(arguments.data).absolute()
        names = range(1, arguments.brokers + 1)
        width = len(f"broker {arguments.brokers}")
        self._keeper = ZooKeeperServer(data / "zookeeper", on_line=self._say.prefixed("zookeeper".ljust(width)))
        self.brokers = [
            Child(
                f"broker {number}",
                _broker_command(arguments, number, data / f"broker-{number}", self._keeper.connect),
                self._say.prefixed(f"broker {number}".ljust(max(width, len("zookeeper")))),
            )
            for number in names
        ]
        self.bootstrap = ",".join(f"{HOST}:{arguments.port + number - 1}" for number in names)

    def start(self) -> None:
        """Start everything; return when every broker has said that it is ready."""
        self._keeper.start()
        for broker in self.brokers:
            broker.start()
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        for broker in self.brokers:
            while not broker.ready.wait(LOOK_S):
                if self._ending.is_set():
                    raise _Interrupted
                if broker.status is not None:
                    raise StorageError(f"{broker.name} did not start: {_how(broker.status)}; what it said is above")
                if time.monotonic() > deadline_s:
                    raise StorageError(f"{broker.name} is not ready after {READY_TIMEOUT_S:.0f} s")

    def watch(self) -> int:
        """Wait for a signal, and report processes that end meanwhile. Returns the exit status."""
        alive = list(self.brokers)
        while not self._ending.wait(LOOK_S):
            for broker in [one for one in alive if one.status is not None]:
                alive.remove(broker)
                assert broker.status is not None
                self._say(
                    f"cordwood: {broker.name} {_how(broker.status)}; {len(alive)} of {len(self.brokers)} are left"
                )
            if not alive or not self._keeper.running:
                gone = "no broker is left" if not alive else "ZooKeeper is gone"
                self._say(f"cordwood: {gone}, the cluster ends")
                return 1
        return 0

    def stop(self) -> None:
        """Stop the brokers first: they have to tell ZooKeeper that they leave."""
        self._ending.clear()
        for broker in self.brokers:
            broker.terminate()
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while any(broker.running for broker in self.brokers):
            if self._ending.wait(LOOK_S) or time.monotonic() > deadline_s:
                break
        for broker in self.brokers:
            broker.end()
        self._keeper.stop()


class Child:
    """A broker's process. ``ready`` is set when it says so; everything else that it says is passed on."""

    def __init__(self, name: str, command: Sequence[str], on_line: Callable[[str], None]) -> None:
        self.name = name
        self.ready = threading.Event()
        self._command = command
        self._on_line = on_line
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []

    @property
    def status(self) -> int | None:
        """The exit status as ``Popen`` has it; None as long as it runs, or if it was never started."""
        return None if self._process is None else self._process.poll()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,  # Ctrl-C is for us: we end our children in good order
            preexec_fn=die_with_parent(),
        )
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_output, self._read_log)]
        for reader in self._readers:
            reader.start()

    def terminate(self) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """End the process; afterwards it is gone, and all its output has been read."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _read_output(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if re.match(r"broker \d+ is ready ", line):
                self.ready.set()
            else:
                self._on_line(line.rstrip("\n"))

    def _read_log(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._on_line(line.rstrip("\n"))


class _Voice:
    """Standard error, shared by several threads: whole lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        with self._lock:
            print(line, file=sys.stderr, flush=True)

    def prefixed(self, name: str) -> Callable[[str], None]:
        return lambda line: self(f"{name} | {line}")


@contextmanager
def _ended_by_signals(ending: threading.Event) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        ending.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _broker_command(arguments: argparse.Namespace, number: int, data: Path, zookeeper: str) -> list[str]:
    command = [sys.executable, "-m", "cordwood", "serve", "--node-id", str(number), "--data", str(data)]
    command += ["--host", HOST, "--port", str(arguments.port + number - 1), "--zookeeper", zookeeper]
    command += ["--log-level", arguments.log_level]
    for setting in _defaults(arguments.brokers) + arguments.set:
        command += ["--set", setting]
    return command


def _defaults(brokers: int) -> list[str]:
    """Defaults that let a topic of this cluster survive the loss of a broker, if there are enough brokers."""
    copies = min(brokers, 3)
    enough = 2 if copies > 2 else 1
    return [
        f"default.replication.factor={copies}",
        f"offsets.topic.replication.factor={copies}",
        f"min.insync.replicas={enough}",
    ]


def _how(status: int) -> str:
    """An exit status in words.

    >>> _how(1), _how(-9)
    ('ended with status 1', 'was ended by SIGKILL')
    """
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
