"""The wires that other tests cut are cut, and only those."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from time import monotonic

import pytest

from cluster.network import CLIENTS, KEEPER, Network
from support.waiting import eventually

SILENCE_S = 0.2

# Dials the port, and passes on what it reads from its standard input and from there.
DIALLER = """
import socket, sys, threading
wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def hear():
    while data := wire.recv(100):
        print(data.decode(), flush=True)
    print("end", flush=True)
threading.Thread(target=hear, daemon=True).start()
for line in sys.stdin:
    wire.sendall(line.strip().encode())
"""


class Echo:
    """Answers what it gets."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with ExitStack() as stack:
            while True:
                try:
                    wire, _ = self._listener.accept()
                except OSError:
                    return
                stack.enter_context(wire)
                threading.Thread(target=self._answer, args=(wire,), daemon=True).start()

    def _answer(self, wire: socket.socket) -> None:
        try:
            while data := wire.recv(100):
                self.heard.append(data)
                wire.sendall(data)
        except OSError:
            return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class Process:
    """A process that dials, as a broker would."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-c", DIALLER, str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        assert self._process.stdout is not None
        self._thread = threading.Thread(target=self.lines.extend, args=(map(str.strip, self._process.stdout),))
        self._thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._thread.join()
        self._process.stdout.close()


@pytest.fixture
def network() -> Iterator[Network]:
    with closing(Network()) as network:
        yield network


@pytest.fixture
def echo() -> Iterator[Echo]:
    with closing(Echo()) as echo:
        yield echo


def dialled(port: int) -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", port))
    wire.settimeout(10)
    return wire


def is_silent(wire: socket.socket) -> bool:
    wire.settimeout(SILENCE_S)
    try:
        wire.recv(100)
    except TimeoutError:
        return True
    finally:
        wire.settimeout(10)
    return False


def test_bytes_pass_both_ways(network: Network, echo: Echo) -> None:
    with dialled(network.to_keeper(1, echo.port)) as wire:
        wire.sendall(b"hello")
        assert wire.recv(100) == b"hello"


def test_what_was_cut_off_arrives_late(network: Network, echo: Echo) -> None:
    with dialled(network.to_keeper(1, echo.port)) as wire:
        network.cut(1, KEEPER)
        wire.sendall(b"hello")
        assert is_silent(wire)
        assert echo.heard == []
        network.mend()
        assert wire.recv(100) == b"hello"


def test_one_way_is_one_way(network: Network, echo: Echo) -> None:
    with dialled(network.to_keeper(1, echo.port)) as wire:
        wire.sendall(b"first")
        assert wire.recv(100) == b"first"
        network.cut_one_way(KEEPER, 1)
        wire.sendall(b"hello")
        eventually(lambda: echo.heard == [b"first", b"hello"])
        assert is_silent(wire)
        network.mend()
        assert wire.recv(100) == b"hello"


def test_other_wires_stay(network: Network, echo: Echo) -> None:
    with dialled(network.to_keeper(1, echo.port)) as cut, dialled(network.to_keeper(2, echo.port)) as whole:
        network.cut(1, KEEPER)
        cut.sendall(b"cut")
        whole.sendall(b"whole")
        assert whole.recv(100) == b"whole"
        assert is_silent(cut)


def test_who_dials_during_a_cut_hears_nothing_until_it_is_mended(network: Network, echo: Echo) -> None:
    port = network.to_keeper(1, echo.port)
    network.cut(1, KEEPER)
    with dialled(port) as wire:
        wire.sendall(b"hello")
        assert is_silent(wire)
        network.mend()
        assert wire.recv(100) == b"hello"


def test_a_process_that_is_gone_refuses(network: Network, echo: Echo) -> None:
    port = network.to_broker(1, echo.port, lambda: None)
    dialled(port).close()
    network.gone(1)
    with pytest.raises(ConnectionRefusedError):
        dialled(port)
    network.back(1)
    with dialled(port) as wire:
        wire.sendall(b"again")
        assert wire.recv(100) == b"again"


def test_brokers_are_told_from_clients_by_their_processes(network: Network, echo: Echo) -> None:
    """Broker 1 is cut off from broker 2; a client, which is this process, is not."""
    pids: dict[int, int] = {}
    port = network.to_broker(2, echo.port, lambda: None)
    network.to_broker(1, echo.port, lambda: pids.get(1))
    network.cut_one_way(1, 2)
    with closing(Process(port)) as broker, dialled(port) as client:
        pids[1] = broker.pid
        client.sendall(b"client")
        assert client.recv(100) == b"client"
        eventually(lambda: len(network._talks) == 2, what="the broker's call")
        broker.send("broker")
        client.sendall(b"again")
        assert client.recv(100) == b"again"
        assert is_silent(client), "while there was time for an answer to the broker"
        assert broker.lines == []
        network.mend()
        eventually(lambda: broker.lines == ["broker"])


def test_clients_can_be_cut_off_too(network: Network, echo: Echo) -> None:
    with dialled(network.to_broker(1, echo.port, lambda: None)) as wire:
        network.cut(CLIENTS, 1)
        wire.sendall(b"hello")
        assert is_silent(wire)


def test_a_slow_wire_is_slow(network: Network, echo: Echo) -> None:
    with dialled(network.to_keeper(1, echo.port)) as wire:
        network.slow(KEEPER, 1, 2 * SILENCE_S)
        sent_s = monotonic()
        wire.sendall(b"hello")
        assert wire.recv(100) == b"hello"
        assert monotonic() - sent_s >= 2 * SILENCE_S


def test_a_connection_that_breaks_is_broken_on_both_sides(network: Network) -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        dialled(network.to_keeper(1, listener.getsockname()[1])) as wire,
    ):
        far, _ = listener.accept()
        far.close()
        assert has_ended(wire)


def has_ended(wire: socket.socket) -> bool:
    try:
        return wire.recv(100) == b""
    except ConnectionResetError:
        return True
