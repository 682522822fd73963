"""The rows of Spark's throughput: a batch read, a stream that ends by itself, a write.

Ours reads and writes this broker, Spark's Kafka connector reads and writes Apache Kafka; one session, the same query,
the same records. What a query finds is checked.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .brokers import Broker
from .clients import Clients, create_topic, delete_topic, end_offsets
from .metrics import Metric
from .page_reserve import PageReserve
from .processes import Processes, ToolFailedError
from .rows import PARTITIONS, Row
from .scale import Scale
from .spark_fresh import FirstQueryRow, PeakRow
from .spark_load import FORMATS, RECORD_BYTES, aggregate, check, connection, fill
from .spark_metrics import READ_DIRECT, READ_FETCH, STREAM_DIRECT, STREAM_FETCH, WRITE
from .spark_session import Spark
from .spark_trickle import TrickleRow

MICRO_BATCHES: Final = 5
STREAM_LIMIT_S: Final = 600
STORED_PER_ROW: Final = 120
# The options for each way that we can read: the files are used unless an option says no.
ROADS: Final[Mapping[str, Mapping[str, str]]] = {"direct": {}, "fetch": {"direct": "never"}}


def spark_rows(clients: Clients, processes: Processes, spark: Spark, scale: Scale) -> list[Row]:
    """Every row about Spark. Those that start sessions of their own come first, while no other session runs."""
    return [
        FirstQueryRow(clients, processes, spark.directory),
        PeakRow(clients, processes, spark.directory, scale.spark_peak_records),
        ReadRow(clients, spark, scale.spark_records, scale.spark_warm_ups),
        StreamRow(clients, spark, scale.spark_records, scale.spark_warm_ups),
        WriteRow(spark, scale.spark_rows, scale.spark_warm_ups),
        TrickleRow(clients, spark, scale.spark_trickle_batches, scale.spark_warm_ups),
    ]


@dataclass(slots=True)
class ReadRow:
    """Kafka's connector can read in one way only; its figure is compared with both of ours."""

    clients: Clients
    spark: Spark
    records: int
    warm_ups: int
    key: str = "spark-read"
    title: str = "Spark reads 100 B"
    metrics: Sequence[Metric] = (READ_DIRECT, READ_FETCH)

    def prepare(self, broker: Broker) -> None:
        fill(broker, self.clients, self._topic, self.records, partitions=PARTITIONS)
        for _ in range(self.warm_ups):
            self.measure(broker)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        if broker.name == "kafka":
            return dict.fromkeys(ROADS, self._rate(broker, {}))
        return {road: self._rate(broker, options) for road, options in ROADS.items()}

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, self._topic)

    def _rate(self, broker: Broker, options: Mapping[str, str]) -> float:
        """Thousands of records a second."""
        begin = time.perf_counter()
        count, size = self._read(broker, {**connection(broker), **options, "subscribe": self._topic})
        took_s = time.perf_counter() - begin
        check(broker, "records read", count, self.records)
        check(broker, "bytes read", size, self.records * RECORD_BYTES)
        return self.records / took_s / 1000

    def _read(self, broker: Broker, options: Mapping[str, str]) -> tuple[int, int]:
        """The number of records and the number of bytes read."""
        reader = self.spark.session.read.format(FORMATS[broker.name]).options(**options)
        (row,) = aggregate(reader.load()).collect()
        return row[0], row[1]

    @property
    def _topic(self) -> str:
        return f"bench-{self.key}"


@dataclass(slots=True)
class StreamRow(ReadRow):
    """From no checkpoint to the end of the topic, in a few micro-batches; start and stop of the query included."""

    key: str = "spark-stream"
    title: str = "Spark streams 100 B, AvailableNow"
    metrics: Sequence[Metric] = (STREAM_DIRECT, STREAM_FETCH)
    _queries: int = field(default=0)

    def _read(self, broker: Broker, options: Mapping[str, str]) -> tuple[int, int]:
        self._queries += 1
        session, table = self.spark.session, f"bench_stream_{self._queries}"
        reader = session.readStream.format(FORMATS[broker.name]).options(**options)
        reader = reader.option("startingOffsets", "earliest")
        reader = reader.option("maxOffsetsPerTrigger", self.records // MICRO_BATCHES)
        writer = aggregate(reader.load()).writeStream.format("memory").queryName(table).outputMode("complete")
        query = writer.trigger(availableNow=True).option("checkpointLocation", self.spark.checkpoint()).start()
        if not query.awaitTermination(STREAM_LIMIT_S):
            raise ToolFailedError(f"{broker.name}: a stream did not end within {STREAM_LIMIT_S} s")
        (row,) = session.table(table).collect()
        session.catalog.dropTempView(table)
        return row[0], row[1]


@dataclass(slots=True)
class WriteRow:
    """Rows with a key and a value of 100 bytes, made as they are written, from two tasks."""

    spark: Spark
    rows: int
    warm_ups: int
    key: str = "spark-write"
    title: str = "Spark writes 100 B"
    metrics: Sequence[Metric] = (WRITE,)
    _topics: int = field(default=0)

    def prepare(self, broker: Broker) -> None:
        for _ in range(self.warm_ups):
            self.measure(broker)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        self._topics += 1
        topic = f"bench-{self.key}-{self._topics}"
        create_topic(broker, topic, partitions=PARTITIONS)
        frame = self.spark.session.range(0, self.rows, 1, 2).selectExpr(
            "cast(cast(id AS string) AS binary) AS key",
            f"cast(rpad(cast(id AS string), {RECORD_BYTES}, 'cordwood') AS binary) AS value",
        )
        writer = frame.write.format(FORMATS[broker.name]).options(**connection(broker)).option("topic", topic)
        with PageReserve(self.rows * STORED_PER_ROW, broker.written_bytes):
            begin = time.perf_counter()
            writer.mode("append").save()
            took_s = time.perf_counter() - begin
        check(broker, "rows stored", end_offsets(broker, topic, partitions=PARTITIONS), self.rows)
        delete_topic(broker, topic)
        broker.wait_until_gone(topic)
        return {WRITE.key: self.rows / took_s / 1000}

    def finish(self, broker: Broker) -> None:
        """Nothing is left."""
