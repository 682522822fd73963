"""Three real clients behind one small face, so that a test is written once and runs with each.

Every call opens a client, does one thing and closes it: nothing is shared between tests but the broker. Reading is by
assignment, never by a group.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, cast

import aiokafka
import confluent_kafka
import kafka

DEADLINE_S = 20.0
LARGEST_RECORD_BYTES = 2_000_000

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to send."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a record went, as its producer was told."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Read:
    """A record as a consumer got it."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None
    key: bytes | None
    headers: tuple[Header, ...]


class MakeTopic(Protocol):
    """Make the test's topic; its name."""

    def __call__(self, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str: ...


class Client(Protocol):
    """What each of the three can do."""

    name: str

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes: int = 100_000,
    ) -> list[Placed]: ...

    def consume(self, topic: str, starts: Mapping[int, int], count: int) -> list[Read]:
        """Read exactly *count* records from these partitions, each from this offset on."""
        ...

    def offsets_for_times(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int | None]: ...

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """First and next offset of partitions."""
        ...


class Librdkafka:
    """confluent-kafka. It hashes keys as Java does here, which is not its default."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes: int = 100_000,
    ) -> list[Placed]:
        settings: dict[str, str | int | bool] = {
            "bootstrap.servers": self.bootstrap,
            "partitioner": "murmur2_random",
            "sticky.partitioning.linger.ms": 0,
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": idempotent,
            "linger.ms": linger_ms,
            "batch.size": batch_bytes,
        }
        return self.send(confluent_kafka.Producer(settings), topic, records)

    def send(self, producer: confluent_kafka.Producer, topic: str, records: Sequence[Sent]) -> list[Placed]:
        """Send records with a producer that the caller has, and wait for what it is told of them."""
        told: dict[int, Placed | confluent_kafka.KafkaError] = {}

        def on_delivery(number: int) -> Callable[[confluent_kafka.KafkaError | None, confluent_kafka.Message], None]:
            def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
                told[number] = error if error is not None else Placed(_int(message.partition()), _int(message.offset()))

            return delivered

        for number, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=-1 if record.partition is None else record.partition,
                on_delivery=on_delivery(number),
                timestamp=record.timestamp_ms or 0,
                headers=list(record.headers),
            )
        assert producer.flush(DEADLINE_S) == 0
        return [_placed(told[number]) for number in range(len(records))]

    def consumer(self, **settings: str | int | bool | Callable[..., None]) -> confluent_kafka.Consumer:
        dotted = {name if callable(value) else name.replace("_", "."): value for name, value in settings.items()}
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "never-joined",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **dotted,
            }
        )

    def consume(self, topic: str, starts: Mapping[int, int], count: int) -> list[Read]:
        consumer = self.consumer()
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, place, start) for place, start in starts.items()])
            return self.read(consumer, count)
        finally:
            consumer.close()

    def read(self, consumer: confluent_kafka.Consumer, count: int) -> list[Read]:
        found: list[Read] = []
        deadline = monotonic() + DEADLINE_S
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            for message in consumer.consume(count - len(found), timeout=1.0):
                if (error := message.error()) is not None:
                    raise confluent_kafka.KafkaException(error)
                found.append(read_from_librdkafka(message))
        return found

    def offsets_for_times(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        consumer = self.consumer()
        try:
            asked = [confluent_kafka.TopicPartition(topic, place, time_ms) for place, time_ms in times_ms.items()]
            found = consumer.offsets_for_times(asked, timeout=DEADLINE_S)
        finally:
            consumer.close()
        return {place.partition: place.offset if place.offset >= 0 else None for place in found}

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        consumer = self.consumer()
        try:
            asked = {place: confluent_kafka.TopicPartition(topic, place) for place in partitions}
            marks = {place: consumer.get_watermark_offsets(asked[place], timeout=DEADLINE_S) for place in asked}
        finally:
            consumer.close()
        return {place: (mark[0], mark[1]) for place, mark in marks.items() if mark is not None}


def _placed(told: Placed | confluent_kafka.KafkaError) -> Placed:
    if not isinstance(told, Placed):
        raise confluent_kafka.KafkaException(told)
    return told


def _int(number: int | None) -> int:
    """librdkafka has no offset for what nobody acknowledged; the other clients write -1."""
    return -1 if number is None else number


def read_from_librdkafka(message: confluent_kafka.Message) -> Read:
    headers = message.headers()
    return Read(
        partition=_int(message.partition()),
        offset=_int(message.offset()),
        timestamp_ms=message.timestamp()[1],
        value=message.value(),
        key=message.key(),
        headers=tuple(cast("list[Header]", headers or [])),
    )


class Aiokafka:
    """aiokafka, each call in an event loop of its own."""

    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes: int = 100_000,
    ) -> list[Placed]:
        async def send() -> list[Placed]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=linger_ms,
                max_batch_size=batch_bytes,
                max_request_size=LARGEST_RECORD_BYTES,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                told = await asyncio.gather(*futures)
            # With acks 0 aiokafka tells nothing at all.
            return [Placed(-1, -1) if one is None else Placed(one.partition, one.offset) for one in told]

        return asyncio.run(asyncio.wait_for(send(), DEADLINE_S))

    def consumer(self, **settings: object) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, enable_auto_commit=False, auto_offset_reset="none", **settings
        )

    def consume(self, topic: str, starts: Mapping[int, int], count: int) -> list[Read]:
        async def read() -> list[Read]:
            async with self.consumer() as consumer:
                places = {place: aiokafka.TopicPartition(topic, place) for place in starts}
                consumer.assign(list(places.values()))
                for place, start in starts.items():
                    consumer.seek(places[place], start)
                return [read_from_kafka(await consumer.getone()) for _ in range(count)]

        return asyncio.run(asyncio.wait_for(read(), DEADLINE_S))

    def offsets_for_times(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        async def find() -> dict[int, int | None]:
            async with self.consumer() as consumer:
                asked = {aiokafka.TopicPartition(topic, place): time_ms for place, time_ms in times_ms.items()}
                found = await consumer.offsets_for_times(asked)
            return {place.partition: None if hit is None else hit.offset for place, hit in found.items()}

        return asyncio.run(asyncio.wait_for(find(), DEADLINE_S))

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        async def find() -> dict[int, tuple[int, int]]:
            async with self.consumer() as consumer:
                places = [aiokafka.TopicPartition(topic, place) for place in partitions]
                first = await consumer.beginning_offsets(places)
                after = await consumer.end_offsets(places)
            return {place.partition: (first[place], after[place]) for place in places}

        return asyncio.run(asyncio.wait_for(find(), DEADLINE_S))


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        linger_ms: int = 5,
        batch_bytes: int = 100_000,
    ) -> list[Placed]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            linger_ms=linger_ms,
            batch_size=batch_bytes,
            max_request_size=LARGEST_RECORD_BYTES,
        )
        with closing(producer):
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            told = [future.get(timeout=DEADLINE_S) for future in futures]
        return [Placed(one.partition, one.offset) for one in told]

    def consumer(self, **settings: object) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            **settings,
        )

    def consume(self, topic: str, starts: Mapping[int, int], count: int) -> list[Read]:
        with closing(self.consumer()) as consumer:
            places = {place: kafka.TopicPartition(topic, place) for place in starts}
            consumer.assign(list(places.values()))
            for place, start in starts.items():
                consumer.seek(places[place], start)
            return self.read(consumer, count)

    def read(self, consumer: kafka.KafkaConsumer, count: int) -> list[Read]:
        found: list[Read] = []
        deadline = monotonic() + DEADLINE_S
        while len(found) < count:
            assert monotonic() < deadline, f"{len(found)} of {count} records came"
            for records in consumer.poll(timeout_ms=1_000, max_records=count - len(found)).values():
                found += [read_from_kafka(record) for record in records]
        return found

    def offsets_for_times(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int | None]:
        with closing(self.consumer()) as consumer:
            asked = {kafka.TopicPartition(topic, place): time_ms for place, time_ms in times_ms.items()}
            found = consumer.offsets_for_times(asked)
        return {place.partition: None if hit is None else hit.offset for place, hit in found.items()}

    def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        with closing(self.consumer()) as consumer:
            places = [kafka.TopicPartition(topic, place) for place in partitions]
            first = consumer.beginning_offsets(places)
            after = consumer.end_offsets(places)
        return {place.partition: (first[place], after[place]) for place in places}


class _KafkaRecord(Protocol):
    """What aiokafka and kafka-python, which have a common ancestor, call a consumer's record."""

    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key: bytes | None
    headers: Sequence[Header]


def read_from_kafka(record: _KafkaRecord) -> Read:
    return Read(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        value=record.value,
        key=record.key,
        headers=tuple((name, value) for name, value in record.headers),
    )


DRIVERS = (Librdkafka, Aiokafka, KafkaPython)


def clients(bootstrap: str) -> list[Client]:
    """All of them, ready for one broker."""
    return [driver(bootstrap) for driver in DRIVERS]
