"""What compaction must know of transactions: which batches belong to aborted ones, and which markers are still needed.

Records of an aborted transaction are dropped, whatever their keys. A marker must stay while there are batches of its
transaction before it, because readers need it to know whether these were committed. After that it is kept for some more
time, like a deletion.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from cordwood.errors import CorruptData
from cordwood.ports import Buffer, File
from cordwood.record.batch import HEADER_SIZE, LENGTH_END, TRANSACTIONAL, BatchHeader
from cordwood.record.control import ControlType, EndMarker, end_marker

from .scan import headers, read_batch

_LENGTH_AND_ATTRIBUTES = Struct(">8xi9xh").unpack_from


class AbortedTransaction(NamedTuple):
    """An aborted transaction: where it began, its producer, and where its marker is."""

    first_offset: int
    producer_id: int
    marker_offset: int


def has_transactions(file: File, end: int, chunk_bytes: int) -> bool:
    """Is any batch of this file part of a transaction? This is a quick look, because most logs have none."""
    position = start = 0
    data = b""
    while position < end:
        if position - start + HEADER_SIZE > len(data):
            data = file.read(position, min(chunk_bytes, end - position))
            start = position
        if len(data) - (position - start) < HEADER_SIZE:
            raise CorruptData(f"there is no batch at {position}")
        length, attributes = _LENGTH_AND_ATTRIBUTES(data, position - start)
        if attributes & TRANSACTIONAL:
            return True
        if length < HEADER_SIZE - LENGTH_END:
            raise CorruptData(f"batch length {length} is less than its header")
        position += length + LENGTH_END
    return False


class AbortedSearch:
    """Finds the aborted transactions of a log; it must be shown the log's files from the first to the last."""

    __slots__ = ("_begun", "found")

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}
        self.found: list[AbortedTransaction] = []

    def look_at(self, file: File, size: int) -> None:
        for position, header in headers(file, 0, size):
            if header.is_transactional and not header.is_control:
                self._begun.setdefault(header.producer_id, header.base_offset)
            elif header.is_transactional:
                self._end(header, marker_of(header, read_batch(file, position, header)))

    def _end(self, header: BatchHeader, marker: EndMarker | None) -> None:
        first_offset = self._begun.pop(header.producer_id, None) if marker is not None else None
        if marker is not None and first_offset is not None and marker.type is ControlType.ABORT:
            self.found.append(AbortedTransaction(first_offset, header.producer_id, header.last_offset))


def marker_of(header: BatchHeader, batch: Buffer) -> EndMarker | None:
    """The marker in a control batch; None if it holds none that can be understood."""
    try:
        return end_marker(batch, header)
    except CorruptData:
        return None


class Transactions:
    """The transactions open at the current position of a batch-by-batch walk over the log."""

    __slots__ = ("_aborted", "_aborting", "_committing")

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self._aborted = sorted(aborted, reverse=True)
        self._aborting: dict[int, bool] = {}
        """Producers with an open transaction that will be aborted, and whether a batch of it was met."""
        self._committing: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Advance to this batch of records: is it part of an aborted transaction?"""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        if header.producer_id in self._aborting:
            self._aborting[header.producer_id] = True
            return True
        self._committing.add(header.producer_id)
        return False

    def is_needless(self, header: BatchHeader, marker: EndMarker | None) -> bool:
        """Advance to this control batch: is nothing left of the transaction that it ends?"""
        if not header.record_count:
            return True
        if marker is None:
            return False  # of an unknown type, so it may be needed
        self._begin_up_to(header.last_offset)
        if marker.type is ControlType.ABORT:
            return not self._aborting.pop(header.producer_id, False)
        was_met = header.producer_id in self._committing
        self._committing.discard(header.producer_id)
        return not was_met

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= offset:
            self._aborting.setdefault(self._aborted.pop().producer_id, False)
