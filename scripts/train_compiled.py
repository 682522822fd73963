"""The load that trains a compiled build: with its counts, the compiler places code that runs together (decision 011).

``make compiled`` runs this on a build that counts, and then compiles once more with the counts. A broker in this
process gets what most brokers get: small and large batches, with and without idempotence, readers far behind and close
behind the writer, alone and in groups of both protocols, and commits. What is not trained (clusters) is compiled as
usual.
"""

import os
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from cordwood.testing import Broker

PARTITIONS: Final = 4
TIMEOUT_S: Final = 60.0

# A topic, how many records of how many bytes it gets, and how they are sent.
LOADS: Final[Mapping[str, tuple[int, int, Mapping[str, object]]]] = {
    "small": (300_000, 100, {"acks": 1, "batch.size": 8_192}),
    "middle": (300_000, 100, {"acks": "all", "batch.size": 65_536}),
    "large": (200_000, 1_024, {"acks": "all", "batch.size": 131_072, "enable.idempotence": True}),
}
PASSES: Final = 4
GROUP_PROTOCOLS: Final = ("classic", "consumer")
PINGS: Final = 2_000


def main() -> None:
    with Broker(settings={"num.partitions": PARTITIONS}) as broker:
        for topic, (count, size, how) in LOADS.items():
            fill(broker.bootstrap, topic, count, size, how)
            for _ in range(PASSES):
                read_alone(broker.bootstrap, topic, count)
            for protocol in GROUP_PROTOCOLS:
                read_in_group(broker.bootstrap, topic, count, protocol)
        ping(broker.bootstrap)


def fill(bootstrap: str, topic: str, count: int, size: int, how: Mapping[str, object]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 50_000, **how})
    value = os.urandom(size)
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(TIMEOUT_S) == 0, "all is acknowledged"


def read_alone(bootstrap: str, topic: str, count: int) -> None:
    reader = consumer(bootstrap, {"group.id": "nobody", "enable.auto.commit": False})
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    read(reader, count)
    reader.close()


def read_in_group(bootstrap: str, topic: str, count: int, protocol: str) -> None:
    settings = {"group.id": f"{topic}-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    reader = consumer(bootstrap, {**settings, "auto.commit.interval.ms": 10})
    reader.subscribe([topic])
    read(reader, count)
    reader.close()


def ping(bootstrap: str) -> None:
    """Send one record after another, each read before the next is sent, so that the reader's fetches are parked."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    reader = consumer(bootstrap, {"group.id": "nobody", "enable.auto.commit": False})
    producer.produce("pings", b"first", partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    reader.assign([TopicPartition("pings", 0, 0)])
    read(reader, 1)
    for _ in range(PINGS):
        producer.produce("pings", b"ping", partition=0)
        producer.poll(0)
        read(reader, 1)
    assert producer.flush(TIMEOUT_S) == 0
    reader.close()


def consumer(bootstrap: str, settings: Mapping[str, object]) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "fetch.wait.max.ms": 100, **settings})


def read(reader: Consumer, count: int) -> None:
    came = 0
    while came < count:
        messages: list[Message] = reader.consume(min(count - came, 10_000), TIMEOUT_S)
        assert messages, "records come in time"
        came += sum(message.error() is None for message in messages)


if __name__ == "__main__":
    main()
