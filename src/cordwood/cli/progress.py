"""The progress of a long job, on one line of a terminal that is overwritten again and again."""

import sys
import time

from .drawing import one_line

INTERVAL_S = 0.2


class Progress:
    """Counts records and bytes. Shows them only if standard error is a terminal."""

    def __init__(self, verb: str) -> None:
        self.records = 0
        self.bytes = 0
        self._verb = verb
        self._start_s = time.monotonic()
        self._shown_s = self._start_s
        self._visible = sys.stderr.isatty()

    def add(self, size: int) -> None:
        self.records += 1
        self.bytes += size
        if self._visible and time.monotonic() - self._shown_s > INTERVAL_S:
            self._shown_s = time.monotonic()
            print(f"\r\x1b[K{one_line(self.text())}", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Report once how it went."""
        start = "\r\x1b[K" if self._visible else ""
        print(f"{start}{self.text()}", file=sys.stderr)

    def text(self) -> str:
        elapsed_s = max(time.monotonic() - self._start_s, 0.001)
        plural = "" if self.records == 1 else "s"
        rate = f", {self.records / elapsed_s:,.0f}/s" if elapsed_s > 1 else ""
        return f"{self._verb} {self.records:,} record{plural}, {size_text(self.bytes)}{rate}"


def size_text(size: int) -> str:
    """A number of bytes in a readable form.

    >>> size_text(1500)
    '1.5 KB'
    """
    for exponent, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1000**exponent:
            return f"{size / 1000**exponent:.1f} {unit}"
    return f"{size} byte{'s' * (size != 1)}"
