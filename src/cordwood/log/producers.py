"""What the log knows of idempotent and transactional producers, to tell retries from gaps and owners from zombies.

For each producer: its epoch and its last five batches. The rules are Kafka's:

- A batch with the epoch and the sequence numbers of one of the last five is a duplicate: it has been written already.
- An epoch smaller than the last one is ``INVALID_PRODUCER_EPOCH``. A larger one must begin at sequence number 0.
- Otherwise a batch must follow the last one: anything else is ``OUT_OF_ORDER_SEQUENCE_NUMBER``.
- An unknown producer (a new or forgotten one) may begin anywhere.

The first offset of every open transaction is kept; nothing from the smallest such offset on is stable yet.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cordwood.errors import Error, Refused
from cordwood.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from cordwood.record.batch import SEQUENCE_MAX, TRANSACTIONAL, BatchHeader
from cordwood.record.control import ControlType, EndMarker

from .snapshot import SnapshotEntry

BATCHES_KEPT: Final = 5


class BatchSpan:
    """The sequence numbers and offsets of one batch."""

    __slots__ = ("last_offset", "last_sequence", "offset_delta", "timestamp")

    def __init__(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        self.last_sequence: Final = last_sequence
        self.last_offset: Final = last_offset
        self.offset_delta: Final = offset_delta
        self.timestamp: Final = timestamp

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Producer:
    """The last batches that one producer wrote."""

    __slots__ = ("coordinator_epoch", "epoch", "last_timestamp", "next_sequence", "spans", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.transaction_start = NO_OFFSET
        self.spans: list[BatchSpan] = []
        self.next_sequence = 0
        """The sequence number that the next batch of this epoch must begin with, once there has been one."""

    @property
    def last_sequence(self) -> int:
        return self.spans[-1].last_sequence if self.spans else NO_SEQUENCE

    def wrote(self, header: BatchHeader, first_offset: int) -> None:
        """A batch of this epoch was written at *first_offset*."""
        delta, timestamp = header.last_offset_delta, header.max_timestamp
        self.add(BatchSpan(header.last_sequence, first_offset + delta, delta, timestamp))
        self.last_timestamp = timestamp

    def add(self, span: BatchSpan) -> None:
        """A batch was written."""
        spans = self.spans
        if len(spans) == BATCHES_KEPT:
            spans.pop(0)
        spans.append(span)
        self.next_sequence = 0 if span.last_sequence == SEQUENCE_MAX else span.last_sequence + 1

    @property
    def last_offset(self) -> int:
        return self.spans[-1].last_offset if self.spans else NO_OFFSET


class CompletedTransaction(NamedTuple):
    """A transaction that was ended by the marker at ``last_offset``."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Producers:
    """The producers of one partition, as of ``end_offset``."""

    __slots__ = ("_ended", "_open", "_producers", "end_offset")

    def __init__(self, end_offset: int = 0) -> None:
        self.end_offset = end_offset
        self._producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        """The first offset of each open transaction, and its producer. Offsets grow, so the first is the oldest."""
        self._ended: dict[int, CompletedTransaction] = {}
        """Transactions whose marker may not be replicated yet, by their first offset."""

    def __len__(self) -> int:
        return len(self._producers)

    @property
    def known(self) -> Mapping[int, Producer]:
        return self._producers

    def whose_turn(self, header: BatchHeader) -> Producer | None:
        """The producer of a batch, if this is what it should send next: the usual case, decided by one lookup.

        No transaction is involved then, and calling ``Producer.wrote`` is all there is to do once the batch is written.
        """
        producer = self._producers.get(header.producer_id)
        if (
            producer is not None
            and producer.epoch == header.producer_epoch
            and producer.next_sequence == header.base_sequence
            and producer.transaction_start == NO_OFFSET
            and not header.attributes & TRANSACTIONAL
        ):
            return producer
        return None

    def find_duplicate(self, header: BatchHeader) -> BatchSpan | None:
        """The batch that was written when the producer first sent this one; None if it is new."""
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        last_sequence = header.last_sequence
        for span in producer.spans:
            if span.last_sequence == last_sequence and span.offset_delta == header.last_offset_delta:
                return span
        return None

    def check_append(self, header: BatchHeader, *, sequenced: bool = True) -> None:
        """Refuse the batch unless its producer may append it now. *sequenced* is False for what coordinators write."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        if header.producer_epoch < producer.epoch:
            raise Refused(
                Error.INVALID_PRODUCER_EPOCH,
                f"Producer {header.producer_id} has epoch {producer.epoch}, not {header.producer_epoch} any more.",
            )
        if sequenced and producer.epoch != NO_PRODUCER_EPOCH:
            expected = producer.next_sequence if header.producer_epoch == producer.epoch else 0
            if header.base_sequence != expected:
                raise Refused(
                    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Producer {header.producer_id} sent sequence number {header.base_sequence}, expected {expected}.",
                )
        if producer.transaction_start != NO_OFFSET and not header.is_transactional:
            text = f"Producer {header.producer_id} has a transaction under way, and this batch is not part of it."
            raise Refused(Error.INVALID_TXN_STATE, text)

    def in_transaction(self, producer_id: int) -> bool:
        producer = self._producers.get(producer_id)
        return producer is not None and producer.transaction_start != NO_OFFSET

    def append(self, header: BatchHeader, first_offset: int) -> None:
        """A producer's batch of records was written at *first_offset*."""
        producer = self._of_epoch(header.producer_id, header.producer_epoch)
        producer.wrote(header, first_offset)
        if header.attributes & TRANSACTIONAL and producer.transaction_start == NO_OFFSET:
            producer.transaction_start = first_offset
            self._open[first_offset] = header.producer_id

    def check_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        """Refuse the marker unless the coordinator that wrote it may still end the producer's transaction."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return
        if header.producer_epoch < producer.epoch:
            text = f"Producer {header.producer_id} has epoch {producer.epoch}, not {header.producer_epoch} any more."
            raise Refused(Error.INVALID_PRODUCER_EPOCH, text)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            text = f"The coordinator has epoch {producer.coordinator_epoch}, not {marker.coordinator_epoch} any more."
            raise Refused(Error.TRANSACTION_COORDINATOR_FENCED, text)

    def end_transaction(self, header: BatchHeader, marker: EndMarker, offset: int) -> CompletedTransaction | None:
        """A marker was written at *offset*: the transaction it ends, None if none was open."""
        producer = self._of_epoch(header.producer_id, header.producer_epoch)
        completed = None
        if producer.transaction_start != NO_OFFSET:
            aborted = marker.type is ControlType.ABORT
            completed = CompletedTransaction(header.producer_id, producer.transaction_start, offset, aborted)
            del self._open[producer.transaction_start]
            self._ended[producer.transaction_start] = completed
            producer.transaction_start = NO_OFFSET
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        return completed

    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open), None)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins that is open or whose marker is not below *high_watermark*."""
        for first_offset in [first for first, ended in self._ended.items() if ended.last_offset < high_watermark]:
            del self._ended[first_offset]
        return min([*self._ended, *self._open], default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have written nothing for *expiration_ms*, unless they are in a transaction."""
        for producer_id in [i for i, p in self._producers.items() if _is_idle(p, now_ms, expiration_ms)]:
            del self._producers[producer_id]

    def clear(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self._producers.clear()
        self._open.clear()
        self._ended.clear()

    def snapshot(self) -> list[SnapshotEntry]:
        return [_snapshot_of(producer_id, producer) for producer_id, producer in self._producers.items()]

    def restore(self, entries: Iterable[SnapshotEntry], end_offset: int) -> None:
        """Start from what was known at *end_offset*."""
        self.clear(end_offset)
        for entry in entries:
            self._producers[entry.producer_id] = _restored(entry)
        transactions = [(p.transaction_start, i) for i, p in self._producers.items() if p.transaction_start >= 0]
        self._open.update(sorted(transactions))

    def check(self) -> None:
        assert list(self._open) == sorted(self._open), "open transactions are in offset order"
        for first_offset, producer_id in self._open.items():
            assert self._producers[producer_id].transaction_start == first_offset, "a transaction has its producer"
        for producer in self._producers.values():
            assert len(producer.spans) <= BATCHES_KEPT, "no more batches than are needed"
            offsets = [span.last_offset for span in producer.spans]
            assert offsets == sorted(offsets), "a producer's batches are in offset order"
            assert producer.last_offset < self.end_offset, "nothing is known of what is not written"

    def _of_epoch(self, producer_id: int, epoch: int) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.spans.clear()
            producer.next_sequence = 0
        return producer


def _is_idle(producer: Producer, now_ms: int, expiration_ms: int) -> bool:
    return producer.transaction_start == NO_OFFSET and now_ms - producer.last_timestamp >= expiration_ms


def _snapshot_of(producer_id: int, producer: Producer) -> SnapshotEntry:
    return SnapshotEntry(
        producer_id=producer_id,
        epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_offset=producer.last_offset,
        offset_delta=producer.spans[-1].offset_delta if producer.spans else 0,
        timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        transaction_start=producer.transaction_start,
    )


def _restored(entry: SnapshotEntry) -> Producer:
    producer = Producer(entry.epoch)
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.last_timestamp = entry.timestamp
    producer.transaction_start = max(entry.transaction_start, NO_OFFSET)
    if entry.last_offset >= 0:
        producer.add(BatchSpan(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp))
    return producer
