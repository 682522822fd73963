"""The process that runs Spark for a pipeline, from the point of view of the command that started it.

Spark prints a lot and stops slowly, so it has a process of its own, in a session of its own that Ctrl-C does not reach.
Its standard input is the leash: a line asks it to end after the current run, the end of the input asks it to end at
once. So it never outlives the command.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Final

from .project import Project

FINISH: Final = b"finish\n"
PATIENCE_S: Final = 20.0
"""For a process that was asked to end at once."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the process should do."""

    directory: str
    watch: bool = False
    bootstrap: str | None = None
    """Overrides the specification's."""
    refresh: bool = False
    """Forget the streams' progress, and do everything again."""
    master: str = "local[*]"
    interval_ms: int = 1000
    """watch: how long to wait before looking for news."""


class Worker:
    """A running process."""

    def __init__(self, project: Project, order: Order, *, lock: int) -> None:
        command = [sys.executable, "-m", "cordwood.spark.pipelines.engine", json.dumps(asdict(order))]
        with project.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
                pass_fds=(lock,),  # the pipeline stays locked until this process is gone, too
                start_new_session=True,
            )

    def wait(self, timeout_s: float) -> int | None:
        """The status that it ended with; None if it is still running after this time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def finish(self) -> None:
        """Ask it to end after this run."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(FINISH)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def end(self) -> None:
        """End it at once."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self.wait(PATIENCE_S) is None:
            self._process.kill()
            self._process.wait()
