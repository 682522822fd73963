"""Does a request cost the same on a long log?

Logs of 1 MB to 10 GB, one partition each; on each the broker's CPU time is measured for an append, a fetch anywhere, a
fetch near the end and a look-up by time. Ours alone.

What is compared is the broker's work, not the disk's: a log is read once before its turn, because the system may have
dropped pages of it from the cache (on one machine half of them within minutes, with gigabytes free).
"""

import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

from . import raw
from .brokers import Broker
from .clients import Clients, ProduceLoad, create_topic, delete_topic
from .scale import Scale

TOPIC: Final = "bench-growth"
RECORD_BYTES: Final = 1024
FETCH_BYTES: Final = 16 * 1024
READ_BYTES: Final = 1 << 20
FLAT_BOUND: Final = 1.25
TURNS: Final = 5
OPERATIONS: Final = ("append", "fetch anywhere", "fetch at the end", "offset by time")


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """The broker's CPU microseconds per request, by operation, on a log of `log_bytes`."""

    log_bytes: int
    cpu_us: dict[str, float]


def flatness(points: list[GrowthPoint], operation: str) -> float:
    """How many times as much the operation costs on the longest log as on the shortest."""
    return points[-1].cpu_us[operation] / max(points[0].cpu_us[operation], 1e-9)


def measure_growth(broker: Broker, clients: Clients, scale: Scale, on_step: Callable[[str], None]) -> list[GrowthPoint]:
    """Fill a topic for each size, then measure all of them in turns, so that noise affects every size alike."""
    logs = []
    for size in scale.growth_bytes:
        on_step(f"a log of {size / 1e6:,.0f} MB")
        logs.append(_fill(broker, clients, size))
    turns = [
        [_costs(broker, log, scale.growth_requests // TURNS, seed=turn) for log in logs]
        for turn in _counted(TURNS, on_step)
    ]
    for log in logs:
        delete_topic(broker, log.topic)
    return [
        GrowthPoint(log.size, {name: mean(turn[number][name] for turn in turns) for name in OPERATIONS})
        for number, log in enumerate(logs)
    ]


@dataclass(frozen=True, slots=True)
class _Log:
    """A topic of one partition, filled to a size between two points in time."""

    topic: str
    size: int
    end: int
    begin_ms: int
    end_ms: int

    def append(self) -> bytes:
        """Append one record with the current time: looking up a time needs records of different times."""
        return raw.produce_frame(self.topic, 0, raw.record_batch(count=1, size=100, timestamp_ms=_now_ms()))

    def fetch(self, offset: int) -> bytes:
        return raw.fetch_frame(self.topic, 0, offset, max_wait_ms=0, bytes_max=FETCH_BYTES)

    def find(self, time_ms: int) -> bytes:
        return raw.list_offsets_frame(self.topic, 0, time_ms)


def _fill(broker: Broker, clients: Clients, size: int) -> _Log:
    topic = f"{TOPIC}-{size}"
    records = size // RECORD_BYTES
    create_topic(broker, topic, partitions=1)
    begin_ms = _now_ms()
    load = ProduceLoad(
        records=records, record_bytes=RECORD_BYTES, batch_bytes=FETCH_BYTES, acks="1", warm_up=records // 10
    )
    clients.produce(broker, topic, load)
    return _Log(topic, size, records, *_record_times(broker, topic, range(begin_ms, _now_ms())))


def _record_times(broker: Broker, topic: str, times_ms: range) -> tuple[int, int]:
    """The times of the first and the last record: outside of them there is nothing to search for."""
    with raw.RawConnection(broker.port) as connection:

        def found(time_ms: int) -> int:
            return raw.listed(connection.ask(raw.list_offsets_frame(topic, 0, time_ms)))

        after_first = bisect_left(times_ms, True, key=lambda time_ms: found(time_ms) != 0)
        after_last = bisect_left(times_ms, True, key=lambda time_ms: found(time_ms) < 0)
    return times_ms.start + after_first - 1, times_ms.start + after_last


def _costs(broker: Broker, log: _Log, requests: int, *, seed: int) -> dict[str, float]:
    """The broker's CPU microseconds for a request of each kind."""
    _bring_into_cache(broker.logs / f"{log.topic}-0")
    seeded = random.Random(seed)
    with raw.RawConnection(broker.port) as connection:

        def cost_us(make: Callable[[], bytes], check: Callable[[bytes], int]) -> float:
            before = broker.cpu_s()
            for _ in range(requests):
                check(connection.ask(make()))
            return 1e6 * (broker.cpu_s() - before) / requests

        costs = (
            cost_us(log.append, raw.produced),
            cost_us(lambda: log.fetch(seeded.randrange(log.end)), _some_records),
            cost_us(lambda: log.fetch(log.end - 1 - seeded.randrange(15)), _some_records),
            cost_us(lambda: log.find(seeded.randrange(log.begin_ms, log.end_ms)), raw.listed),
        )
    return dict(zip(OPERATIONS, costs, strict=True))


def _bring_into_cache(directory: Path) -> None:
    for path in sorted(directory.iterdir()):
        with path.open("rb", buffering=0) as file:
            while file.read(READ_BYTES):
                pass


def _counted(turns: int, on_step: Callable[[str], None]) -> Iterator[int]:
    for turn in range(turns):
        on_step(f"requests, turn {turn + 1} of {turns}")
        yield turn


def _some_records(body: bytes) -> int:
    size = raw.fetched(body)
    if size == 0:
        raise raw.RawError("a fetch below the end of the log brought nothing")
    return size


def _now_ms() -> int:
    return int(time.time() * 1000)
