"""Record batches, in any codec, to Arrow.

Each batch's CRC is checked before its contents are read, and decompression has a limit. Control batches, the records of
aborted transactions and records outside of the wanted range are left out. Memory use stays flat: a chunk is decoded in
groups of some megabytes, and handed out in pieces of at most ``ROWS_MAX`` rows.

The columns' buffers come from Arrow's own allocator, which keeps freed memory: getting memory from the system anew
costs as much time as decoding.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cordwood.errors import CorruptData
from cordwood.ports import Buffer
from cordwood.record.batch import CODEC_MASK, CONTROL, TRANSACTIONAL, Codec, header_at
from cordwood.record.codecs import decompress
from cordwood.record.control import ControlType, end_marker
from cordwood.record.crc import crc32c

from . import kernels as k
from .columns import Builder
from .ranges import Chunk, Range
from .schema import Columns

DECOMPRESSED_BYTES_MAX: Final = 512 * 1024 * 1024
"""The most that one batch may decompress to. Brokers accept no batch over a gigabyte, and a bomb must end somewhere."""
GROUP_BYTES: Final = 8 * 1024 * 1024
ROWS_MAX: Final = 100_000
SMALL_BATCH_MAX: Final = 1024
"""Up to this size, a kernel computes a batch's CRC in less time than it takes to call the faster library."""

Table = NDArray[np.int64]


def decode(
    chunks: Iterable[Chunk],
    wanted: Range,
    columns: Columns,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> Iterator[pa.RecordBatch]:
    """The wanted records with the columns asked for, in offset order.

    Raises:
        CorruptData: a batch does not match its checksum, or is not valid; the text says which batch.
    """
    decoder = Decoder(wanted, columns, decompressed_bytes_max=decompressed_bytes_max)
    for chunk in chunks:
        yield from decoder.decode(chunk)


class Decoder:
    """Decodes one range. All it keeps between chunks is working memory."""

    def __init__(
        self, wanted: Range, columns: Columns, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    ) -> None:
        self._wanted = wanted
        self._limit = min(decompressed_bytes_max, 2**31 - 1)
        self._builder = Builder(wanted, columns)

    def decode(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        source = read_only(chunk.data)
        table = self._scanned(source)
        table = self._selected(table, source, chunk.aborted)
        if not len(table):
            return
        self._check(source, table)
        for payload, batches in self._groups(source, table):
            rows = self._builder.build(payload, batches)
            for first in range(0, rows.num_rows, ROWS_MAX):
                yield rows.slice(first, ROWS_MAX)

    def _scanned(self, source: NDArray[np.uint8]) -> Table:
        table = np.empty((k.count_batches(source), k.COLUMNS), np.int64)
        found = k.scan(source, table)
        if found < 0:
            raise CorruptData(f"{self._wanted}: {k.ERRORS[found]}")
        return table[:found]

    def _selected(self, table: Table, source: NDArray[np.uint8], aborted: Sequence[tuple[int, int]]) -> Table:
        """The batches that can have wanted records."""
        base, attributes = table[:, k.BASE_OFFSET], table[:, k.ATTRIBUTES]
        keep = (base < self._wanted.end) & (base + table[:, k.LAST_DELTA] >= self._wanted.start)
        keep &= (attributes & CONTROL) == 0
        keep &= table[:, k.COUNT] > 0
        if aborted:
            keep &= ~aborted_batches(table, source, aborted)
        return table if keep.all() else table[keep]

    def _check(self, source: NDArray[np.uint8], table: Table) -> None:
        """Check the CRC of each batch."""
        bad = k.bad_checksum(source, table, SMALL_BATCH_MAX, k.CRC_TABLES)
        if bad < 0:
            large = table[table[:, k.END] - table[:, k.POSITION] - k.CRC_FROM > SMALL_BATCH_MAX]
            positions, ends, sums = (large[:, column].tolist() for column in (k.POSITION, k.END, k.CRC))
            for number, (position, end, expected) in enumerate(zip(positions, ends, sums, strict=True)):
                if crc32c(source[position + k.CRC_FROM : end].data) != expected:
                    bad, table = number, large
                    break
        if bad >= 0:
            offset = table[bad, k.BASE_OFFSET]
            raise CorruptData(f"{self._wanted}: the checksum of the batch at offset {offset} does not match its bytes")

    def _groups(self, source: NDArray[np.uint8], table: Table) -> Iterator[tuple[NDArray[np.uint8], Table]]:
        """The uncompressed bytes that hold records, with the batches that they belong to."""
        codecs = table[:, k.ATTRIBUTES] & CODEC_MASK
        if not codecs.any():
            yield source, table
            return
        parts: list[Buffer] = []
        first, size = 0, 0
        for number, codec in enumerate(codecs.tolist()):
            payload = source[table[number, k.PAYLOAD] : table[number, k.PAYLOAD_END]].data
            part = self._decompressed(Codec(codec), payload, table[number])
            if parts and size + len(part) > GROUP_BYTES:
                yield read_only(b"".join(parts)), table[first:number]
                parts, first, size = [], number, 0
            table[number, k.PAYLOAD] = size
            size += len(part)
            table[number, k.PAYLOAD_END] = size
            parts.append(part)
        yield read_only(b"".join(parts)), table[first:]

    def _decompressed(self, codec: Codec, payload: memoryview, row: NDArray[np.int64]) -> Buffer:
        try:
            return decompress(codec, payload, self._limit)
        except CorruptData as error:
            raise CorruptData(f"{self._wanted}: the batch at offset {row[k.BASE_OFFSET]}: {error}") from error


def read_only(data: Buffer) -> NDArray[np.uint8]:
    """Bytes in the form that kernels take: writable arrays would be another type, and kernels are compiled for one."""
    array = np.frombuffer(data, np.uint8)
    array.setflags(write=False)
    return array


def aborted_batches(table: Table, source: NDArray[np.uint8], aborted: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which batches belong to aborted transactions.

    A transaction is aborted from its first offset up to its producer's next abort marker. Readers of uncommitted
    records have no list of them, and do not call this.
    """
    waiting = sorted(aborted, key=lambda entry: entry[1], reverse=True)
    active: set[int] = set()
    found = np.zeros(len(table), np.bool_)
    for number, row in enumerate(table):
        while waiting and waiting[-1][1] <= row[k.BASE_OFFSET] + row[k.LAST_DELTA]:
            active.add(waiting.pop()[0])
        producer = int(row[k.PRODUCER_ID])
        if row[k.ATTRIBUTES] & CONTROL:
            if producer in active and _is_abort(source, row):
                active.discard(producer)
        elif row[k.ATTRIBUTES] & TRANSACTIONAL and producer in active:
            found[number] = True
    return found


def _is_abort(source: NDArray[np.uint8], row: NDArray[np.int64]) -> bool:
    batch = source[row[k.POSITION] : row[k.END]].data
    marker = end_marker(batch, header_at(batch))
    return marker is not None and marker.type is ControlType.ABORT
