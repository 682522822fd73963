"""Does a request cost the same on a long log?

One partition grows from 1 MB to 10 GB; at each size the broker's CPU time for an append, a fetch anywhere, a fetch near
the end and a look-up by time is measured. Ours alone.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import raw
from .brokers import Broker
from .clients import Clients, ProduceLoad, create_topic, delete_topic
from .scale import Scale

TOPIC: Final = "bench-growth"
RECORD_BYTES: Final = 1024
FETCH_BYTES: Final = 16 * 1024
FLAT_BOUND: Final = 1.25
OPERATIONS: Final = ("append", "fetch anywhere", "fetch at the end", "offset by time")


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """The broker's CPU microseconds a request, by operation, once the log holds `log_bytes`."""

    log_bytes: int
    cpu_us: dict[str, float]


def flatness(points: list[GrowthPoint], operation: str) -> float:
    """How much dearer the operation is on the longest log than on the shortest."""
    return points[-1].cpu_us[operation] / max(points[0].cpu_us[operation], 1e-9)


def measure_growth(broker: Broker, clients: Clients, scale: Scale, on_step: Callable[[str], None]) -> list[GrowthPoint]:
    create_topic(broker, TOPIC, partitions=1)
    begin_ms = _now_ms()
    points: list[GrowthPoint] = []
    held_bytes = 0
    for size in scale.growth_bytes:
        on_step(f"growing to {size / 1e6:,.0f} MB")
        _grow(broker, clients, size - held_bytes)
        held_bytes = size
        on_step(f"{scale.growth_requests:,} requests of each kind at {size / 1e6:,.0f} MB")
        points.append(_measure(broker, size, begin_ms, scale.growth_requests))
    delete_topic(broker, TOPIC)
    return points


def _grow(broker: Broker, clients: Clients, more_bytes: int) -> None:
    records = more_bytes // RECORD_BYTES
    load = ProduceLoad(
        records=records, record_bytes=RECORD_BYTES, batch_bytes=FETCH_BYTES, acks="1", warm_up=records // 10
    )
    clients.produce(broker, TOPIC, load)


def _measure(broker: Broker, log_bytes: int, begin_ms: int, requests: int) -> GrowthPoint:
    with raw.RawConnection(broker.port) as connection:
        end = raw.listed(connection.ask(raw.list_offsets_frame(TOPIC, 0, raw.LATEST)))
        seeded = random.Random(log_bytes)
        batch = raw.record_batch(count=1, size=100, timestamp_ms=_now_ms())
        append = raw.produce_frame(TOPIC, 0, batch)
        now_ms = _now_ms()

        def cost_us(make: Callable[[], bytes], check: Callable[[bytes], int]) -> float:
            before = broker.cpu_s()
            for _ in range(requests):
                check(connection.ask(make()))
            return 1e6 * (broker.cpu_s() - before) / requests

        costs = (
            cost_us(lambda: append, raw.produced),
            cost_us(lambda: _fetch(seeded.randrange(end)), _some_records),
            cost_us(lambda: _fetch(end - 1 - seeded.randrange(min(end, 15))), _some_records),
            cost_us(lambda: raw.list_offsets_frame(TOPIC, 0, seeded.randrange(begin_ms, now_ms)), raw.listed),
        )
    return GrowthPoint(log_bytes, dict(zip(OPERATIONS, costs, strict=True)))


def _fetch(offset: int) -> bytes:
    return raw.fetch_frame(TOPIC, 0, offset, max_wait_ms=0, bytes_max=FETCH_BYTES)


def _some_records(body: bytes) -> int:
    size = raw.fetched(body)
    if size == 0:
        raise raw.RawError("a fetch below the end of the log brought nothing")
    return size


def _now_ms() -> int:
    return int(time.time() * 1000)
