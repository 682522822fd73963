"""The demo's second act: a Spark job that reads the orders, joins, aggregates, and writes a topic and a table.

The job is ``cordwood.spark.example``, in a process of its own. What it has written is compared with the expected
result.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaError, TopicPartition

from cordwood.client.connect import ClientError, Cluster
from cordwood.spark.example.job import LATENESS_MS, WINDOW_MS, Job
from cordwood.spark.pipelines import journal
from cordwood.spark.pipelines.journal import Tail
from cordwood.spark.pipelines.plot import write_plot
from cordwood.spark.pipelines.reasons import reason
from cordwood.spark.pipelines.status import Flow, Status

from .demo_orders import CUSTOMERS, PARTITIONS, PATIENCE_S, SEED, Order, Sender, create_topic, customer_name
from .drawing import bar, one_line, sparkline
from .groups_describe import describe
from .pipeline_view import LINE, SPINNER, Catchup

CITIES = ("Bergen", "Ghent", "Graz", "Porto", "Vilnius")
MOVED = 100
"""How many customers have a second record, with another city."""
LOOK_S = 0.1
BATCHES = 4

Sums = dict[tuple[str, int], tuple[int, int]]
"""Number of orders and sum in cents, by city and start of the window."""


class Row(NamedTuple):
    city: str
    start_ms: int
    orders: int
    cents: int


def show_job(cluster: Cluster, orders: Sequence[Order], directory: str, plot: str | None) -> None:
    """The whole act."""
    os.mkdir(directory)
    job = Job(cluster.bootstrap, directory, batch_records=len(orders) // BATCHES + PARTITIONS)
    cities = produce_customers(cluster, job, orders[-1].time_ms)
    show_outcome(cluster, job, orders, cities, _run(job), plot)


def show_outcome(
    cluster: Cluster, job: Job, orders: Sequence[Order], cities: Mapping[str, str], status: Status, plot: str | None
) -> None:
    """Compare what the job has written with what it should have.

    Raises:
        ClientError: there is a difference.
    """
    _show_flows(status, len(orders))
    rows = _read(cluster, job.revenue)
    expected = sums(orders, cities, closed_before_ms=orders[-1].time_ms - LATENESS_MS)
    if {(row.city, row.start_ms): (row.orders, row.cents) for row in rows} != expected or len(rows) != len(expected):
        raise ClientError(f"the topic {job.revenue} has other sums than the orders have")
    _check_table(job, orders)
    _draw(rows)
    print(
        f"\nEvery sum is right, and every order is in the Parquet table once. `cordwood groups describe {job.group}`:\n"
    )
    describe(cluster.admin(), argparse.Namespace(all=False, groups=[job.group], json=False))
    if plot is not None:
        write_plot(status.flows.values(), "cordwood demo", Path(plot))
        print(f"\nThe plot is in {plot}.")


def produce_customers(cluster: Cluster, job: Job, time_ms: int) -> dict[str, str]:
    """Fill the compacted topic; returns where each customer lives in the end."""
    create_topic(cluster, job.customers, 2, {"cleanup.policy": "compact"})
    create_topic(cluster, job.revenue, 1)
    dice = random.Random(SEED)
    sender, cities = Sender(cluster, CUSTOMERS + MOVED), {}
    for number in [*range(CUSTOMERS), *dice.sample(range(CUSTOMERS), MOVED)]:
        name, city = customer_name(number), dice.choice(CITIES)
        cities[name] = city
        sender.send(job.customers, name, json.dumps({"name": f"Customer {number}", "city": city}), time_ms)
    sender.finish()
    print(f"The compacted topic {job.customers!r} knows {CUSTOMERS:,} customers, {MOVED} of whom have moved since.")
    return cities


def sums(orders: Sequence[Order], cities: Mapping[str, str], *, closed_before_ms: int) -> Sums:
    """What the job should find, for windows that end by this time."""
    found: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for order in orders:
        start_ms = order.time_ms - order.time_ms % WINDOW_MS
        if start_ms + WINDOW_MS <= closed_before_ms:
            entry = found[cities[order.customer], start_ms]
            entry[0] += 1
            entry[1] += order.cents
    return {key: (count, cents) for key, (count, cents) in found.items()}


def _run(job: Job) -> Status:
    """Run the job to its end, and show its progress."""
    log = Path(job.directory) / "spark.log"
    command = [sys.executable, "-m", "cordwood.spark.example.main", job.as_argument()]
    started_s = time.monotonic()
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            status = _follow(process, job, started_s)
        finally:
            process.terminate()
            process.wait()  # the with statement waits only a moment after Ctrl-C, and the files are deleted next
    if process.returncode != 0 and status.session != journal.COMPLETED:
        raise ClientError(f"the job on Spark failed: {reason(log.read_text('utf-8', 'replace'))}")
    return status


def _follow(process: "subprocess.Popen[bytes]", job: Job, started_s: float) -> Status:
    status, catchup, tail = Status(), Catchup(), Tail(job.journal)
    visible, turn, running_s = sys.stderr.isatty(), 0, 0.0
    ended = False
    while not ended:
        try:
            process.wait(LOOK_S)
            ended = True
        except subprocess.TimeoutExpired:
            pass
        for entry in tail.new():
            status.take(entry)
            if entry.kind == journal.SESSION and entry.state == journal.RUNNING:
                running_s = time.monotonic()
                _say(f"Spark is ready, {running_s - started_s:.0f} s after it was started.", visible=visible)
            ended |= entry.kind == journal.SESSION and entry.state == journal.COMPLETED
            if entry.end:
                catchup.take(entry)
        if visible and not ended:
            turn += 1
            text = catchup.text(time.monotonic() - running_s) if catchup.total else "Spark is at work"
            print(f"{LINE}{one_line(f'{SPINNER[turn % len(SPINNER)]} {text}')}", end="", file=sys.stderr, flush=True)
    _say("", visible=visible)
    return status


def _say(text: str, *, visible: bool) -> None:
    """A line, in place of the one that moves."""
    if visible:
        print(LINE, end="", file=sys.stderr, flush=True)
    if text:
        print(text, flush=True)


def _show_flows(status: Status, orders: int) -> None:
    for name, what in (
        ("table", "put all orders into a Parquet table"),
        ("revenue", "added up each city's, by 10 minutes"),
    ):
        flow = status.flows.get(name, Flow(name))
        batches = [entry for entry in flow.batches if entry.rows]
        if sum(entry.rows for entry in batches) != orders:
            raise ClientError(f"the stream {name!r} read {flow.rows} of {orders} orders")
        speeds = sparkline([entry.rows_per_s for entry in batches])
        fastest = max(entry.rows_per_s for entry in batches)
        print(f"A stream {what}: {len(batches)} batches, rows/s {speeds}, up to {fastest:,.0f}.")


def _read(cluster: Cluster, topic: str) -> list[Row]:
    """All records of the result's topic, read by a client that has nothing to do with Spark."""
    rows: list[Row] = []
    consumer = cluster.consumer(on_error=lambda _: None, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0, 0)])
    while (message := consumer.poll(PATIENCE_S)) is not None:
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return rows
        value = message.value()
        assert value is not None
        rows.append(Row(**json.loads(value)))
    raise ClientError(f"the topic {topic} could not be read")


def _check_table(job: Job, orders: Sequence[Order]) -> None:
    from pyarrow import parquet

    numbers = parquet.read_table(job.table, columns=["order"]).column("order").to_pylist()
    if sorted(numbers) != [order.number for order in orders]:
        raise ClientError(f"the table has {len(numbers)} orders, and they are not those that were sent")


def _draw(rows: Sequence[Row]) -> None:
    starts = sorted({row.start_ms for row in rows})
    totals = {city: sum(row.cents for row in rows if row.city == city) for city in CITIES}
    print(f"\nThe topic's sums, of the {len(starts)} windows that are closed; for the others orders may still come:\n")
    width = max(map(len, CITIES))
    for city in CITIES:
        by_window = {row.start_ms: row.cents for row in rows if row.city == city}
        line = sparkline([by_window.get(start, 0) for start in starts])
        print(f"  {city:{width}}  {line}  {totals[city] / 100:>12,.2f}  {bar(totals[city], max(totals.values()), 30)}")
