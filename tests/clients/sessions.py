"""Clients that stay: a tail waits at the end of a topic, a feed goes on sending, whatever happens to the broker."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import aiokafka
import confluent_kafka
import kafka

from clients.drivers import (
    DEADLINE_S,
    Aiokafka,
    KafkaPython,
    Librdkafka,
    Placed,
    Read,
    Sent,
    read_from_kafka,
)
from support.waiting import eventually

# Longer than a test waits: only a record that comes ends a fetch in time.
FETCH_WAIT_MS = 25_000


@dataclass(frozen=True, slots=True)
class Tail:
    """A consumer that stands at the end."""

    nothing: Callable[[], bool]  # look for a moment: is there no record?
    read: Callable[[int], list[Read]]  # wait for so many


Feed = Callable[[Sequence[bytes]], list[Placed]]


@contextmanager
def librdkafka_tail(bootstrap: str, topic: str, partitions: int) -> Iterator[Tail]:
    driver = Librdkafka(bootstrap)
    fetching: set[str] = set()

    def on_statistics(text: str) -> None:
        """Which partitions are being read? Only this tells that "the end" has become an offset."""
        places = json.loads(text)["topics"].get(topic, {"partitions": {}})["partitions"]
        fetching.update(place for place, state in places.items() if state["fetch_state"] == "active")

    consumer = driver.consumer(fetch_wait_max_ms=FETCH_WAIT_MS, statistics_interval_ms=20, stats_cb=on_statistics)
    try:
        end = confluent_kafka.OFFSET_END
        consumer.assign([confluent_kafka.TopicPartition(topic, place, end) for place in range(partitions)])
        wanted = {str(place) for place in range(partitions)}
        eventually(lambda: consumer.poll(0) is None and wanted <= fetching, what="every partition to be read")
        yield Tail(lambda: consumer.poll(0.2) is None, lambda count: driver.read(consumer, count))
    finally:
        consumer.close()


@contextmanager
def aiokafka_tail(bootstrap: str, topic: str, partitions: int) -> Iterator[Tail]:
    places = [aiokafka.TopicPartition(topic, place) for place in range(partitions)]
    with asyncio.Runner() as runner:

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = Aiokafka(bootstrap).consumer(fetch_max_wait_ms=FETCH_WAIT_MS)
            await consumer.start()
            consumer.assign(places)
            await consumer.seek_to_end(*places)
            for place in places:
                await consumer.position(place)
            return consumer

        async def nothing() -> bool:
            return not await consumer.getmany(timeout_ms=200)

        async def read(count: int) -> list[Read]:
            async with asyncio.timeout(DEADLINE_S):
                return [read_from_kafka(await consumer.getone()) for _ in range(count)]

        consumer = runner.run(start())
        try:
            yield Tail(lambda: runner.run(nothing()), lambda count: runner.run(read(count)))
        finally:
            runner.run(consumer.stop())


@contextmanager
def kafka_python_tail(bootstrap: str, topic: str, partitions: int) -> Iterator[Tail]:
    driver = KafkaPython(bootstrap)
    consumer = driver.consumer(fetch_max_wait_ms=FETCH_WAIT_MS)
    try:
        places = [kafka.TopicPartition(topic, place) for place in range(partitions)]
        consumer.assign(places)
        consumer.seek_to_end(*places)
        for place in places:
            consumer.position(place)
        yield Tail(lambda: not consumer.poll(timeout_ms=200), lambda count: driver.read(consumer, count))
    finally:
        consumer.close()


@contextmanager
def librdkafka_feed(bootstrap: str, topic: str) -> Iterator[Feed]:
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0}
    driver = Librdkafka(bootstrap)
    producer = confluent_kafka.Producer(settings)
    yield lambda values: driver.send(producer, topic, [Sent(value) for value in values])


@contextmanager
def aiokafka_feed(bootstrap: str, topic: str) -> Iterator[Feed]:
    with asyncio.Runner() as runner:

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
            await producer.start()
            return producer

        async def send(values: Sequence[bytes]) -> list[Placed]:
            async with asyncio.timeout(DEADLINE_S):
                told = [await producer.send_and_wait(topic, value) for value in values]
            return [Placed(one.partition, one.offset) for one in told]

        producer = runner.run(start())
        try:
            yield lambda values: runner.run(send(values))
        finally:
            runner.run(producer.stop())


@contextmanager
def kafka_python_feed(bootstrap: str, topic: str) -> Iterator[Feed]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)

    def send(values: Sequence[bytes]) -> list[Placed]:
        told = [producer.send(topic, value).get(timeout=DEADLINE_S) for value in values]
        return [Placed(one.partition, one.offset) for one in told]

    try:
        yield send
    finally:
        producer.close()


TAILS = {"confluent-kafka": librdkafka_tail, "aiokafka": aiokafka_tail, "kafka-python": kafka_python_tail}
FEEDS = {"confluent-kafka": librdkafka_feed, "aiokafka": aiokafka_feed, "kafka-python": kafka_python_feed}
