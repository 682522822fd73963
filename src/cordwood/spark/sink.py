"""The sink: ``df.write.format("cordwood")`` and ``df.writeStream.format("cordwood")``.

Rows are written at least once: a task that Spark repeats writes its rows again, and nothing is taken back when a job
fails. What a task has written, and for which batch of which query, goes to the driver with its commit message;
exactly-once writing could be built on that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from cordwood.errors import ConfigError

from .option_names import Use, check_names
from .outlet import Outlet
from .sink_options import SinkOptions
from .sink_rows import SinkColumns, by_topic, gathered
from .warm import warm
from .worker import Arrival

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What one task has written; for batches of a stream, with the query and the number of its batch."""

    rows: int
    partition_id: int
    query_id: str | None = None
    batch_id: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a task needs to know."""

    options: SinkOptions
    columns: SinkColumns
    arrival: Arrival = field(default_factory=Arrival)

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType) -> "Plan":
        """
        Raises:
            ConfigError: options or columns cannot be used; the text says what would be right.
        """
        check_names(options, Use.WRITE)
        wanted = SinkOptions.of(options)
        return cls(wanted, SinkColumns.of(schema, topic=wanted.topic))


def write_rows(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Written:
    """Write all rows of one task; when this returns, they are stored."""
    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    with Outlet(plan.options, first_partition=number) as outlet:
        for batch in gathered(batches, plan.columns):
            for topic, rows in by_topic(batch, plan.options.topic):
                outlet.write(topic, rows)
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    batch_id = context.getLocalProperty(_BATCH_ID) if context is not None else None
    return Written(outlet.rows, number, query_id, int(batch_id) if batch_id else None)


class BatchSink(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_rows(self._plan, iterator)


class StreamSink(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a stream."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_rows(self._plan, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Everything is already stored."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What is stored stays; the batch will be written again."""


def batch_sink(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> BatchSink:
    if overwrite:
        raise ConfigError('a topic cannot be overwritten; write with mode("append")')
    plan = Plan.of(options, schema)
    warm()  # one process compiles, if any must, and all tasks find the result
    return BatchSink(plan)


def stream_sink(options: Mapping[str, str], schema: StructType) -> StreamSink:
    """Spark makes it anew for each micro-batch, so only the cheapest work is done here."""
    return StreamSink(Plan.of(options, schema))
