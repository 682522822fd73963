"""What a micro-batch costs that has next to nothing to do: a few rows per batch, one batch after another."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from .brokers import Broker
from .clients import Clients, delete_topic
from .metrics import Metric
from .processes import ToolFailedError
from .rows import PARTITIONS
from .spark_load import FORMATS, connection, fill
from .spark_metrics import BATCH_FOUR, BATCH_ONE
from .spark_session import Spark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_PER_BATCH: Final = 8
FIRST_BATCHES: Final = 10
"""Not counted: in these, workers start and plans are compiled."""
LIMIT_S: Final = 300.0
POLL_S: Final = 1
TOPICS: Final[Mapping[str, int]] = {BATCH_FOUR.key: PARTITIONS, BATCH_ONE.key: 1}


@dataclass(slots=True)
class TrickleRow:
    """The topic is filled beforehand and each micro-batch is limited, so that there is always another one. The broker
    is asked for the latest offsets before each, as it is when records arrive slowly."""

    clients: Clients
    spark: Spark
    batches: int
    warm_ups: int
    key: str = "spark-trickle"
    title: str = "Spark streams 8 rows a batch"
    metrics: Sequence[Metric] = (BATCH_FOUR, BATCH_ONE)

    def prepare(self, broker: Broker) -> None:
        # Partitions do not get exactly the same number of records, so there are more than needed.
        records = 4 * ROWS_PER_BATCH * (self.batches + FIRST_BATCHES)
        for partitions in TOPICS.values():
            topic = self._topic(partitions)
            fill(broker, self.clients, topic, records, partitions=partitions, batch_bytes=1024)
        for _ in range(self.warm_ups):
            self.measure(broker)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        return {name: self._median_ms(broker, self._topic(partitions)) for name, partitions in TOPICS.items()}

    def finish(self, broker: Broker) -> None:
        for partitions in TOPICS.values():
            delete_topic(broker, self._topic(partitions))

    def _topic(self, partitions: int) -> str:
        return f"bench-{self.key}-{partitions}"

    def _median_ms(self, broker: Broker, topic: str) -> float:
        reader = self.spark.session.readStream.format(FORMATS[broker.name]).options(**connection(broker))
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        frame = reader.option("maxOffsetsPerTrigger", ROWS_PER_BATCH).load()
        frame = frame.selectExpr("value", "offset", "timestamp")
        query = frame.writeStream.format("noop").option("checkpointLocation", self.spark.checkpoint()).start()
        try:
            return median(self._batch_times_ms(broker, query)[FIRST_BATCHES:])
        finally:
            query.stop()

    def _batch_times_ms(self, broker: Broker, query: "StreamingQuery") -> list[float]:
        """Durations of the first micro-batches that had rows; the query runs until there are enough of them."""
        wanted = self.batches + FIRST_BATCHES
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if query.awaitTermination(POLL_S):
                break
            seen = [progress for progress in query.recentProgress if progress.numInputRows > 0]
            if len(seen) >= wanted:
                return [float(progress.durationMs["triggerExecution"]) for progress in seen[:wanted]]
        raise ToolFailedError(f"{broker.name}: a stream had not {wanted} batches within {LIMIT_S:.0f} s")
