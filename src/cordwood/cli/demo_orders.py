"""The demo's first act: a topic, a producer and a group of two consumers.

It checks what it shows: a record that is lost, duplicated or out of order ends it with an error.
"""

import json
import math
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import NewTopic

from cordwood.client.connect import ClientError, Cluster, cause, sentence
from cordwood.client.groups import committed_offsets

from .table import print_table

TOPIC = "orders"
GROUP = "kitchen"
PARTITIONS = 4
CUSTOMERS = 1000
SEED = 1
PATIENCE_S = 60
SPAN_MS = 2 * 3_600_000
"""The orders are those of the last two hours."""

QUICK = {"heartbeat_interval_ms": 200}


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    customer: str
    cents: int
    time_ms: int

    def as_json(self) -> str:
        return json.dumps({"order": self.number, "customer": self.customer, "cents": self.cents})


def create_topic(cluster: Cluster, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    admin = cluster.admin()  # without a reference it would be collected, along with its requests
    try:
        admin.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result()
    except KafkaException as exception:
        raise ClientError(f"the topic {name} was not created: {sentence(cause(exception))}") from None


def customer_name(number: int) -> str:
    return f"customer-{number:03}"


def make_orders(count: int, end_ms: int) -> list[Order]:
    """Orders of customers, one after the other until this time, with more of them in the middle."""
    dice = random.Random(SEED)
    return [
        Order(
            number,
            customer_name(dice.randrange(CUSTOMERS)),
            dice.randrange(100, 10_000),
            end_ms - SPAN_MS + int(SPAN_MS * _bent(number / count)),
        )
        for number in range(count)
    ]


def _bent(share: float) -> float:
    """Maps 0..1 to 0..1, always rising, slowest in the middle."""
    return share + 0.1 * math.sin(2 * math.pi * share)


class Sender:
    """Sends records, and says at the end whether all were acknowledged."""

    def __init__(self, cluster: Cluster, count: int) -> None:
        self._producer = cluster.producer(linger_ms=5, enable_idempotence=True, queue_buffering_max_messages=count + 1)
        self._failures: list[KafkaError] = []

    def send(self, topic: str, key: str, value: str, time_ms: int) -> None:
        self._producer.produce(topic, value, key, timestamp=time_ms, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def finish(self) -> None:
        left = self._producer.flush(PATIENCE_S)
        if left or self._failures:
            raise ClientError(f"{left + len(self._failures)} records were not taken")


def show_group(cluster: Cluster, orders: Sequence[Order]) -> None:
    """The whole act."""
    create_topic(cluster, TOPIC, PARTITIONS)
    print(f"The topic {TOPIC!r} has {PARTITIONS} partitions.")
    _produce(cluster, orders)
    consumers = _consume(cluster, len(orders))
    _check_committed(cluster, len(orders))
    _show(consumers, orders)


def _produce(cluster: Cluster, orders: Sequence[Order]) -> None:
    sender = Sender(cluster, len(orders))
    start_s = time.monotonic()
    for order in orders:
        sender.send(TOPIC, order.customer, order.as_json(), order.time_ms)
    sender.finish()
    rate = len(orders) / (time.monotonic() - start_s)
    print(f"A producer sent {len(orders):,} orders of {CUSTOMERS:,} customers, keyed by customer: {rate:,.0f}/s.")


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
        """Read the assigned partitions until everything has been read."""
        try:
            self._run(cluster, done)
        except Exception as error:  # it is raised in the main thread
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
    """Read everything back with two consumers, which share the partitions as members of a group."""
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


def _show(consumers: list[_Consumer], sent: Sequence[Order]) -> None:
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
    if sorted(n for orders in shares for _, n in orders) != [order.number for order in sent]:
        raise ClientError("orders were lost or doubled")
    if any(orders != sorted(orders, key=lambda o: o[1]) for orders in shares):
        raise ClientError("orders changed places")
    print("\nEvery order came back once; each customer's are in one partition, in the order they were sent.")
