"""A DataFrame's rows as the sink writes them: which columns are used, what types they may have, rows by topic.

The rules are those of Spark's Kafka sink: the columns are found by their names, and others are ignored; ``value`` is
required, ``key``, ``headers`` and ``partition`` are not; the option ``topic`` takes precedence over the column.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
)

from cordwood.errors import ConfigError, CordwoodError

from .encode import Rows

GATHER_ROWS: Final = 100_000
GATHER_BYTES: Final = 16 * 1024 * 1024
"""Spark gives ten thousand rows at a time, which would make small batches for a topic of many partitions."""

_FIX: Final = {
    "key": "text or bytes; cast it: CAST(key AS STRING)",
    "value": "text or bytes; make it so, as with to_json(struct(…)) AS value",
    "topic": "text",
    "partition": "an int; cast it: CAST(partition AS INT)",
    "headers": "an array of structs of key (text) and value (bytes): ARRAY<STRUCT<key: STRING, value: BINARY>>",
}


class UnwritableRow(CordwoodError):
    """A row of the data cannot be stored as it is."""


class TooLargeRow(UnwritableRow):
    """The row is larger than allowed. None of the rows that it was sent with has been sent."""


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """Which of a DataFrame's columns the sink uses, by their names."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, schema: StructType, *, topic: str | None) -> Self:
        """
        Raises:
            ConfigError: a column is missing or has the wrong type; the text says what to do.
        """
        found = {field.name: field.dataType for field in schema.fields if field.name in _FIX}
        for name, kind in found.items():
            if not _fits(name, kind) and not (name == "topic" and topic is not None):
                raise ConfigError(f"the column {name} is {kind.simpleString()}; it must be {_FIX[name]}")
        if "value" not in found:
            near = ", ".join(schema.names) or "none"
            raise ConfigError(f"there is no column value; the columns are {near}. It must be {_FIX['value']}")
        if topic is None and "topic" not in found:
            raise ConfigError("where to? Set option topic, or give a column topic with each row's topic")
        if topic is not None:
            found.pop("topic", None)
        return cls(tuple(found))


def _fits(name: str, kind: DataType) -> bool:
    if name in ("key", "value"):
        return isinstance(kind, StringType | BinaryType)
    if name == "topic":
        return isinstance(kind, StringType)
    if name == "partition":
        return isinstance(kind, IntegerType)
    element = kind.elementType if isinstance(kind, ArrayType) else None
    return (
        isinstance(element, StructType)
        and element.names == ["key", "value"]
        and isinstance(element["key"].dataType, StringType)
        and isinstance(element["value"].dataType, BinaryType)
    )


def gathered(batches: Iterable[pa.RecordBatch], columns: SinkColumns) -> Iterator[pa.RecordBatch]:
    """The columns that are used, some megabytes at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch.select(list(columns.names)))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GATHER_ROWS or size >= GATHER_BYTES:
            yield _together(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _together(waiting)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, Rows]]:
    """The rows of each topic, in their order.

    Raises:
        UnwritableRow: a row has no topic.
    """
    if topic is not None:
        yield topic, _rows(batch)
        return
    names = batch.column("topic")
    if names.null_count:
        raise UnwritableRow("a row's topic is null; fill the column topic, or set option topic for all rows")
    for name in sorted(pc.unique(names).to_pylist()):
        yield name, _rows(batch.filter(pc.equal(names, name)))


def _rows(batch: pa.RecordBatch) -> Rows:
    def column(name: str) -> pa.Array | None:
        return batch.column(name) if name in batch.schema.names else None

    value = column("value")
    assert value is not None, "the columns were checked"
    return Rows(value, column("key"), column("headers"), column("partition"))


def sizes(rows: Rows) -> pa.Array:
    """Roughly how many bytes each row takes, without its headers."""
    total = pc.fill_null(pc.binary_length(rows.value), 0).cast(pa.int64())
    if rows.key is not None and not pa.types.is_null(rows.key.type):
        total = pc.add(total, pc.fill_null(pc.binary_length(rows.key), 0).cast(pa.int64()))
    return total


def largest(rows: Rows) -> str:
    """The largest row in words, for somebody who has to find it."""
    total = sizes(rows)
    number = pc.index(total, pc.max(total)).as_py()
    key = rows.key[number].as_py() if rows.key is not None else None
    shown = "no key" if key is None else f"the key {key[:100]!r}"
    return f"a row of {total[number].as_py()} bytes, with {shown}"
