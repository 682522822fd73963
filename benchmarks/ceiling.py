"""How fast the same clients would be on the same machine beside a broker that costs nothing.

Clients and broker share the cores. What the clients spend for a megabyte is theirs whatever the broker does: with all
cores for themselves they could be so much faster and no more. No broker can be measured to be faster than that, here.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, NamedTuple, Self

import psutil

INTERVAL_S: Final = 0.25


class Sample(NamedTuple):
    time_s: float
    machine_s: float
    broker_s: float


class Ceiling:
    """Watches while a load runs. The first half, in which a client warms up, does not count."""

    def __init__(self, broker_s: Callable[[], float]) -> None:
        self._broker_s = broker_s
        self._samples: list[Sample] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ceiling")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def of(self, rate: float) -> float:
        """What *rate* could be at most."""
        return rate * (os.cpu_count() or 1) / clients_cores(self._samples)

    def _watch(self) -> None:
        while True:
            self._samples.append(Sample(time.monotonic(), _busy_s(), self._broker_s()))
            if self._done.wait(INTERVAL_S):
                return


def clients_cores(samples: list[Sample]) -> float:
    """How many cores were busy in the second half with anything but the broker."""
    first, last = samples[len(samples) // 2], samples[-1]
    return (last.machine_s - first.machine_s - (last.broker_s - first.broker_s)) / (last.time_s - first.time_s)


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times)) - float(times.idle) - float(getattr(times, "iowait", 0.0)) - _counted_twice(times)


def _counted_twice(times: object) -> float:
    """Linux has the time of guests in the user time as well."""
    return float(getattr(times, "guest", 0.0)) + float(getattr(times, "guest_nice", 0.0))
