"""``cordwood cluster up``: a cluster of processes from its first line to its last."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("java")]

START_S = 60.0


class Up:
    """The command, what it prints, and its children."""

    def __init__(self, data: Path, port: int, *options: str) -> None:
        command = [sys.executable, "-m", "cordwood", "cluster", "up", "--brokers", "2", "--data", str(data)]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_interrupts,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=_collect, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    def wait_ready(self) -> str:
        """Its one line."""
        eventually(lambda: self.out or self.process.poll() is not None, within_s=START_S, what="the ready line")
        assert self.out, self.err
        return self.out[0]

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def broker(self, number: int) -> psutil.Process:
        (found,) = [c for c in self.children() if f"--node-id {number} " in " ".join(c.cmdline()) + " "]
        return found

    def end(self, number: signal.Signals) -> int:
        os.kill(self.process.pid, number)
        return self.wait()

    def wait(self) -> int:
        try:
            status = self.process.wait(START_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            for thread in self._threads:
                thread.join()
            for stream in (self.process.stdout, self.process.stderr):
                assert stream is not None
                stream.close()
        return status


def _heed_interrupts() -> None:
    """Where the tests run in the background they ignore Ctrl-C, and so would what they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _collect(stream: Iterator[str], lines: list[str]) -> None:
    lines.extend(line.rstrip() for line in stream)


@contextmanager
def up(data: Path, port: int, *options: str) -> Iterator[Up]:
    running = Up(data, port, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGTERM)


def neighbours() -> int:
    """A port that is free, as is the next one; not among those that the system gives to anybody who asks."""
    first = 20_000 + os.getpid() % 5_000
    return next(port for port in range(first, first + 5_000) if _is_free(port) and _is_free(port + 1))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def cordwood(*words: str, port: int, text: str = "") -> str:
    command = [sys.executable, "-m", "cordwood", *words, "--bootstrap", f"127.0.0.1:{port}"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_cluster_comes_up_goes_down_and_comes_back(tmp_path: Path) -> None:
    port = neighbours()
    with up(tmp_path, port) as first:
        assert first.wait_ready().startswith(
            f"cluster is ready at 127.0.0.1:{port},127.0.0.1:{port + 1}, data in {tmp_path} ("
        )
        cordwood("topics", "create", "kept", port=port)
        cordwood("produce", "kept", port=port, text="one\ntwo\n")
        children = first.children()
        assert first.end(signal.SIGINT) == 0
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert len(gone) == 3, "two brokers and a ZooKeeper"
    assert alive == []
    assert first.err == []
    with up(tmp_path, port) as second:
        second.wait_ready()
        assert cordwood("consume", "kept", "--until-end", port=port + 1) == "one\ntwo\n"
        broker = second.broker(2)
        broker.kill()
        said = "cordwood: broker 2 was ended by SIGKILL; 1 of 2 are left"
        eventually(lambda: said in second.err, what="the report of its death")
        assert "away" in cordwood("cluster", "status", port=port)
        assert second.end(signal.SIGTERM) == 0


def test_a_port_in_use_is_said_and_nobody_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with up(tmp_path, port) as running:
            assert running.wait() == 1
    assert any(line.startswith("broker 1  | cordwood: cannot listen on 127.0.0.1") for line in running.err)
    assert running.err[-1].startswith("cordwood: broker 1 did not start: ended with status 1")
