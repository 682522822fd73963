"""How fast the same clients would be on the same machine with a broker that costs nothing.

Clients and broker share the cores. What the clients spend on a megabyte does not depend on the broker, so it limits how
fast they could be with all cores to themselves. On this machine no broker can be measured to be faster than that.
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
    """Samples CPU times while a load runs. The first half, in which the client warms up, does not count."""

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
        """What *rate* would be with a broker that costs nothing."""
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
    """Linux counts the time of guests in the user time as well."""
    return float(getattr(times, "guest", 0.0)) + float(getattr(times, "guest_nice", 0.0))
