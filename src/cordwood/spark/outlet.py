"""Rows to topics: how one task writes.

Batches carry a producer's sequence numbers, so one that is sent again after a lost answer is stored only once. That
holds within a task; a task that Spark repeats writes its rows again. Several requests are in flight at a time.
"""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from cordwood.client.raw import RawClient, RawError, RequestRefused
from cordwood.client.raw_produce import Publisher
from cordwood.errors import Error

from .encode import BATCH_BYTES, Encoder, Rows, Sealer, Unsealed
from .sink_options import SinkOptions
from .sink_rows import TooLargeRow, UnwritableRow, largest, sizes

TOPICS_OPEN_MAX: Final = 8
"""Each topic has connections of its own, so that its requests are answered in order."""
_MESSAGE_BYTES_MAX: Final = "max.message.bytes"


class Outlet:
    """One producer, for any number of topics. Nothing is known to be stored before ``flush`` has returned."""

    def __init__(self, options: SinkOptions, *, first_partition: int = 0) -> None:
        self._options = options
        self._first_partition = first_partition
        self._producer: tuple[int, int] | None = None
        self._topics: dict[str, _Topic] = {}
        self._open: list[_Topic] = []
        """The topic that was written to last is at the end."""
        self.rows = 0

    def check(self) -> None:
        assert len(self._open) <= TOPICS_OPEN_MAX, "connections are limited"
        assert all(topic.is_open == (topic in self._open) for topic in self._topics.values()), "open ones are listed"

    def write(self, topic: str, rows: Rows, timestamps_ms: int | NDArray[np.int64] | None = None) -> None:
        """
        Raises:
            UnwritableRow: one of the rows cannot be stored; the text says which, and what to do.
            RawError: the cluster does not accept them.
        """
        now_ms = int(time.time() * 1000) if timestamps_ms is None else timestamps_ms
        self._opened(topic).write(rows, now_ms)
        self.rows += len(rows.value)

    def _opened(self, name: str) -> "_Topic":
        if name not in self._topics:
            self._topics[name] = _Topic(name, self._options)
        topic = self._topics[name]
        if topic in self._open:
            self._open.remove(topic)
        elif len(self._open) == TOPICS_OPEN_MAX:
            self._open.pop(0).close()
        if not topic.is_open:
            topic.open(self)
        self._open.append(topic)
        return topic

    def prepared(self, client: RawClient, topic: str) -> tuple[Encoder, Sealer, int | None]:
        """What is needed to write to a topic for the first time, and how large its batches may be, if that is known."""
        options = self._options
        partitions = client.topics([topic], create=True)[topic].partitions
        limit = _message_bytes_max(client, topic) or options.batch_bytes_max
        if self._producer is None and options.idempotent:
            self._producer = client.init_producer_id()
        encoder = Encoder(
            len(partitions),
            codec=options.codec,
            level=options.level,
            batch_bytes=min(BATCH_BYTES, limit or BATCH_BYTES),
            first_partition=self._first_partition,
        )
        return encoder, Sealer(*self._producer) if self._producer else Sealer(), limit

    def flush(self) -> None:
        """Return when everything is stored."""
        for topic in self._open:
            topic.flush()

    def close(self) -> None:
        """Close the connections; what was not flushed may be stored or not."""
        for topic in self._open:
            topic.abandon()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()


class _Topic:
    """One topic. Its sequence numbers continue when it is closed and opened again."""

    def __init__(self, name: str, options: SinkOptions) -> None:
        self.name = name
        self._options = options
        self._client: RawClient | None = None
        self._publisher: Publisher | None = None
        self._tools: tuple[Encoder, Sealer, int | None] | None = None

    @property
    def is_open(self) -> bool:
        return self._client is not None

    def open(self, outlet: Outlet) -> None:
        assert self._client is None, "it is closed"
        client = RawClient(self._options.settings)
        try:
            if self._tools is None:
                self._tools = outlet.prepared(client, self.name)
        except BaseException:
            client.close()
            raise
        self._client = client
        self._publisher = client.publisher(self.name, acks=self._options.acks, under_way=self._options.under_way)

    def write(self, rows: Rows, timestamps_ms: int | NDArray[np.int64]) -> None:
        assert self._tools is not None
        assert self._publisher is not None
        encoder, sealer, limit = self._tools
        self._check_rows(rows)
        rounds = list(encoder.encode(rows, timestamps_ms))
        for batches in rounds:
            self._check_sizes(batches, rows, limit)
        for batches in rounds:
            sealed = {partition: sealer.seal(batch) for partition, batch in batches.items()}
            try:
                self._publisher.send(sealed)
            except RequestRefused as refusal:
                raise _explained(refusal, self.name) from refusal

    def _check_rows(self, rows: Rows) -> None:
        most = self._options.row_bytes_max
        if most is not None and len(rows.value) and pc.max(sizes(rows)).as_py() > most:
            raise TooLargeRow(
                f"{largest(rows)}, is larger than option kafka.max.request.size allows, which is {most}. Raise it, or "
                "make the row smaller"
            )

    def _check_sizes(self, batches: Mapping[int, Unsealed], rows: Rows, limit: int | None) -> None:
        most = max(len(batch.data) for batch in batches.values())
        if limit is not None and most > limit:
            raise TooLargeRow(
                f"{largest(rows)}, makes a batch of {most} bytes; topic {self.name} takes at most {limit}. Raise the "
                f"topic's {_MESSAGE_BYTES_MAX}, set kafka.compression.type, or make the row smaller"
            )

    def flush(self) -> None:
        if self._publisher is not None:
            try:
                self._publisher.flush()
            except RequestRefused as refusal:
                raise _explained(refusal, self.name) from refusal

    def close(self) -> None:
        """Flush, and close the connections."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._publisher = None


def _message_bytes_max(client: RawClient, topic: str) -> int | None:
    """None if we are not allowed to know."""
    try:
        found = client.topic_settings([topic], [_MESSAGE_BYTES_MAX])
    except RawError:
        return None
    text = found.get(topic, {}).get(_MESSAGE_BYTES_MAX)
    return int(text) if text else None


def _explained(refusal: RequestRefused, topic: str) -> Exception:
    hints = {
        Error.MESSAGE_TOO_LARGE: f"raise the topic's {_MESSAGE_BYTES_MAX}, set kafka.compression.type, or make rows "
        "smaller",
        Error.OUT_OF_ORDER_SEQUENCE_NUMBER: f"topic {topic} has lost batches that it had confirmed, or was made anew; "
        "run the job again",
        Error.INVALID_PRODUCER_EPOCH: "another task writes with the same producer; run the job again",
        Error.PRODUCER_FENCED: "another task writes with the same producer; run the job again",
        Error.INVALID_RECORD: "a compacted topic takes no row without a key",
    }
    if refusal.error not in hints:
        return refusal
    return UnwritableRow(f"{refusal}. What to do: {hints[refusal.error]}")
