"""Located records to Arrow columns. Columns that are not wanted cost no more than walking over the records.

Columns with one value for all rows are built once, as long as ever needed, and handed out in slices.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cordwood.errors import CorruptData

from . import kernels as k
from .arrow_schema import HEADER_TYPE, HEADERS_TYPE, schema_of
from .ranges import Range
from .schema import Columns

_SIZES = 5
_KEYS, _VALUES, _HEADER_NAMES, _HEADER_VALUES, _HEADERS = range(_SIZES)

Table = NDArray[np.int64]
Source = NDArray[np.uint8]


class Builder:
    """Builds the columns of one range's records, group by group."""

    def __init__(self, wanted: Range, columns: Columns) -> None:
        self._wanted = wanted
        self._columns = columns
        self._schema = schema_of(columns)
        self._work = _Work(0)
        self._sizes = np.zeros(_SIZES, np.int64)
        self._constants: dict[tuple[str, int], pa.Array] = {}

    def build(self, source: Source, table: Table) -> pa.RecordBatch:
        """The wanted records of these batches, whose payloads lie in *source*.

        Raises:
            CorruptData: the records are not valid.
        """
        assert source.size < 2**31, "positions in a column are 32 bits wide"
        claimed = self._claimed(table)
        if len(self._work.keys) < claimed:
            self._work = _Work(claimed)
        work = self._work
        offsets, timestamps_us = pa.allocate_buffer(8 * claimed), pa.allocate_buffer(8 * claimed)
        count = k.locate(
            source,
            table,
            self._wanted.start,
            self._wanted.end,
            np.frombuffer(offsets, np.int64),
            np.frombuffer(timestamps_us, np.int64),
            work.keys,
            work.key_lengths,
            work.values,
            work.value_lengths,
            work.headers,
            self._sizes,
        )
        if count < 0:
            first, last = table[0, k.BASE_OFFSET], table[-1, k.BASE_OFFSET]
            raise CorruptData(f"{self._wanted}: {k.ERRORS[count]}, in the batches at offsets {first} to {last}")
        arrays = [self._column(name, source, table, count, offsets, timestamps_us) for name in self._columns.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _claimed(self, table: Table) -> int:
        """How many records the batches claim to have, each count checked against the batch's size."""
        counts = table[:, k.COUNT]
        if (counts * k.RECORD_BYTES_MIN > table[:, k.PAYLOAD_END] - table[:, k.PAYLOAD]).any():
            raise CorruptData(f"{self._wanted}: {k.ERRORS[k.BAD_COUNT]}")
        return int(counts.sum())

    def _column(
        self, name: str, source: Source, table: Table, count: int, offsets: pa.Buffer, timestamps_us: pa.Buffer
    ) -> pa.Array:
        work = self._work
        match name:
            case "key":
                return _binary(source, work.keys, work.key_lengths, count, int(self._sizes[_KEYS]))
            case "value":
                return _binary(source, work.values, work.value_lengths, count, int(self._sizes[_VALUES]))
            case "offset":
                return pa.Array.from_buffers(pa.int64(), count, [None, offsets])
            case "timestamp":
                return pa.Array.from_buffers(pa.timestamp("us", tz="UTC"), count, [None, timestamps_us])
            case "topic":
                return self._constant("topic", 0, count)
            case "partition":
                return self._constant("partition", self._wanted.partition, count)
            case "timestampType":
                return self._timestamp_types(table, count, offsets)
            case _:
                assert name == "headers", name
                return self._headers(source, count)

    def _constant(self, name: str, value: int, count: int) -> pa.Array:
        known = self._constants.get((name, value))
        if known is None or len(known) < count:
            made = _repeated_text(self._wanted.topic, count) if name == "topic" else _repeated(value, count)
            known = self._constants[name, value] = made
        return known.slice(0, count)

    def _timestamp_types(self, table: Table, count: int, offsets: pa.Buffer) -> pa.Array:
        kinds = (table[:, k.ATTRIBUTES] & k.LOG_APPEND_TIME != 0).astype(np.int32)
        first = int(kinds[0])
        if (kinds == first).all():
            return self._constant("timestampType", first, count)
        # One of the topic's settings was changed. Batches are in order of their offsets, so each record's batch is
        # found by its offset.
        found = np.frombuffer(offsets, np.int64)[:count]
        batch = np.searchsorted(table[:, k.BASE_OFFSET], found, side="right") - 1
        return pa.array(kinds[batch], pa.int32())

    def _headers(self, source: Source, count: int) -> pa.Array:
        sizes = self._sizes
        total = int(sizes[_HEADERS])
        if not total:
            return pa.nulls(count, HEADERS_TYPE)
        ends, valid = _ints(count + 1), np.zeros((count + 7) // 8, np.uint8)
        names, name_ends = np.empty(int(sizes[_HEADER_NAMES]), np.uint8), _ints(total + 1)
        values, value_ends = np.empty(int(sizes[_HEADER_VALUES]), np.uint8), _ints(total + 1)
        values_valid = np.zeros((total + 7) // 8, np.uint8)
        ascii_only = k.gather_headers(
            source,
            self._work.headers,
            source.size,
            count,
            ends,
            valid,
            names,
            name_ends,
            values,
            value_ends,
            values_valid,
        )
        name_buffers = [None, pa.py_buffer(name_ends), pa.py_buffer(names)]
        value_buffers = [pa.py_buffer(values_valid), pa.py_buffer(value_ends), pa.py_buffer(values)]
        keys = pa.Array.from_buffers(pa.string(), total, name_buffers)
        if not ascii_only:
            keys = _as_text(pa.Array.from_buffers(pa.binary(), total, name_buffers))
        fields = [keys, pa.Array.from_buffers(pa.binary(), total, value_buffers)]
        entries = pa.StructArray.from_arrays(fields, fields=list(HEADER_TYPE))
        buffers = [pa.py_buffer(valid), pa.py_buffer(ends)]
        return pa.Array.from_buffers(HEADERS_TYPE, count, buffers, children=[entries])


class _Work:
    """Where records lie: memory that is reused for each group."""

    __slots__ = ("headers", "key_lengths", "keys", "value_lengths", "values")

    def __init__(self, rows: int) -> None:
        self.keys = np.empty(rows, np.int64)
        self.key_lengths = np.empty(rows, np.int32)
        self.values = np.empty(rows, np.int64)
        self.value_lengths = np.empty(rows, np.int32)
        self.headers = np.empty(rows, np.int64)


def _binary(source: Source, at: Table, lengths: NDArray[np.int32], count: int, size: int) -> pa.Array:
    data, ends = pa.allocate_buffer(size), pa.allocate_buffer(4 * (count + 1))
    valid = np.zeros((count + 7) // 8, np.uint8)
    out = np.frombuffer(data, np.uint8)
    nulls = k.gather(source, at, lengths, count, out, np.frombuffer(ends, np.int32), valid)
    return pa.Array.from_buffers(pa.binary(), count, [pa.py_buffer(valid) if nulls else None, ends, data], nulls)


# Arrow has a function for this, but it loads pandas, which takes a quarter of a second.


def _repeated(value: int, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(np.full(count, value, np.int32))])


def _repeated_text(text: str, count: int) -> pa.Array:
    data = text.encode()
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(data * count)])


def _ints(count: int) -> NDArray[np.int32]:
    return np.zeros(count, np.int32)


def _as_text(names: pa.Array) -> pa.Array:
    """Header names as Java reads them: what is not UTF-8 is replaced."""
    return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
