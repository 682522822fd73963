"""One line that says what is running: rewritten in place on a terminal, one line per step elsewhere."""

import sys
import time
from typing import Final

WIDTH: Final = 118


class Progress:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._step = 0
        self._begin = time.monotonic()
        self._title = ""
        self._terminal = sys.stderr.isatty()

    def step(self, title: str) -> None:
        """A new step begins."""
        self._step += 1
        self._title = title
        self._show(self._line(""), end="" if self._terminal else "\n")

    def detail(self, text: str) -> None:
        """A detail of the running step; shown only on a terminal."""
        if self._terminal:
            self._show(self._line(text), end="")

    def part(self, text: str) -> None:
        """A part of the running step that takes long enough to be shown everywhere."""
        self._show(self._line(text), end="" if self._terminal else "\n")

    def note(self, text: str) -> None:
        """A line that stays."""
        self._show(text, end="\n")

    def _line(self, text: str) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._begin), 60)
        return f"[{self._step}/{self._steps} {minutes:02d}:{seconds:02d}] {self._title}{': ' if text else ''}{text}"

    def _show(self, text: str, *, end: str) -> None:
        start = "\r\x1b[K" if self._terminal else ""
        print(f"{start}{text[:WIDTH]}", end=end, file=sys.stderr, flush=True)
