"""Many connections: 500 that do nothing, then 200 more that each produce ten times a second while the 500 stay open.

The harness sets the rate, not the broker: what is compared is the cost of the same requests, and how long they take.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import uvloop

from . import raw
from .brokers import Broker
from .clients import create_topic, delete_topic
from .metrics import CPU_PER_REQUEST, IDLE_CPU, IDLE_RSS, MB, P50, P99, Metric
from .rows import PARTITIONS

IDLE_CONNECTIONS: Final = 500
ACTIVE_CONNECTIONS: Final = 200
INTERVAL_S: Final = 0.1
TOPIC: Final = "bench-connections"


@dataclass(slots=True)
class ConnectionsRow:
    idle_s: float
    active_s: float
    key: str = "connections"
    title: str = "500 idle and 200 active connections"
    metrics: Sequence[Metric] = (IDLE_CPU, IDLE_RSS, CPU_PER_REQUEST, P50, P99)

    def prepare(self, broker: Broker) -> None:
        create_topic(broker, TOPIC, partitions=PARTITIONS)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        return uvloop.run(_measure(broker, self.idle_s, self.active_s))

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, TOPIC)


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, frame: bytes) -> bytes:
        self.writer.write(frame)
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return (await self.reader.readexactly(size))[4:]


async def _measure(broker: Broker, idle_s: float, active_s: float) -> dict[str, float]:
    connections = [await _open(broker) for _ in range(IDLE_CONNECTIONS)]
    try:
        idle = await _idle(broker, idle_s)
        connections += [await _open(broker) for _ in range(ACTIVE_CONNECTIONS)]
        return idle | await _active(broker, connections[IDLE_CONNECTIONS:], active_s)
    finally:
        for connection in connections:
            connection.writer.close()


async def _open(broker: Broker) -> _Connection:
    connection = _Connection(*await asyncio.open_connection("127.0.0.1", broker.port))
    await connection.ask(raw.metadata_frame())
    return connection


async def _idle(broker: Broker, idle_s: float) -> dict[str, float]:
    before = broker.cpu_s()
    await asyncio.sleep(idle_s)
    return {IDLE_CPU.key: 100 * (broker.cpu_s() - before) / idle_s, IDLE_RSS.key: broker.rss_bytes() / MB}


async def _active(broker: Broker, connections: list[_Connection], active_s: float) -> dict[str, float]:
    records = raw.record_batch(count=10, size=100, timestamp_ms=int(time.time() * 1000))
    before = broker.cpu_s()
    begin = time.perf_counter()
    loads = [
        _produce(connection, raw.produce_frame(TOPIC, number % PARTITIONS, records), _starts(begin, number, active_s))
        for number, connection in enumerate(connections)
    ]
    elapsed_s = sorted(seconds for answers in await asyncio.gather(*loads) for seconds in answers)
    return {
        CPU_PER_REQUEST.key: 1e6 * (broker.cpu_s() - before) / len(elapsed_s),
        P50.key: 1000 * elapsed_s[len(elapsed_s) // 2],
        P99.key: 1000 * elapsed_s[len(elapsed_s) * 99 // 100],
    }


def _starts(begin: float, number: int, active_s: float) -> list[float]:
    """When a connection sends: all at the same interval, each connection a little later than the one before."""
    first = begin + INTERVAL_S * number / ACTIVE_CONNECTIONS
    return [first + INTERVAL_S * turn for turn in range(int(active_s / INTERVAL_S))]


async def _produce(connection: _Connection, frame: bytes, starts: list[float]) -> list[float]:
    """Send at each of the times; latency counts from the time a request was due, as a waiting user would count."""
    elapsed_s = []
    for start in starts:
        await asyncio.sleep(max(0.0, start - time.perf_counter()))
        raw.produced(await connection.ask(frame))
        elapsed_s.append(time.perf_counter() - start)
    return elapsed_s
