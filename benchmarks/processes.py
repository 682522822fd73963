"""Child processes of a run: every process started here is stopped, by its pid, however the run ends."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

STOP_TIMEOUT_S: Final = 20.0


class ToolFailedError(Exception):
    """A tool ended with an error, or did not end in time."""


class Processes:
    """Owns the children: a context manager that leaves none behind."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self._log_of: dict[int, Path] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in list(self._running):
            self.stop(process)

    def start(self, command: Sequence[str], *, name: str) -> subprocess.Popen[bytes]:
        """Start a server; its stdout and stderr go to a file in the directory of logs."""
        path = self._log(name)
        with path.open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._running.append(process)
        self._log_of[process.pid] = path
        return process

    def last_words(self, process: subprocess.Popen[bytes]) -> str:
        """The end of what a server wrote."""
        return self._log_of[process.pid].read_text(errors="replace")[-2000:]

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.remove(process)

    def lines_of(self, command: Sequence[str], *, name: str, limit_s: float) -> Iterator[str]:
        """Run a tool to its end and yield its standard output line by line. Raises when it fails or takes too long."""
        log = self._log(name)
        with log.open("wb") as errors:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        self._running.append(process)
        try:
            with _killed_after(process, limit_s):
                assert process.stdout is not None
                for line in process.stdout:
                    yield line.decode(errors="replace").rstrip()
                code = process.wait()
        finally:
            self.stop(process)
        if code != 0:
            raise ToolFailedError(f"{name} ended with {code}:\n{log.read_text(errors='replace')[-2000:]}")

    def _log(self, name: str) -> Path:
        self._started += 1
        return self._logs / f"{self._started:03d}-{name}.log"


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], limit_s: float) -> Iterator[None]:
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
