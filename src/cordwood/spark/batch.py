"""Batch reading: the offsets are looked up once, then tasks read them."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from cordwood.client.raw import RawClient

from . import driver
from .filters import Narrowing
from .offsets import Offsets
from .options import SourceOptions
from .positions import Positions
from .ranges import Range
from .reading import Task, reading_of
from .warm import warm

_PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BatchReader(DataSourceReader):
    """Reads what is there when the query is planned."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._reading = reading_of(options)
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        driver.prepare(self._options)
        with RawClient(self._options.settings) as client:
            positions = Positions(client, self._options, driver.LOG)
            ranges = self._narrowing.narrowed(positions.batch(), positions.at_time)
            tasks = driver.plan(ranges, self._options)
            hints = driver.hints(client, ranges, self._options)
        if tasks:
            warm()
        return [Task(task, hints, self._commits(task, ranges)) for task in tasks]

    def _commits(self, task: list[Range], ranges: list[Range]) -> Offsets:
        """What a task commits when it is done: the ends of the partitions that it reads to their ends.

        Nobody is told when the whole batch is done, so a group follows task by task. A query that wanted only a part of
        the records commits nothing.
        """
        if self._options.group is None or self._narrowing:
            return {}
        ends = {range_[:2]: range_.end for range_ in ranges}
        return {range_[:2]: range_.end for range_ in task if range_.end == ends[range_[:2]]}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)


class FilteringBatchReader(BatchReader):
    """The same, for when Spark hands filters down."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._narrowing.take(filters)


def batch_reader(options: SourceOptions) -> BatchReader:
    """Spark refuses a reader that takes filters unless it is set to hand them down, and does not say whether it is.

    But if it is, the reader is made in a process for that purpose. Spark keeps the outcome of the filters for the whole
    DataFrame, and uses it for other queries on it, so filters are taken only if the user has said so.
    """
    if not options.push_filters:
        return BatchReader(options)
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == _PUSHDOWN_WORKER:
        return FilteringBatchReader(options)
    return BatchReader(options)
