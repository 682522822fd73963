"""``cordwood zookeeper``: the real ZooKeeper, from PySpark's wheel, for a cluster on this machine."""

import argparse
import signal
import sys
import threading
import time
from pathlib import Path

from cordwood.errors import StorageError
from cordwood.run.zookeeper_server import Ensemble

from .options import port_or_any, positive

HOST = "127.0.0.1"
PORT = 2181
DATA = "zookeeper-data"
WATCH_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "It needs Java 17 or newer, and PySpark, whose wheel contains ZooKeeper. Any other ZooKeeper from 3.6 on will "
        "do as well. Without --host only this machine can connect. SIGTERM or Ctrl-C ends it."
    )
    parser.add_argument("--port", type=port_or_any, default=PORT, help=f"the port, 0 for any; default: {PORT}")
    parser.add_argument("--host", default=HOST, help=f"the address to listen on; default: {HOST}")
    parser.add_argument("--data", metavar="DIR", default=DATA, help=f"the directory of its data; default: ./{DATA}")
    parser.add_argument("--ensemble", metavar="N", type=positive, default=1, help="run N servers, on consecutive ports")


def run(arguments: argparse.Namespace) -> int:
    start_s = time.monotonic()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ensemble = Ensemble(
        Path(arguments.data).absolute(),
        size=arguments.ensemble,
        port=arguments.port,
        host=arguments.host,
        on_line=_print_line if arguments.ensemble > 1 else lambda _, line: print(line, file=sys.stderr),
    )
    with ensemble:
        took_s = time.monotonic() - start_s
        print(f"ZooKeeper is ready at {ensemble.connect}, data in {arguments.data} ({took_s:.2f} s)", flush=True)
        _watch(ensemble, ended)
    return 0


def _watch(ensemble: Ensemble, ended: threading.Event) -> None:
    """Wait for the end. A server that ends by itself is reported; when the last one ends, so does the command."""
    alive = list(ensemble.servers)
    while not ended.wait(WATCH_S):
        for server in [server for server in alive if not server.running]:
            alive.remove(server)
            if not alive:
                raise StorageError(f"ZooKeeper ended; its data is in {server.data}")
            _print_line(server.number, "has ended")


def _print_line(number: int, line: str) -> None:
    print(f"zookeeper-{number} | {line}", file=sys.stderr, flush=True)
