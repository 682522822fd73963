"""Arrow rows to record batches, ready to be produced.

``Encoder`` finds each row's partition and lays the rows out as batches; ``Sealer`` gives each batch its producer, its
sequence number and its CRC. They are separate because rows can be encoded before it is known that the batches before
them were stored. A key goes to the same partition as with Java's client.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cordwood.errors import ConfigError
from cordwood.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from cordwood.ports import Buffer
from cordwood.record.batch import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE, LENGTH_END, Codec, add_to_sequence
from cordwood.record.codecs import compress
from cordwood.record.crc import crc32c

from . import kernels_write as k
from .arrow_schema import HEADERS_TYPE
from .decode import read_only

BATCH_BYTES: Final = 1_000_000
"""Brokers accept 1048588 bytes in one batch unless configured otherwise."""
_LZ4_FAST: Final = 1
"""What Java's client uses if no level is given. The library's default compresses a little better, and far slower."""
_PRODUCER_AT: Final = 43
_NO_BYTES: Final = read_only(b"")
_NO_INTS: Final = np.zeros(0, np.int32)
_NO_INTS.setflags(write=False)


class Rows(NamedTuple):
    """What to write. Each column has the same length; None stands for a column of nulls."""

    value: pa.Array
    key: pa.Array | None = None
    headers: pa.Array | None = None
    partition: pa.Array | None = None


class Unsealed(NamedTuple):
    """A batch that lacks its producer, its sequence number and its CRC."""

    partition: int
    records: int
    data: memoryview | bytearray


class Sealer:
    """The sequence numbers of one producer, for the partitions of one topic. Without a producer, there are none."""

    def __init__(self, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        self._producer = producer_id.to_bytes(8, "big", signed=True) + producer_epoch.to_bytes(2, "big", signed=True)
        self._idempotent = producer_id != NO_PRODUCER_ID
        self._next: dict[int, int] = {}

    def seal(self, batch: Unsealed) -> Buffer:
        """The batch with its place in the sequence of its partition. Seal each batch once, in the order of sending."""
        sequence = self._next.get(batch.partition, 0) if self._idempotent else NO_SEQUENCE
        if self._idempotent:
            self._next[batch.partition] = add_to_sequence(sequence, batch.records)
        data = batch.data
        data[_PRODUCER_AT : _PRODUCER_AT + 14] = self._producer + sequence.to_bytes(4, "big", signed=True)
        data[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(data)[ATTRIBUTES_AT:]).to_bytes(4, "big")
        return data


class Encoder:
    """Encodes rows for one topic. It remembers which partition gets records without keys, so as to fill batches."""

    def __init__(
        self,
        partition_count: int,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        first_partition: int = 0,
    ) -> None:
        assert partition_count > 0, "a topic has partitions"
        self._partition_count = partition_count
        self._codec = codec
        self._level = _LZ4_FAST if codec is Codec.LZ4 and level is None else level
        self._batch_bytes = batch_bytes
        self._state = np.array([first_partition % partition_count, 0], np.int64)

    def encode(self, rows: Rows, timestamps_ms: int | NDArray[np.int64]) -> Iterator[dict[int, Unsealed]]:
        """Batches in rounds: in each round, at most one for each partition, as a Produce request requires.

        The rows of a partition keep their order over all rounds. *timestamps_ms* is one for all rows, or one for each.
        """
        if not len(rows.value):
            return
        waiting: dict[int, list[Unsealed]] = {}
        for batch in self._batches(rows, timestamps_ms):
            waiting.setdefault(batch.partition, []).append(batch)
        for number in range(max(map(len, waiting.values()))):
            yield {partition: batches[number] for partition, batches in waiting.items() if number < len(batches)}

    def partitions(self, rows: Rows) -> NDArray[np.int32]:
        """The partition of each row."""
        return self._chosen(rows, _strings(rows.key, len(rows.value)), _strings(rows.value, len(rows.value)))

    def _chosen(self, rows: Rows, keys: "_Strings", values: "_Strings") -> NDArray[np.int32]:
        count = len(rows.value)
        chosen = np.empty(count, np.int32)
        given = self._given(rows.partition)
        k.choose(count, self._partition_count, given, *keys, values.ends, self._batch_bytes, self._state, chosen)
        return chosen

    def _given(self, column: pa.Array | None) -> NDArray[np.int32]:
        if column is None or column.null_count == len(column):
            return _NO_INTS
        present = column.drop_null().to_numpy(zero_copy_only=False)
        wrong = present[(present < 0) | (present >= self._partition_count)]
        if len(wrong):
            raise ConfigError(
                f"the column partition has a {wrong[0]}; the topic has {self._partition_count} partitions, from 0 on"
            )
        given = column.cast(pa.int32()).fill_null(-1)
        return _frozen(given.to_numpy(zero_copy_only=False))

    def _batches(self, rows: Rows, timestamps_ms: int | NDArray[np.int64]) -> Iterator[Unsealed]:
        count = len(rows.value)
        keys, values, headers = _strings(rows.key, count), _strings(rows.value, count), _headers(rows.headers)
        chosen = self._chosen(rows, keys, values)
        ordered = np.empty(count, np.int64)
        k.order(chosen, self._partition_count, np.zeros(self._partition_count + 1, np.int64), ordered)
        size = keys.size + values.size + headers.size + count * k.RECORD_OVERHEAD_MAX
        most = self._partition_count + 2 * size // self._batch_bytes + 1
        table = np.empty((min(count, most), k.COLUMNS), np.int64)
        buffer = bytearray(size + len(table) * HEADER_SIZE)
        times = np.array([timestamps_ms], np.int64) if isinstance(timestamps_ms, int) else timestamps_ms
        found = k.write(
            ordered,
            chosen,
            _frozen(times),
            *keys,
            *values,
            headers.ends,
            headers.names.data,
            headers.names.ends,
            *headers.values,
            self._batch_bytes,
            np.frombuffer(buffer, np.uint8),
            table,
        )
        assert found > 0, "there is room for all rows"
        view = memoryview(buffer)
        for partition, start, stop, records in table[:found].tolist():
            yield Unsealed(partition, records, self._compressed(view[start:stop]))

    def _compressed(self, batch: memoryview) -> memoryview | bytearray:
        if self._codec is Codec.NONE:
            return batch
        payload = compress(self._codec, batch[HEADER_SIZE:], self._level)
        made = bytearray(batch[:HEADER_SIZE])
        made += payload
        made[8:12] = (len(made) - LENGTH_END).to_bytes(4, "big")
        made[ATTRIBUTES_AT : ATTRIBUTES_AT + 2] = self._codec.to_bytes(2, "big")
        return made


class _Strings(NamedTuple):
    """A column of byte strings in the form that kernels take."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int32]
    valid: NDArray[np.uint8]
    first: int

    @property
    def size(self) -> int:
        return int(self.ends[-1] - self.ends[0])


class _Headers(NamedTuple):
    ends: NDArray[np.int32]
    names: _Strings
    values: _Strings

    @property
    def size(self) -> int:
        return self.names.size + self.values.size + k.HEADER_OVERHEAD_MAX * (len(self.names.ends) - 1)


def _strings(column: pa.Array | None, count: int) -> _Strings:
    if column is None or pa.types.is_null(column.type):
        nothing = np.zeros(count + 1, np.int32)
        return _Strings(_NO_BYTES, _frozen(nothing), _frozen(np.zeros((count + 7) // 8, np.uint8)), 0)
    assert len(column) == count, "columns are equally long"
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.binary())
    valid, ends, data = column.buffers()
    first = column.offset
    return _Strings(
        read_only(data) if data is not None else _NO_BYTES,
        _frozen(np.frombuffer(ends, np.int32)[first : first + count + 1]) if ends else _frozen(np.zeros(1, np.int32)),
        read_only(valid) if valid is not None and column.null_count else _NO_BYTES,
        first,
    )


def _headers(column: pa.Array | None) -> _Headers:
    if column is None or pa.types.is_null(column.type) or column.null_count == len(column):
        none = _strings(pa.array([], pa.binary()), 0)
        return _Headers(_NO_INTS, none, none)
    if column.type != HEADERS_TYPE:
        column = column.cast(HEADERS_TYPE)
    if column.null_count:
        column = column.fill_null([])  # a null list may have any length, going by its ends
    names, values = column.values.flatten()
    if names.null_count:
        raise ConfigError("a header has no key; give each a name, if only an empty one")
    _, ends = column.buffers()[:2]
    used = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    return _Headers(_frozen(used), _strings(names, len(names)), _strings(values, len(values)))


def _frozen(array: NDArray) -> NDArray:  # type: ignore[type-arg]  # of any kind of number
    array = array.view()
    array.setflags(write=False)
    return array
