"""What a suite is: a package that others publish, the broker settings that it needs, the outcome of each test.

None of their code is part of this project: it is fetched into `.cache/` and run from there.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CACHE: Final = Path(__file__).resolve().parent.parent / ".cache" / "conformance"
NO_CHANGE: Final[Mapping[str, str]] = {}
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class SuiteError(Exception):
    """A tool is missing, or a suite could not be fetched or built. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    test: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """`fetch` returns the directory to run in, at once if it exists already; `run` yields outcomes as they come.

    `left_out` says what is not run and why; `known` says why a test is expected to fail.
    """

    name: str
    package: str
    version: str
    settings: Mapping[str, str]
    left_out: Mapping[str, str]
    fetch: Callable[[], Path]
    run: Callable[[Path, str], Iterator[Outcome]]
    known: Mapping[str, str] = field(default_factory=dict)


def tool(name: str, install: str) -> str:
    """The path of a program that a suite is built with."""
    found = shutil.which(name)
    if found is None:
        raise SuiteError(f"`{name}` is missing: install it ({install}).")
    return found


def filled(name: str, fill: Callable[[Path], None]) -> Path:
    """A directory of the cache; filled under another name and renamed, so that nobody uses an incomplete one."""
    directory = CACHE / name
    if not directory.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as work:
            made = Path(work) / name
            made.mkdir()
            fill(made)
            made.rename(directory)
    return directory


def build(command: Sequence[str], directory: Path, environment: Mapping[str, str] = NO_CHANGE) -> None:
    """Run one step of fetching or building, and wait for its end."""
    done = subprocess.run(command, cwd=directory, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SuiteError(f"`{' '.join(command)}` ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")


def lines_of(command: Sequence[str], directory: Path, environment: Mapping[str, str], limit_s: float) -> Iterator[str]:
    """What a suite's program prints, line by line; it is killed if it takes too long, or when nobody reads on."""
    process = subprocess.Popen(
        command, cwd=directory, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    with process:
        try:
            assert process.stdout is not None
            yield from (line.decode(errors="replace").rstrip() for line in process.stdout)
        finally:
            timer.cancel()
            process.kill()
