"""What compaction keeps of a batch.

Of all records with the same key, the last one is kept. If that is a deletion (a record without a value), it is kept
only for ``delete.retention.ms`` after compaction first met it; its batch carries the end of that time. A record without
a key is dropped. A batch that loses nothing is passed on byte for byte.

A batch that loses all its records is kept, empty, where its offsets or sequence numbers are still needed: as the last
batch of its producer, and as the last one of a segment, so that a segment always ends where the next one begins.
"""

from collections.abc import Mapping

from cordwood.errors import CorruptData
from cordwood.ids import NO_OFFSET
from cordwood.ports import Buffer
from cordwood.record.batch import DELETE_HORIZON, BatchHeader
from cordwood.record.subset import RecordSpan, body_of, spans, with_records, without_records

from .compaction_keys import KeyMap
from .compaction_transactions import Transactions, marker_of
from .producers import Producer

LastWritten = Mapping[int, tuple[int, int]]
"""By producer: the offset of its last record (-1 if it has only a marker), and its epoch."""


def last_written(producers: Mapping[int, Producer]) -> LastWritten:
    return {producer_id: (producer.last_offset, producer.epoch) for producer_id, producer in producers.items()}


class Filter:
    """Decides batch by batch, in the order of the log."""

    __slots__ = ("_keys", "_last_written", "_limit", "_now_ms", "_retention_ms", "_transactions", "dropped_keyless")

    def __init__(
        self,
        keys: KeyMap,
        transactions: Transactions,
        last_written: LastWritten,
        *,
        now_ms: int,
        delete_retention_ms: int,
        decompressed_bytes_max: int,
    ) -> None:
        self._keys = keys
        self._transactions = transactions
        self._last_written = last_written
        self._now_ms = now_ms
        self._retention_ms = delete_retention_ms
        self._limit = decompressed_bytes_max
        self.dropped_keyless = 0

    def left_of(self, header: BatchHeader, batch: Buffer, *, ends_segment: bool) -> Buffer | None:
        """What is kept of a batch: all of it, a smaller batch, or nothing."""
        must_stay = ends_segment or self._is_last_of_producer(header)
        if header.is_control:
            return self._left_of_marker(header, batch, must_stay)
        is_aborted = self._transactions.is_aborted(header)
        if is_aborted or not header.record_count:
            return _emptied(header, must_stay)
        if header.base_offset >= self._keys.end:
            return batch
        try:
            body = body_of(batch, header, limit=self._limit)
            records = spans(body, header)
        except CorruptData:
            # The checksum is right, so this is what the producer sent: malformed records, which nobody has looked at
            # before. They stay.
            return batch
        return self._left_of_records(header, batch, body, records, must_stay)

    def _left_of_records(
        self, header: BatchHeader, batch: Buffer, body: bytes, records: list[RecordSpan], must_stay: bool
    ) -> Buffer | None:
        has_horizon = bool(header.attributes & DELETE_HORIZON)
        kept = self._kept(header, records, keeps_deletions=not has_horizon or self._now_ms < header.base_timestamp)
        if not kept:
            return _emptied(header, must_stay)
        horizon_ms = None
        if not has_horizon and not all(span.has_value for span in kept):
            horizon_ms = self._now_ms + self._retention_ms
        elif len(kept) == len(records):
            return batch
        return with_records(header, body, kept, delete_horizon_ms=horizon_ms)

    def _kept(self, header: BatchHeader, records: list[RecordSpan], *, keeps_deletions: bool) -> list[RecordSpan]:
        kept = []
        base_offset, last, end = header.base_offset, self._keys.last, self._keys.end
        for span in records:
            offset, key = base_offset + span.offset_delta, span.key
            if offset >= end:
                kept.append(span)
            elif key is None:
                self.dropped_keyless += 1
            elif offset >= last(key) and (span.has_value or keeps_deletions):
                kept.append(span)
        return kept

    def _left_of_marker(self, header: BatchHeader, batch: Buffer, must_stay: bool) -> Buffer | None:
        if not self._transactions.is_needless(header, marker_of(header, batch)):
            return batch
        if not header.record_count:
            return _emptied(header, must_stay)
        if not header.attributes & DELETE_HORIZON:
            body = body_of(batch, header, limit=self._limit)
            horizon_ms = self._now_ms + self._retention_ms
            return with_records(header, body, spans(body, header), delete_horizon_ms=horizon_ms)
        return _emptied(header, must_stay) if header.base_timestamp <= self._now_ms else batch

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_written.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        offset, epoch = last
        if offset != NO_OFFSET:
            return header.last_offset == offset
        return header.is_control and header.producer_epoch == epoch


def _emptied(header: BatchHeader, must_stay: bool) -> Buffer | None:
    return without_records(header) if must_stay else None
