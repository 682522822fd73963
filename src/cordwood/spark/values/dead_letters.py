"""Records that cannot be decoded go to a topic of their own, as they are: key, value, timestamp and headers. Their own
headers are followed by those that say where a record was, and what is wrong with it. A record that is too large for the
topic is sent without its value and its own headers, and says how large the value was: the query goes on, and the record
is still where it was.

They are stored before the task that read them ends, at least once: a task that Spark repeats stores them again.
"""

from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cordwood.client.raw_settings import RawSettings
from cordwood.record.batch import Codec
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.encode import Rows
from cordwood.spark.outlet import Outlet
from cordwood.spark.sink_options import SinkOptions
from cordwood.spark.sink_rows import TooLargeRow

ORIGIN: Final = "cordwood.origin."
REASON: Final = "cordwood.reason"
VALUE_BYTES: Final = "cordwood.value.bytes"
KEY_BYTES: Final = "cordwood.key.bytes"
_BATCH_BYTES_MAX: Final = 1_048_588
"""Kafka's default, for a topic whose settings we are not allowed to see."""
_ORIGIN_HEADERS: Final = 4
"""How many headers say where a record was, and why it is here."""


class DeadLetters:
    """Where a task leaves such records. Without a topic, there must be none."""

    def __init__(self, settings: RawSettings, topic: str | None) -> None:
        self._settings = settings
        self._topic = topic
        self._outlet: Outlet | None = None

    def send(self, records: pa.RecordBatch, reasons: pa.Array) -> None:
        """Records with the columns of their origin, and why each of them cannot be decoded."""
        assert self._topic is not None, "there is a topic for them"
        if self._outlet is None:
            # What fits into its own topic only when it is compressed must fit into this one too.
            options = SinkOptions(self._settings, codec=Codec.ZSTD, batch_bytes_max=_BATCH_BYTES_MAX)
            self._outlet = Outlet(options)
        times_ms = records.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
        rows = Rows(records.column("value"), records.column("key"), _headers(records, reasons))
        self._write(rows, times_ms)

    def _write(self, rows: Rows, times_ms: NDArray[np.int64]) -> None:
        """Write all of them; those that are too large are found by halving."""
        assert self._outlet is not None
        assert self._topic is not None
        try:
            self._outlet.write(self._topic, rows, times_ms)
        except TooLargeRow:
            count = len(rows.value)
            if count > 1:
                self._write(_slice(rows, 0, count // 2), times_ms[: count // 2])
                self._write(_slice(rows, count // 2, count), times_ms[count // 2 :])
                return
            with_key, without = _stubs(rows)
            try:
                self._outlet.write(self._topic, with_key, times_ms)
            except TooLargeRow:
                self._outlet.write(self._topic, without, times_ms)

    def flush(self) -> None:
        """Return when all are stored."""
        if self._outlet is not None:
            self._outlet.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._outlet is None:
            return
        if kind is GeneratorExit:  # the query wants no more rows, which is not a failure
            kind = error = trace = None
        self._outlet.__exit__(kind, error, trace)


def _slice(rows: Rows, start: int, end: int) -> Rows:
    return Rows(*(None if column is None else column[start:end] for column in rows))


def _stubs(row: Rows) -> tuple[Rows, Rows]:
    """What remains of a row that is too large; and what remains if its key is too large as well."""
    assert row.key is not None
    assert row.headers is not None
    headers = row.headers[0].as_py()[-_ORIGIN_HEADERS:]
    found = []
    for key, sizes in ((row.key, {VALUE_BYTES: row.value}), (None, {VALUE_BYTES: row.value, KEY_BYTES: row.key})):
        told = {name: len(column[0].as_buffer()) for name, column in sizes.items() if column[0].is_valid}
        own = [{"key": name, "value": str(size).encode()} for name, size in told.items()]
        found.append(Rows(pa.nulls(1, pa.binary()), key, pa.array([[*headers, *own]], HEADERS_TYPE)))
    return found[0], found[1]


def _headers(records: pa.RecordBatch, reasons: pa.Array) -> pa.Array:
    columns = [records.column(name).to_pylist() for name in ("topic", "partition", "offset")]
    rows = zip(*columns, reasons.to_pylist(), strict=True)
    own = records.column("headers").to_pylist()
    return pa.array([[*(kept or ()), *_origin(*row)] for kept, row in zip(own, rows, strict=True)], HEADERS_TYPE)


def _origin(topic: str, partition: int, offset: int, reason: str) -> list[dict[str, object]]:
    found = {
        ORIGIN + "topic": topic,
        ORIGIN + "partition": str(partition),
        ORIGIN + "offset": str(offset),
        REASON: reason,
    }
    return [{"key": name, "value": text.encode()} for name, text in found.items()]
