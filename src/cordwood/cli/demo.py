"""``cordwood demo``: a broker, a topic, a producer and a group of two consumers, in a few readable lines.

It checks what it shows: a record lost, doubled or out of order ends it with an error.
"""

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import NewTopic

from cordwood.client.connect import ClientError, Cluster, cause, sentence
from cordwood.client.groups import committed_offsets

from .options import positive
from .table import print_table

TOPIC = "orders"
GROUP = "kitchen"
PARTITIONS = 4
CUSTOMERS = 1000
SEED = 1
PATIENCE_S = 60

# A new group waits three seconds for more members. Two threads of one process need no such patience.
REBALANCE_DELAY = "group.initial.rebalance.delay.ms=300"
QUICK = {"heartbeat_interval_ms": 200}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--orders", type=positive, default=100_000, help="how many to send; default: 100000")


def run(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="cordwood-demo-") as directory, _broker(directory) as address:
        cluster = Cluster(address)
        _create_topic(cluster)
        sent = _produce(cluster, arguments.orders)
        consumers = _consume(cluster, arguments.orders)
        _check_committed(cluster, arguments.orders)
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
        "--set",
        REBALANCE_DELAY,
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
    """One of the group's members, and what it read: (customer, order) by partition."""

    name: str
    read: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    total: int = 0
    first_s: float = math.inf
    last_s: float = 0.0
    error: Exception | None = None

    def run(self, cluster: Cluster, done: Callable[[], bool]) -> None:
        """Read what the group assigns, until all of it is read."""
        try:
            self._run(cluster, done)
        except Exception as error:  # it belongs to the main thread
            self.error = error

    def _run(self, cluster: Cluster, done: Callable[[], bool]) -> None:
        consumer = cluster.member(GROUP, on_error=lambda _: None, auto_offset_reset="earliest", **QUICK)
        consumer.subscribe([TOPIC])
        deadline_s = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > deadline_s:
                raise ClientError(f"{self.name} did not reach the end in {PATIENCE_S} s")
            messages = [message for message in consumer.consume(1000, 0.05) if message.error() is None]
            self.first_s = min(self.first_s, time.monotonic() if messages else math.inf)
            for message in messages:
                self._take(message)
                consumer.store_offsets(message=message)
            self.last_s = time.monotonic() if messages else self.last_s
        consumer.close()  # commits what is stored, and leaves the group

    def _take(self, message: Message) -> None:
        partition, value, key = message.partition(), message.value(), message.key()
        assert partition is not None
        assert value is not None
        assert key is not None
        self.read[partition].append((key.decode(), json.loads(value)["order"]))
        self.total += 1


def _consume(cluster: Cluster, count: int) -> list[_Consumer]:
    """Read everything back with two consumers, who share the partitions as members of a group."""
    consumers = [_Consumer("the first"), _Consumer("the second")]

    def done() -> bool:
        return sum(c.total for c in consumers) >= count or any(c.error for c in consumers)

    threads = [threading.Thread(target=c.run, args=(cluster, done)) for c in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for consumer in consumers:
        if consumer.error is not None:
            raise consumer.error
    took_s = max(c.last_s for c in consumers) - min(c.first_s for c in consumers)
    shares = " and ".join(f"{c.total:,}" for c in consumers)
    print(f"The group {GROUP!r} of two consumers read them back: {shares} orders, {count / took_s:,.0f}/s together.")
    return consumers


def _check_committed(cluster: Cluster, count: int) -> None:
    committed = committed_offsets(cluster.admin(), GROUP)
    if sum(committed.values()) != count:
        raise ClientError(f"{sum(committed.values())} of {count} orders are committed")
    print("It has committed all of them: whoever comes next in its name starts where it ended.\n")


def _show(consumers: list[_Consumer], sent: list[tuple[str, int]]) -> None:
    print_table(
        ["partition", "read by", "orders", "customers"],
        sorted(
            [str(p), c.name, str(len(orders)), str(len({customer for customer, _ in orders}))]
            for c in consumers
            for p, orders in c.read.items()
        ),
    )
    homes = Counter(customer for customer, _ in {(o[0], p) for c in consumers for p in c.read for o in c.read[p]})
    if max(homes.values()) > 1:
        raise ClientError("a customer's orders are in two partitions")
    shares = [orders for consumer in consumers for orders in consumer.read.values()]
    if sorted(n for orders in shares for _, n in orders) != [n for _, n in sent]:
        raise ClientError("orders were lost or doubled")
    if any(orders != sorted(orders, key=lambda o: o[1]) for orders in shares):
        raise ClientError("orders changed places")
    print("\nEvery order came back once; each customer's are in one partition, in the order they were sent.")
