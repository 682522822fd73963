"""The rows of the table that a Java client loads: produce, consume, latency, a thousand partitions.

A row is prepared once for each broker, measured many times, and finished. Every measurement of a produce row has a
topic of its own, so that no round appends to the log of an earlier one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from .brokers import Broker
from .ceiling import Ceiling
from .clients import Clients, ConsumeLoad, LatencyLoad, ProduceLoad, create_topic, delete_topic, end_offsets
from .metrics import CEILING, CPU_PER_GB, GB, P50, P99, P999, RATE, Metric
from .page_reserve import PageReserve
from .processes import ToolFailedError
from .scale import Scale

PARTITIONS: Final = 4
MANY_PARTITIONS: Final = 1_000
STORED_PER_BYTE: Final = 1.15  # for values of 100 bytes, with what a record adds to them


class Row(Protocol):
    """One measurement, made on both brokers in turn."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def metrics(self) -> Sequence[Metric]: ...
    def prepare(self, broker: Broker) -> None: ...
    def measure(self, broker: Broker) -> Mapping[str, float]: ...
    def finish(self, broker: Broker) -> None: ...


@dataclass(slots=True)
class ProduceRow:
    key: str
    title: str
    clients: Clients
    load: ProduceLoad
    metrics: Sequence[Metric] = (RATE, CEILING, CPU_PER_GB)
    _topics: int = field(default=0)

    def prepare(self, broker: Broker) -> None:
        """Nothing: each measurement creates its own topic."""

    def measure(self, broker: Broker) -> Mapping[str, float]:
        self._topics += 1
        topic = f"bench-{self.key}-{self._topics}"
        create_topic(broker, topic, partitions=PARTITIONS)
        with PageReserve(round(self.load.total_bytes * STORED_PER_BYTE), broker.written_bytes):
            seen = _watched(broker, self.load.total_bytes, partial(self.clients.produce, broker, topic, self.load))
        delete_topic(broker, topic)
        broker.wait_until_gone(topic)
        return seen

    def finish(self, broker: Broker) -> None:
        """Nothing is left."""


@dataclass(slots=True)
class ConsumeRow:
    """Two consumers by default: a single one is so much slower than a broker that it would be what is measured."""

    key: str
    title: str
    clients: Clients
    load: ProduceLoad
    reading: ConsumeLoad
    partitions: int = PARTITIONS
    metrics: Sequence[Metric] = (RATE, CEILING, CPU_PER_GB)

    def prepare(self, broker: Broker) -> None:
        _fill(self.clients, broker, self._topic, self.load, partitions=self.partitions)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        passes = self.reading.warm_ups + self.reading.passes
        return _watched(broker, self.load.total_bytes * passes, partial(self._read, broker))

    def _read(self, broker: Broker) -> float:
        rate, size = self.clients.consume(broker, self._topic, self.reading)
        if size != self.load.total_bytes:
            raise ToolFailedError(f"{broker.name}: {size:,} bytes read where {self.load.total_bytes:,} were written")
        return rate

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class ConsumeToolRow:
    """ConsumerPerformance, alone in a group: a new group each time, so that it begins at the beginning."""

    key: str
    title: str
    clients: Clients
    load: ProduceLoad
    metrics: Sequence[Metric] = (RATE, CEILING, CPU_PER_GB)
    _groups: int = field(default=0)

    def prepare(self, broker: Broker) -> None:
        _fill(self.clients, broker, self._topic, self.load, partitions=PARTITIONS)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        self._groups += 1
        group, records = f"bench-{self._groups}", self.load.records
        read = partial(self.clients.consume_by_tool, broker, self._topic, group, records=records)
        return _watched(broker, self.load.total_bytes, read)

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class LatencyRow:
    key: str
    title: str
    clients: Clients
    load: LatencyLoad
    partitions: int
    metrics: Sequence[Metric] = (P50, P99, P999)

    def prepare(self, broker: Broker) -> None:
        create_topic(broker, self._topic, partitions=self.partitions)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        return self.clients.latency(broker, self._topic, self.load)

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


def load_rows(clients: Clients, scale: Scale) -> list[Row]:
    """Every row that a Java client loads, in the order of the table."""
    return [*_produce_rows(clients, scale), *_consume_rows(clients, scale), *_latency_rows(clients, scale)]


def warm_up_load(scale: Scale) -> ProduceLoad:
    """Sent to both brokers before anything counts: small batches, so that Java compiles every path of a request."""
    return _small(2 * scale.produce_small_records, batch_bytes=8 * 1024, acks="1")


def _produce_rows(clients: Clients, scale: Scale) -> list[Row]:
    small = scale.produce_small_records
    return [
        ProduceRow(
            "produce-8k", "produce 100 B, batch 8 KB, acks 1", clients, _small(small, batch_bytes=8 * 1024, acks="1")
        ),
        ProduceRow(
            "produce-64k",
            "produce 100 B, batch 64 KB, acks all",
            clients,
            _small(small, batch_bytes=64 * 1024, acks="all"),
        ),
        ProduceRow("produce-1k", "produce 1 KB, batch 128 KB, acks all", clients, _large(scale.produce_large_records)),
    ]


def _consume_rows(clients: Clients, scale: Scale) -> list[Row]:
    small = _small(scale.consume_records, batch_bytes=64 * 1024, acks="all")
    large = _large(scale.consume_records // 5)
    many = _large(scale.partition_records)
    by_two = ConsumeLoad(scale.consume_warm_ups, scale.consume_passes, consumers=2)
    by_one = ConsumeLoad(scale.consume_warm_ups, scale.consume_passes, consumers=1)
    return [
        ConsumeRow("consume", "consume 100 B, 2 consumers", clients, small, by_two),
        ConsumeRow("consume-1k", "consume 1 KB, 2 consumers", clients, large, by_two),
        ConsumeToolRow(
            "consume-tool", "ConsumerPerformance, 1 KB, in a group", clients, _large(scale.consume_tool_records)
        ),
        ConsumeRow("partitions", "consume 1 KB from 1,000 partitions", clients, many, by_one, MANY_PARTITIONS),
    ]


def _latency_rows(clients: Clients, scale: Scale) -> list[Row]:
    polled = LatencyLoad(warm_up=scale.latency_warm_up, records=scale.latency_records, fetch_wait_ms=0)
    parked = LatencyLoad(warm_up=scale.latency_warm_up, records=scale.latency_records, fetch_wait_ms=500)
    few = LatencyLoad(warm_up=scale.latency_warm_up // 2, records=scale.latency_records // 4, fetch_wait_ms=500)
    return [
        LatencyRow("latency", "end to end", clients, polled, 1),
        LatencyRow("latency-parked", "end to end, long poll", clients, parked, 1),
        LatencyRow("latency-partitions", "end to end, 1,000 partitions", clients, few, MANY_PARTITIONS, (P50, P99)),
    ]


def _watched(broker: Broker, total_bytes: int, load: Callable[[], float]) -> Mapping[str, float]:
    """The rate of a load that moves *total_bytes*, what the rate could be at most, and what it costs the broker."""
    before = broker.cpu_s()
    with Ceiling(broker.cpu_s) as ceiling:
        rate = load()
    cpu_s = broker.cpu_s() - before
    return {RATE.key: rate, CEILING.key: ceiling.of(rate), CPU_PER_GB.key: cpu_s * GB / total_bytes}


def _fill(clients: Clients, broker: Broker, topic: str, load: ProduceLoad, *, partitions: int) -> None:
    """Fill a topic to read from, and check that all of it is there."""
    create_topic(broker, topic, partitions=partitions)
    clients.produce(broker, topic, load)
    held = end_offsets(broker, topic, partitions=partitions)
    if held != load.records:
        raise ToolFailedError(f"{broker.name} holds {held:,} of {load.records:,} records sent")


def _small(records: int, *, batch_bytes: int, acks: str) -> ProduceLoad:
    return ProduceLoad(records=records, record_bytes=100, batch_bytes=batch_bytes, acks=acks, warm_up=records // 4)


def _large(records: int) -> ProduceLoad:
    return ProduceLoad(records=records, record_bytes=1024, batch_bytes=128 * 1024, acks="all", warm_up=records // 4)
