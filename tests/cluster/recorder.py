"""Writes down what producers and readers do, line by line, in the words of ``checker.py``."""

import json
import threading
from collections.abc import Iterable
from pathlib import Path

from cluster.checker import Place


class Recorder:
    """One history in one file. Any thread may call; nothing is lost if the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8", buffering=1 << 16)
        self._lock = threading.Lock()

    def producer(self, name: str, *, ordered: bool = True, repeats: bool = False) -> None:
        self._write({"kind": "producer", "producer": name, "ordered": ordered, "repeats": repeats})

    def sent(self, producer: str, place: Place, value: str) -> None:
        self._write({"kind": "sent", "producer": producer, **_named(place), "value": value})

    def acknowledged(self, producer: str, value: str, offset: int) -> None:
        self._write({"kind": "acknowledged", "producer": producer, "value": value, "offset": offset})

    def refused(self, producer: str, value: str) -> None:
        self._write({"kind": "refused", "producer": producer, "value": value})

    def unknown(self, producer: str, value: str, why: str) -> None:
        self._write({"kind": "unknown", "producer": producer, "value": value, "why": why})

    def read(self, reader: str, place: Place, offset: int, value: str) -> None:
        self._write({"kind": "read", "reader": reader, **_named(place), "offset": offset, "value": value})

    def group(self, name: str, readers: Iterable[str]) -> None:
        self._write({"kind": "group", "group": name, "readers": list(readers)})

    def replica(self, broker: int, place: Place, *, start: int, end: int) -> None:
        self._write({"kind": "replica", "broker": broker, **_named(place), "start": start, "end": end})

    def batch(
        self, broker: int, place: Place, *, first: int, last: int, digest: str, records: list[tuple[int, str]]
    ) -> None:
        line = {"kind": "batch", "broker": broker, **_named(place), "first": first, "last": last, "digest": digest}
        self._write(line | {"records": records})

    def take(self, text: str) -> None:
        """A line that somebody else made."""
        with self._lock:
            self._file.write(text)

    def flush(self) -> None:
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _write(self, line: dict[str, object]) -> None:
        text = json.dumps(line) + "\n"
        with self._lock:
            self._file.write(text)


def _named(place: Place) -> dict[str, object]:
    return {"topic": place.topic, "partition": place.partition}
