"""Spark's part of reading, without Spark: asks readers what Spark asks them, in its order, and takes what they give.

Everything goes through the forms in which Spark sends it to other processes: offsets as JSON, readers and tasks
pickled.
"""

import json
import pickle
from collections.abc import Iterable, Sequence
from datetime import UTC

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from cordwood.spark.source import CordwoodSource
from cordwood.spark.stream import StreamReader
from spark.spark_topics import Read

Json = dict[str, dict[str, int]]


def source(bootstrap: str, **options: object) -> CordwoodSource:
    """Underscores in names stand for dots."""
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    return CordwoodSource(CaseInsensitiveDict({"kafka.bootstrap.servers": bootstrap, **given}))


def batch(bootstrap: str, **options: object) -> list[Read]:
    """A batch query."""
    made = source(bootstrap, **options)
    schema = made.schema()
    reader = made.reader(schema)
    tasks = list(reader.partitions()) or [InputPartition(None)]
    return read(reader, tasks, schema)


def read(
    reader: DataSourceReader | DataSourceStreamReader, tasks: Sequence[InputPartition], schema: StructType
) -> list[Read]:
    """What the tasks of a query find."""
    sent = pickle.dumps(reader)
    found: list[Read] = []
    for task in tasks:
        rows = list(pickle.loads(sent).read(pickle.loads(pickle.dumps(task))))
        assert all(batch.schema.equals(to_arrow_schema(schema, timezone="UTC")) for batch in rows)
        found.extend(_reads(rows))
    return sorted(found, key=lambda read: read[:3])


def _reads(batches: Iterable[pa.RecordBatch]) -> Iterable[Read]:
    for row in (row for batch in batches for row in batch.to_pylist()):
        headers = row.get("headers")
        yield Read(
            row["topic"],
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            round(row["timestamp"].astimezone(UTC).timestamp() * 1000),
            row["timestampType"],
            None if headers is None else tuple((header["key"], header["value"]) for header in headers),
        )


class Query:
    """A streaming query and its checkpoint. It can be killed at any point, and started again."""

    def __init__(self, bootstrap: str, **options: object) -> None:
        self._bootstrap = bootstrap
        self.options = options
        self.planned: list[Json] = []
        """Where each micro-batch ends: the log of offsets."""
        self.done = 0
        """How many of them are done: the log of commits."""
        self._reader: StreamReader | None = None
        self.start()

    def start(self, *, available_now: bool = False, **options: object) -> None:
        """From the checkpoint, with some options changed."""
        self.stop()
        self.options |= options
        made = source(self._bootstrap, **self.options)
        self._schema = made.schema()
        reader = made.streamReader(self._schema)
        assert isinstance(reader, StreamReader)
        self._reader = reader
        if available_now:
            reader.prepareForTriggerAvailableNow()

    @property
    def reader(self) -> StreamReader:
        assert self._reader is not None
        return self._reader

    def begin(self) -> Json:
        """Where the next micro-batch begins."""
        return self.planned[self.done - 1] if self.done else _as_text(self.reader.initialOffset())

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Choose where the next micro-batch ends, and write it down. Is there anything new?"""
        assert len(self.planned) == self.done
        begin = self.begin()
        end = _as_text(self.reader.latestOffset(begin, limit or self.reader.getDefaultReadLimit()))
        if self.done and json.dumps(end) == json.dumps(begin):
            return False
        self.planned.append(end)
        return True

    def run(self) -> list[Read]:
        """Do the micro-batch that was planned last."""
        begin, end = self.begin(), self.planned[self.done]
        found = read(self.reader, self.reader.partitions(begin, end), self._schema)
        self.done += 1
        return found

    def step(self, limit: ReadLimit | None = None) -> list[Read]:
        """A whole micro-batch; nothing if there is nothing new."""
        if len(self.planned) == self.done and not self.plan(limit):
            return []
        return self.run()

    def drain(self) -> list[list[Read]]:
        """Micro-batches until there is nothing new."""
        found = []
        while len(self.planned) > self.done or self.plan():
            found.append(self.run())
            assert len(found) < 1000, "it does not end"
        return found

    def stop(self) -> None:
        if self._reader is not None:
            self._reader.stop()
            self._reader = None


def _as_text(offsets: object) -> Json:
    found: Json = json.loads(json.dumps(offsets))
    return found
