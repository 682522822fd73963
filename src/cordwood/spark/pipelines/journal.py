"""What a pipeline's process writes down while it runs: a line of JSON for each event.

Everything that shows a pipeline reads it: the command that started the process, and ``status`` at any time. It is
shortened when a process starts, so that it never exceeds its bound for long.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 4 * 1024 * 1024
"""About ten thousand micro-batches."""

Offsets = dict[str, dict[str, int]]
"""By topic and partition, as in Spark's JSON."""

SESSION, RUN, FLOW, BATCH, IDLE = "session", "run", "flow", "batch", "idle"

STARTING, RUNNING, COMPLETED, FAILED, STOPPED = "starting", "running", "completed", "failed", "stopped"


@dataclass(frozen=True, slots=True)
class Entry:
    """An event. Which fields are used depends on the kind."""

    kind: str
    time_ms: int
    state: str = ""
    """session, run, flow: its new state."""
    flow: str = ""
    """flow, batch: the flow it belongs to."""
    text: str = ""
    """run, flow: what went wrong."""
    batch: int = 0
    rows: int = 0
    rows_per_s: float = 0.0
    took_ms: int = 0
    begin: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    """batch: up to where topics were read. Sources that are not topics are left out."""
    latest: Offsets = field(default_factory=dict)
    """batch: the known ends of the topics."""

    @property
    def lag(self) -> int:
        return distance(self.end, self.latest)


def distance(begin: Offsets, end: Offsets) -> int:
    """How many offsets lie between *begin* and *end*.

    >>> distance({"orders": {"0": 5}}, {"orders": {"0": 7, "1": 3}})
    5
    """
    return sum(
        max(0, offset - begin.get(topic, {}).get(number, 0))
        for topic, numbers in end.items()
        for number, offset in numbers.items()
    )


class Journal:
    """The journal of the process that runs a pipeline."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        _shorten(path)
        self._file = path.open("a", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def write(self, entry: Entry) -> None:
        # Another thread may be writing too: a line is one write.
        fields = {name: value for name, value in asdict(entry).items() if value or name in ("kind", "time_ms")}
        self._file.write(json.dumps(fields, ensure_ascii=False) + "\n")
        self._file.flush()


def _shorten(path: Path) -> None:
    """Keep the newer half of a journal that is too long."""
    if not path.exists() or path.stat().st_size <= BYTES_MAX:
        return
    kept = path.read_bytes()[-BYTES_MAX // 2 :].partition(b"\n")[2]
    aside = path.with_suffix(".new")
    aside.write_bytes(kept)
    aside.rename(path)


class Tail:
    """Reads a journal as it grows."""

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        self._path = path
        self._position = path.stat().st_size if from_end and path.exists() else 0

    def new(self) -> Iterator[Entry]:
        """The entries that have not been read yet; a line that is only half written is read next time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                if (entry := _entry(line)) is not None:
                    yield entry


def read(path: Path) -> list[Entry]:
    return list(Tail(path).new())


def _entry(line: bytes) -> Entry | None:
    """None for a line that is not ours: another version may have written it."""
    try:
        return Entry(**json.loads(line))
    except (ValueError, TypeError):
        return None
