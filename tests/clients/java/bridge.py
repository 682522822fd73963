"""A JVM that runs Kafka's tools and Kafka's Java client for the tests, one request after the other.

Our small Java files are compiled once into the project's cache, under a name that changes with their text.
"""

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from benchmarks import peer

HERE: Final = Path(__file__).parent

# What our Java programs take and give: whatever JSON holds. Each caller knows the shape that it asked for.
Json = Any


@dataclass(frozen=True, slots=True)
class Ran:
    """What a tool left behind when it ended."""

    code: int
    out: str
    err: str


class Jvm:
    """One JVM, alive as long as the tests need it; a context manager."""

    def __init__(self) -> None:
        command = peer.java_command(
            "ToolServer", [], flags=peer.SHORT_LIVED_FLAGS, heap=("-Xmx384M",), classes=compiled_classes()
        )
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the JVM
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()
        self._errors.close()

    def run(self, main: str, *arguments: str, text: str = "") -> Ran:
        """Run the main method of a class to its end, with `text` as its standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"main": main, "args": arguments, "input": text}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended:\n{self._last_words()}"
        answer = json.loads(line)
        return Ran(code=answer["code"], out=answer["out"], err=answer["err"])

    def ask(self, main: str, command: str, request: Mapping[str, object]) -> Json:
        """Ask one of our own Java programs, which take and give JSON."""
        ran = self.run(main, command, text=json.dumps(request))
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]


def compiled_classes() -> Path:
    """The directory of our compiled Java files."""
    sources = sorted(HERE.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = peer.CACHE / f"java-tests-{digest}"
    if not classes.is_dir():
        peer.compile_java(sources, classes)
    return classes
