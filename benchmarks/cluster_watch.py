"""What a cluster says about its partitions, asked with hand-made frames; when a producer's records are acknowledged."""

import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, Message, Producer

from . import raw
from .clusters import BrokerCluster
from .processes import ToolFailedError

POLL_S: Final = 0.02
SEND_S: Final = 0.002


def wait_until(condition: Callable[[], bool], what: str, *, limit_s: float) -> None:
    deadline_s = time.monotonic() + limit_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            raise ToolFailedError(f"it did not come to pass within {limit_s:.0f} s that {what}")
        pause.wait(POLL_S)


def in_sync(cluster: BrokerCluster, topics: Sequence[str]) -> bool:
    """Does every broker say that each partition of these topics is led, and has all its replicas in sync?"""
    for member in cluster.members.values():
        for topic in topics:
            states = _states(member.port, topic)
            if not states or any(s.leader < 0 or set(s.in_sync) != set(s.replicas) for s in states):
                return False
    return True


def led_by(cluster: BrokerCluster, topic: str, *, not_from: int | None = None) -> dict[int, int]:
    """The leader of each partition as one broker reports it; nothing if that broker does not answer."""
    port = next(member.port for member in cluster.members.values() if member.node_id != not_from)
    return {state.partition: state.leader for state in _states(port, topic)}


def _states(port: int, topic: str) -> list[raw.PartitionState]:
    try:
        with raw.RawConnection(port) as connection:
            return raw.partition_states(connection.ask(raw.topic_frame(topic)))
    except (OSError, raw.RawError, struct.error):
        return []


class Acknowledgements:
    """An idempotent producer, with librdkafka's defaults for timeouts and retries, that sends small records to one
    partition, number 0, without a pause, and notes when each is acknowledged. A context manager."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.longest_gap_s = 0.0
        self.errors: list[str] = []
        self._topic = topic
        self._count = 0
        self._last_s = time.monotonic()
        self._done = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0, "linger.ms": 0}
        )
        self._thread = threading.Thread(target=self._run, name="acknowledgements", daemon=True)

    def wait(self, count: int, *, limit_s: float) -> None:
        """Wait for *count* more acknowledgements."""
        goal = self._count + count
        wait_until(lambda: self._count >= goal, f"{count} more records are acknowledged", limit_s=limit_s)

    def forget_gaps(self) -> None:
        """Measure gaps from here on: the first begins with the last acknowledgement so far."""
        self.longest_gap_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self.errors and error is None:
            raise ToolFailedError(f"the producer was told of errors: {self.errors[0]}")

    def _run(self) -> None:
        while not self._done.wait(SEND_S):
            with suppress(BufferError):  # the queue of records in flight is full
                self._producer.produce(self._topic, bytes(100), partition=0, on_delivery=self._delivered)
            self._producer.poll(0)
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        now_s = time.monotonic()
        if error is not None:
            self.errors.append(str(error))
            return
        self.longest_gap_s = max(self.longest_gap_s, now_s - self._last_s)
        self._last_s = now_s
        self._count += 1
