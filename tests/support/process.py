"""A broker in a process of its own, to be attacked, measured and killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from support.waiting import eventually

START_TIMEOUT_S = 60.0
"""For a start or a stop, of thousands of partitions on a busy disk: it decides nothing but when a test gives up."""


class BrokerProcess:
    """``cordwood serve`` on a free port; its standard error is kept line by line."""

    def __init__(
        self,
        data: Path,
        *,
        settings: Mapping[str, object] | None = None,
        arguments: Sequence[str] = (),
        port: int = 0,
        wrapper: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.bootstrap = ""
        self.output: list[str] = []
        self.log: list[str] = []
        self._command = [*wrapper, sys.executable, "-m", "cordwood", "serve", "--data", str(data)]
        self._command += ["--port", str(port), *arguments]
        for name, value in (settings or {}).items():
            self._command += ["--set", f"{name}={value}"]
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []

    def start(self) -> Self:
        """Start, and return when it says that it is ready."""
        self.launch()
        eventually(lambda: self.output or not self.running, within_s=START_TIMEOUT_S, what="the broker's start")
        assert self.output, f"the broker did not start:\n{self.log_text()}"
        self.bootstrap = self.output[0].split(" ready at ")[1].split(",")[0]
        return self

    def launch(self) -> None:
        """Start, and do not wait: for a broker that is to refuse."""
        self.output.clear()
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._readers = [
            threading.Thread(target=_collect, args=(stream, lines), daemon=True)
            for stream, lines in ((self._process.stdout, self.output), (self._process.stderr, self.log))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def process(self) -> "subprocess.Popen[str]":
        assert self._process is not None
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    @property
    def peak_rss_bytes(self) -> int:
        """The most since ``forget_peak``, where the system tells; else what it is now."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return self.rss_bytes
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def forget_peak(self) -> int:
        """Begin with ``peak_rss_bytes`` anew; what it begins with."""
        clear = Path(f"/proc/{self.process.pid}/clear_refs")
        if clear.exists():
            clear.write_text("5")
        return self.peak_rss_bytes

    @property
    def cpu_s(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    @property
    def open_files(self) -> int:
        return int(psutil.Process(self.process.pid).num_fds())

    def log_text(self) -> str:
        return "\n".join(self.log)

    def says(self, text: str) -> bool:
        """Is there a log line with this text? It may be under way."""
        eventually(lambda: text in self.log_text(), what=f"the log line {text!r}")
        return True

    def kill(self) -> None:
        """kill -9"""
        self.process.kill()
        self.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        if self.running:
            os.kill(self.process.pid, number)
        return self.wait()

    def wait(self) -> int:
        """Its exit status, once it has ended and all of its output has been read."""
        try:
            status = self.process.wait(timeout=START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        for reader in self._readers:
            reader.join()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def __enter__(self) -> Self:
        return self.start()

    def end(self) -> None:
        """Whatever state it is in, it is gone afterwards."""
        if self._process is None:
            return
        if self.running:
            self.process.kill()
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _collect(stream: Iterable[str], lines: list[str]) -> None:
    lines.extend(line.rstrip("\n") for line in stream)
