"""Free memory that the machine really has, for the broker that writes next.

On a virtual machine much of the free memory may belong to the host: the first write to such a page costs ten times what
the copy does (2 s a gigabyte where we measured it, 0.2 s otherwise), and free pages go back to the host within seconds.
Whether a broker meets such pages depends on who deleted a log last. This broker frees a deleted log at once and Kafka
after a minute, so in alternating rounds it was Kafka that got the pages which the other had paid for.

A reserve is a file as large as what a load will write, truncated as fast as the broker writes: both brokers then write
to pages of the cache that were freed a moment ago. (Memory of a process, given back in the same way, did not help.)
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import psutil

AHEAD_BYTES: Final = 32 << 20
INTERVAL_S: Final = 0.02
STEP_BYTES: Final = 1 << 20


class PageReserve:
    """Holds `size` bytes of the page cache, less what was `written` since; nothing where that is not possible."""

    def __init__(self, size: int, written: Callable[[], int]) -> None:
        able = sys.platform == "linux" and psutil.virtual_memory().available > 3 * size
        self._held = -(-size // STEP_BYTES) * STEP_BYTES if able else 0
        self._written = written
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._give_back, name="page-reserve")

    def __enter__(self) -> Self:
        if self._held:
            self._file = tempfile.TemporaryFile()
            for _ in range(0, self._held, STEP_BYTES):
                self._file.write(bytes(STEP_BYTES))
            self._file.flush()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.ident is not None:
            self._done.set()
            self._thread.join()
            self._file.close()

    def _give_back(self) -> None:
        with suppress(psutil.NoSuchProcess):  # the broker ended; whoever waits for it will report that
            self._follow()

    def _follow(self) -> None:
        size, before = self._held, self._written()
        while not self._done.wait(INTERVAL_S):
            wanted = max(size - AHEAD_BYTES - (self._written() - before), 0) // STEP_BYTES * STEP_BYTES
            if wanted < self._held:
                self._file.truncate(wanted)
                self._held = wanted
