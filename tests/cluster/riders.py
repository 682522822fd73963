"""Riders as a test sees them: started, listened to, asked to stop. What they say goes into the history as it is."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks import peer

from clients.java.bridge import compiled_classes
from cluster.recorder import Recorder
from support.waiting import eventually

TESTS: Final = Path(__file__).parents[1]
CLIENTS: Final = ("confluent", "kafka-python", "aiokafka", "java")
OURS_ALONE: Final = ("error", "stopped")
"""Kinds of lines that the checker does not know."""


class Rider:
    """One client's process."""

    def __init__(self, client: str, bootstrap: str, topic: str, recorder: Recorder) -> None:
        self.name = f"{client}-{topic}"
        self.errors: list[str] = []
        self.counts: Counter[str] = Counter()
        self.read_to: dict[int, int] = {}
        self._recorder = recorder
        self._words: list[str] = []
        if client == "java":
            arguments = [bootstrap, topic, self.name]
            command = peer.java_command(
                "JavaRider",
                arguments,
                flags=peer.SHORT_LIVED_FLAGS,
                heap=("-Xmx128M",),
                classes=compiled_classes(),
            )
        else:
            command = [sys.executable, "-m", "cluster.rider", client, bootstrap, topic, self.name]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
        )
        self._threads = [threading.Thread(target=hear, daemon=True) for hear in (self._hear, self._hear_words)]
        for thread in self._threads:
            thread.start()

    @property
    def acknowledged(self) -> int:
        return self.counts["acknowledged"]

    def progress(self, *, records: int = 20, within_s: float = 40.0) -> None:
        """Wait until so many more records are acknowledged and read."""
        goals = {kind: self.counts[kind] + records for kind in ("acknowledged", "read")}
        eventually(
            lambda: self._process.poll() is not None or all(self.counts[k] >= goal for k, goal in goals.items()),
            within_s=within_s,
            what=f"progress of {self.name} ({dict(self.counts)}, {self.errors[:3]})",
        )
        assert self._process.poll() is None, self.last_words()

    def stop_sending(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("stop\n")
        self._process.stdin.flush()

    def wait_stopped(self) -> None:
        eventually(lambda: self.counts["stopped"], within_s=60, what=f"that all of {self.name} is acknowledged")

    def end(self) -> int:
        """Let it end, and hear all it has to say. Its exit status."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            status = self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return status

    def last_words(self) -> str:
        return "".join(self._words[-30:])

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            self.counts[line["kind"]] += 1
            if line["kind"] == "error":
                self.errors.append(line["text"])
            elif line["kind"] not in OURS_ALONE:
                self._recorder.take(text)
            if line["kind"] == "read":
                self.read_to[line["partition"]] = max(self.read_to.get(line["partition"], 0), line["offset"] + 1)

    def _hear_words(self) -> None:
        assert self._process.stderr is not None
        self._words.extend(self._process.stderr)
