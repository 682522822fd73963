"""``cordwood demo``: a broker, a topic, a producer and two consumers, in a few readable lines.

It checks what it shows: a record lost, doubled or out of order ends it with an error.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import NewTopic

from cordwood.client.connect import ClientError, Cluster, cause, sentence

from .options import positive
from .table import print_table

TOPIC = "orders"
PARTITIONS = 4
CUSTOMERS = 1000
SEED = 1
PATIENCE_S = 60


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--orders", type=positive, default=100_000, help="how many to send; default: 100000")


def run(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="cordwood-demo-") as directory, _broker(directory) as address:
        cluster = Cluster(address)
        _create_topic(cluster)
        sent = _produce(cluster, arguments.orders)
        consumers = _consume(cluster, arguments.orders)
        _show(consumers, sent)
    print("The broker stopped cleanly, and its data is gone. Start your own with `cordwood serve`.")
    return 0


@contextmanager
def _broker(directory: str) -> Iterator[str]:
    """The broker as a user starts it, in a process of its own; its address."""
    start_s = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "cordwood.cli",
        "serve",
        "--port",
        "0",
        "--data",
        directory,
        "--log-level",
        "warning",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = re.search(r"ready at (\S+),", process.stdout.readline())
            if ready is None:
                raise ClientError("the broker did not start")
            print(f"A broker is ready at {ready[1]}, {time.monotonic() - start_s:.2f} s after it was started.")
            yield ready[1]
        finally:
            process.terminate()
    if process.returncode != 0:
        raise ClientError(f"the broker ended with status {process.returncode}")


def _create_topic(cluster: Cluster) -> None:
    admin = cluster.admin()
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    except KafkaException as exception:
        raise ClientError(f"the topic was not created: {sentence(cause(exception))}") from None
    print(f"The topic {TOPIC!r} has {PARTITIONS} partitions.")


def _produce(cluster: Cluster, count: int) -> list[tuple[str, int]]:
    """Send orders of customers, in turn; what was sent."""
    dice = random.Random(SEED)
    orders = [(f"customer-{dice.randrange(CUSTOMERS):03}", number) for number in range(count)]
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = cluster.producer(linger_ms=5, enable_idempotence=True, queue_buffering_max_messages=count + 1)
    start_s = time.monotonic()
    for customer, number in orders:
        value = json.dumps({"order": number, "customer": customer, "cents": dice.randrange(100, 10_000)})
        producer.produce(TOPIC, value, customer, on_delivery=delivered)
        producer.poll(0)
    left = producer.flush(PATIENCE_S)
    if left or failures:
        raise ClientError(f"{left + len(failures)} orders were not taken")
    took_s = time.monotonic() - start_s
    print(f"A producer sent {count:,} orders of {CUSTOMERS:,} customers, keyed by customer: {count / took_s:,.0f}/s.")
    return orders


@dataclass(slots=True)
class _Consumer:
    """One of the consumers, and what it read: (customer, order) by partition."""

    name: str
    partitions: tuple[int, ...]
    read: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    error: Exception | None = None

    def run(self, cluster: Cluster) -> None:
        """Read the partitions to their ends."""
        try:
            self._run(cluster)
        except Exception as error:  # it belongs to the main thread
            self.error = error

    def _run(self, cluster: Cluster) -> None:
        consumer = cluster.consumer(on_error=lambda _: None, enable_partition_eof=True)
        consumer.assign([TopicPartition(TOPIC, p, OFFSET_BEGINNING) for p in self.partitions])
        ended = 0
        deadline_s = time.monotonic() + PATIENCE_S
        while ended < len(self.partitions):
            if time.monotonic() > deadline_s:
                raise ClientError(f"{self.name} did not reach the end in {PATIENCE_S} s")
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    self._take(message)
                else:
                    ended += 1
        consumer.close()

    def _take(self, message: Message) -> None:
        partition, value, key = message.partition(), message.value(), message.key()
        assert partition is not None
        assert value is not None
        assert key is not None
        self.read[partition].append((key.decode(), json.loads(value)["order"]))

    def total(self) -> int:
        return sum(map(len, self.read.values()))


def _consume(cluster: Cluster, count: int) -> list[_Consumer]:
    """Read everything back with two consumers at once, each with half of the partitions."""
    consumers = [_Consumer("the first", (0, 1)), _Consumer("the second", (2, 3))]
    threads = [threading.Thread(target=c.run, args=(cluster,)) for c in consumers]
    start_s = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - start_s
    for consumer in consumers:
        if consumer.error is not None:
            raise consumer.error
    shares = " and ".join(f"{c.total():,}" for c in consumers)
    print(
        f"Two consumers with two partitions each read them back: {shares} orders, {count / took_s:,.0f}/s together.\n"
    )
    return consumers


def _show(consumers: list[_Consumer], sent: list[tuple[str, int]]) -> None:
    read = {partition: orders for consumer in consumers for partition, orders in consumer.read.items()}
    print_table(
        ["partition", "read by", "orders", "customers"],
        (
            [str(p), c.name, str(len(c.read[p])), str(len({customer for customer, _ in c.read[p]}))]
            for c in consumers
            for p in c.partitions
        ),
    )
    homes = Counter(customer for orders in read.values() for customer in {c for c, _ in orders})
    if max(homes.values()) > 1:
        raise ClientError("a customer's orders are in two partitions")
    if sorted(n for orders in read.values() for _, n in orders) != [n for _, n in sent]:
        raise ClientError("orders were lost or doubled")
    if any(orders != sorted(orders, key=lambda o: o[1]) for orders in read.values()):
        raise ClientError("orders changed places")
    print("\nEvery order came back once; each customer's are in one partition, in the order they were sent.")
