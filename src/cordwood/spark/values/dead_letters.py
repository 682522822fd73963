"""Records that can not be decoded go to a topic of their own, as they are: key, value, timestamp and headers. After
their own headers come those that say where a record was, and what is wrong with it.

They are stored before the task ends that read them, at least once: a task that Spark repeats stores them again.
"""

from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from cordwood.client.raw_settings import RawSettings
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.encode import Rows
from cordwood.spark.outlet import Outlet
from cordwood.spark.sink_options import SinkOptions

ORIGIN: Final = "cordwood.origin."
REASON: Final = "cordwood.reason"


class DeadLetters:
    """Where a task leaves such records. Without a topic there must be none."""

    def __init__(self, settings: RawSettings, topic: str | None) -> None:
        self._settings = settings
        self._topic = topic
        self._outlet: Outlet | None = None

    def send(self, records: pa.RecordBatch, reasons: pa.Array) -> None:
        """Records with the columns of their origin, and why each of them can not be decoded."""
        assert self._topic is not None, "there is a topic for them"
        if self._outlet is None:
            self._outlet = Outlet(SinkOptions(self._settings, topic=self._topic))
        times_ms = records.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
        rows = Rows(records.column("value"), records.column("key"), _headers(records, reasons))
        self._outlet.write(self._topic, rows, times_ms)

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
        if kind is GeneratorExit:  # the query wants no more rows, which is no failure
            kind = error = trace = None
        self._outlet.__exit__(kind, error, trace)


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
