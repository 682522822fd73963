"""The job: orders joined with customers, into a Parquet table and a topic.

Orders arrive as JSON. Each is joined with the latest record of its customer in a compacted topic. All of them go to a
Parquet table, and the revenue of each city, by windows of ten minutes, to a topic. A window is written once, when the
watermark has passed its end: the last windows stay open for late orders.

``python -m cordwood.spark.example.main`` is a process of its own, which gets its job as an argument and writes its
progress into a journal.
"""

import json
import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from cordwood.spark import table
from cordwood.spark.pipelines import journal
from cordwood.spark.pipelines.journal import Entry, Journal
from cordwood.spark.pipelines.recorder import Recorder, now_ms

from .job import LATENESS_MS, WINDOW_MS, Job

ORDER: Final = "order BIGINT, customer STRING, cents BIGINT"
CUSTOMER: Final = "name STRING, city STRING"


def run(job: Job, spark: SparkSession) -> None:
    """Bring table and topic up to date, then return."""
    known = f.broadcast(customers(job, spark))
    # Two streams in one group would move its offsets back and forth, so the group follows one of them.
    queries = [
        start_table(job, parsed_orders(job, spark).join(known, "customer")),
        start_revenue(job, parsed_orders(job, spark, group=job.group).join(known, "customer")),
    ]
    for query in queries:
        query.awaitTermination()


def parsed_orders(job: Job, spark: SparkSession, group: str | None = None) -> DataFrame:
    records = (
        spark.readStream.format("cordwood")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("subscribe", job.orders)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", job.batch_records)
    )
    if group is not None:
        records = records.option("group", group)
    order = f.from_json(f.col("value").cast("string"), ORDER)
    return (
        records.load()
        .select(order.alias("order"), f.col("timestamp").alias("ordered_at"))
        .select("order.*", "ordered_at")
    )


def customers(job: Job, spark: SparkSession) -> DataFrame:
    """The topic is compacted, so as a table it has one row for each key."""
    records = table(spark, job.customers, bootstrap=job.bootstrap)
    customer = f.from_json(f.col("value").cast("string"), CUSTOMER)
    named = records.select(f.col("key").cast("string").alias("customer"), customer.alias("known"))
    return named.select("customer", "known.*").cache()


def start_table(job: Job, orders: DataFrame) -> StreamingQuery:
    return (
        orders.writeStream.queryName("table")
        .format("parquet")
        .option("path", str(job.table))
        .option("checkpointLocation", f"{job.directory}/table-state")
        .trigger(availableNow=True)
        .start()
    )


def start_revenue(job: Job, orders: DataFrame) -> StreamingQuery:
    window = f.window("ordered_at", f"{WINDOW_MS} milliseconds")
    revenue = (
        orders.withWatermark("ordered_at", f"{LATENESS_MS} milliseconds")
        .groupBy(window.alias("window"), "city")
        .agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))
        .select("city", f.unix_millis("window.start").alias("start_ms"), "orders", "cents")
    )
    return (
        revenue.select(f.col("city").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .writeStream.queryName("revenue")
        .format("cordwood")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("topic", job.revenue)
        .option("checkpointLocation", f"{job.directory}/revenue-state")
        .trigger(availableNow=True)
        .start()
    )


def make_session(directory: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": Path(directory).as_uri(),
        # A job of half a minute is over before the better compiler pays off.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[2]").appName("cordwood demo")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    job = Job(**json.loads(sys.argv[1]))
    log = Journal(job.journal)
    spark = make_session(job.directory)
    spark.streams.addListener(Recorder(log, Path(job.directory)))
    log.write(Entry(journal.SESSION, now_ms(), state=journal.RUNNING))
    run(job, spark)
    spark.stop()  # which also waits for the listener
    log.write(Entry(journal.SESSION, now_ms(), state=journal.COMPLETED))


if __name__ == "__main__":
    main()
