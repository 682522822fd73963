"""A client in a process of its own that rides through a failover: ``cluster.rider CLIENT BOOTSTRAP TOPIC NAME``.

It sends a record every few milliseconds, waits for nobody to help it, and reads all of the topic in a group of its own.
What it does it prints in the words of ``checker.py``; what its client *tells it* (an exception, a failed record) is an
"error", which nobody wants to see. It stops sending when it reads a line, says "stopped" when everything it sent is
acknowledged, and ends when its standard input does.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Final

import aiokafka
import confluent_kafka
import kafka

PARTITIONS: Final = 2
PAUSE_S: Final = 0.01
POLL_S: Final = 0.1
LIMIT_S: Final = 60.0
STDOUT: Final = 1


class Voice:
    """What a rider says, and what it is told."""

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.name = name
        self.stopping = threading.Event()
        self.ending = threading.Event()
        self.say(kind="producer", producer=name, ordered=True, repeats=False)

    def listen(self) -> None:
        sys.stdin.readline()
        self.stopping.set()
        sys.stdin.read()
        self.ending.set()

    def say(self, **line: object) -> None:
        """One line in one write."""
        os.write(STDOUT, (json.dumps(line) + "\n").encode())

    def sent(self, number: int) -> tuple[int, bytes]:
        """Where the next record goes, and what it is."""
        value = f"{self.name}:{number:06}"
        self.say(kind="sent", producer=self.name, topic=self.topic, partition=number % PARTITIONS, value=value)
        return number % PARTITIONS, value.encode()

    def acknowledged(self, value: bytes, offset: int) -> None:
        self.say(kind="acknowledged", producer=self.name, value=value.decode(), offset=offset)

    def read(self, partition: int, offset: int, value: bytes | None) -> None:
        place = {"topic": self.topic, "partition": partition}
        self.say(kind="read", reader=self.name, **place, offset=offset, value=(value or b"").decode())

    def error(self, error: object) -> None:
        self.say(kind="error", rider=self.name, text=repr(error))

    def stopped(self) -> None:
        self.say(kind="stopped", rider=self.name)


def ride_confluent(voice: Voice) -> None:
    reading = threading.Thread(target=_read_confluent, args=(voice,))
    reading.start()
    producer = confluent_kafka.Producer({"bootstrap.servers": voice.bootstrap, "enable.idempotence": True})

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            voice.error(error)
        else:
            voice.acknowledged(message.value() or b"", offset if (offset := message.offset()) is not None else -1)

    for number in count():
        if voice.stopping.wait(PAUSE_S):
            break
        partition, value = voice.sent(number)
        producer.produce(voice.topic, value, partition=partition, on_delivery=delivered)
        producer.poll(0)
    if producer.flush(LIMIT_S):
        voice.error("not all of it was delivered")
    voice.stopped()
    reading.join()


def _read_confluent(voice: Voice) -> None:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": voice.bootstrap,
        "group.id": voice.name,
        "auto.offset.reset": "earliest",
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([voice.topic])
    while not voice.ending.is_set():
        for message in consumer.consume(100, timeout=POLL_S):
            if (error := message.error()) is not None:
                voice.error(error)
            else:
                voice.read(message.partition() or 0, message.offset() or 0, message.value())
    consumer.close()


def ride_kafka_python(voice: Voice) -> None:
    reading = threading.Thread(target=_read_kafka_python, args=(voice,))
    reading.start()
    producer = kafka.KafkaProducer(bootstrap_servers=voice.bootstrap, acks="all", enable_idempotence=True)

    def delivered(value: bytes) -> Callable[[object], None]:
        return lambda told: voice.acknowledged(value, told.offset)  # type: ignore[attr-defined]

    for number in count():
        if voice.stopping.wait(PAUSE_S):
            break
        partition, value = voice.sent(number)
        future = producer.send(voice.topic, value, partition=partition)
        future.add_callback(delivered(value))
        future.add_errback(voice.error)
    producer.flush(timeout=LIMIT_S)
    producer.close()
    voice.stopped()
    reading.join()


def _read_kafka_python(voice: Voice) -> None:
    consumer = kafka.KafkaConsumer(
        voice.topic, bootstrap_servers=voice.bootstrap, group_id=voice.name, auto_offset_reset="earliest"
    )
    while not voice.ending.is_set():
        try:
            polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        except kafka.errors.KafkaError as error:
            voice.error(error)
            continue
        for records in polled.values():
            for record in records:
                voice.read(record.partition, record.offset, record.value)
    consumer.close()


def ride_aiokafka(voice: Voice) -> None:
    asyncio.run(_ride_aiokafka(voice))


async def _ride_aiokafka(voice: Voice) -> None:
    reading = asyncio.create_task(_read_aiokafka(voice))
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=voice.bootstrap, enable_idempotence=True) as producer:
        under_way = set()

        async def watch(value: bytes, future: "asyncio.Future[aiokafka.structs.RecordMetadata]") -> None:
            try:
                voice.acknowledged(value, (await future).offset)
            except Exception as error:
                voice.error(error)

        for number in count():
            if voice.stopping.is_set():
                break
            partition, value = voice.sent(number)
            try:
                future = await producer.send(voice.topic, value, partition=partition)
            except aiokafka.errors.KafkaError as error:
                voice.error(error)
                continue
            task = asyncio.create_task(watch(value, future))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await asyncio.sleep(PAUSE_S)
        await asyncio.wait_for(asyncio.gather(*under_way), LIMIT_S)
    voice.stopped()
    await reading


async def _read_aiokafka(voice: Voice) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        voice.topic, bootstrap_servers=voice.bootstrap, group_id=voice.name, auto_offset_reset="earliest"
    )
    async with consumer:
        while not voice.ending.is_set():
            try:
                polled = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
            except aiokafka.errors.KafkaError as error:
                voice.error(error)
                continue
            for records in polled.values():
                for record in records:
                    voice.read(record.partition, record.offset, record.value)


RIDES: Final = {"confluent": ride_confluent, "kafka-python": ride_kafka_python, "aiokafka": ride_aiokafka}


def main() -> None:
    client, bootstrap, topic, name = sys.argv[1:]
    voice = Voice(bootstrap, topic, name)
    threading.Thread(target=voice.listen, daemon=True).start()
    RIDES[client](voice)


if __name__ == "__main__":
    main()
