"""Stream reading: what Spark asks of a streaming query, and what it sends to the tasks."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from cordwood.errors import CordwoodError

from .offsets import Json, of_json, to_json
from .options import SourceOptions
from .reading import reading_of

if TYPE_CHECKING:
    from .stream_query import StreamQuery


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query. Spark keeps one on the driver, and sends another, which was never asked, to the tasks."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._reading = reading_of(options)
        self._clock = clock
        self._query: StreamQuery | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_query": None}

    @property
    def _running(self) -> "StreamQuery":
        if self._query is None:
            # Spark has loaded all of PySpark into a process for this query alone. None of that will be garbage, and the
            # collector would go through it again and again while we load the rest.
            gc.freeze()
            from .stream_query import StreamQuery  # one process asks, others are only sent the reader

            self._query = StreamQuery(self._options, self._clock)
        return self._query

    def initialOffset(self) -> Json:
        return to_json(self._running.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark passes one limit back to us. If there are two, we know the other one.
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._running.available_now = True

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        return to_json(self._running.end(of_json(start), limit))

    def reportLatestOffset(self) -> Json | None:
        return to_json(self._running.latest) or None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        return self._running.tasks(of_json(start), of_json(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)

    def stop(self) -> None:
        if self._query is not None:
            self._query.close()


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A query that is not possible: it answers every call with the reason.

    Spark's process for a query stops the reader at its end. If there is none, because it could not be made, that fails,
    and the real reason ends up somewhere in the middle of what the user sees. So there is one.
    """

    def __init__(self, reason: CordwoodError) -> None:
        self._reason = reason.with_traceback(None)

    def initialOffset(self) -> Json:
        raise self._reason from None

    def getDefaultReadLimit(self) -> ReadLimit:
        raise self._reason from None

    def prepareForTriggerAvailableNow(self) -> None:
        raise self._reason from None

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        raise self._reason from None

    def reportLatestOffset(self) -> Json | None:
        raise self._reason from None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        raise self._reason from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._reason from None
