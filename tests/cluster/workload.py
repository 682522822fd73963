"""Who uses the cluster while it suffers: writers that want every replica, readers in a group. All of it is recorded.

Each writer and each reader is a real client (librdkafka) with a thread of its own. Values are unique: the writer's name
and a number.
"""

import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from cluster.checker import SOMEWHERE, Place
from cluster.recorder import Recorder
from support.waiting import eventually

POLL_S = 0.05
COMMIT_EVERY = 50
SILENT = logging.getLogger("cluster.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
DEBUG: dict[str, str] = {}
"""Contexts of librdkafka that writers tell of, for whoever looks for the reason of a failure."""
if asked := os.environ.get("CLUSTER_TESTS_DEBUG"):  # FILE:CONTEXT,CONTEXT such as /tmp/writers.log:eos,msg
    _file = logging.FileHandler(asked.partition(":")[0])
    _file.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    SILENT.addHandler(_file)
    SILENT.setLevel(logging.DEBUG)
    DEBUG = {"debug": asked.partition(":")[2]}

Settings = Mapping[str, str | int | float | bool]

QUICK: Settings = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "topic.metadata.refresh.interval.ms": 2_000,
    "socket.connection.setup.timeout.ms": 3_000,
    # Else a client whose only connection is to a broker that hangs asks nobody else for a minute.
    "socket.timeout.ms": 4_000,
}


@dataclass(slots=True)
class Gap:
    """The longest time between two acknowledgements."""

    last_s: float = field(default_factory=monotonic)
    longest_s: float = 0.0

    def tick(self) -> None:
        now = monotonic()
        self.longest_s = max(self.longest_s, now - self.last_s)
        self.last_s = now


class Writer:
    """Sends to all partitions of a topic in turn, until it is stopped; then waits for what is under way.

    The idempotent one has many records under way, and its client tries again by itself: an error that it tells is one
    that an application would see. The plain one has one record under way and gives up soon. (Even when it is told not
    to try again, librdkafka does so after some errors, such as a change of leaders; a record may be stored twice.)
    """

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        name: str,
        topic: str,
        partitions: int,
        *,
        idempotent: bool,
        pause_s: float = 0.004,
        timeout_s: float = 60.0,
    ) -> None:
        self.name = name
        self.acknowledged = 0
        self.by_partition: Counter[int] = Counter()
        self.errors: list[str] = []
        self.gap = Gap()
        self._recorder = recorder
        self._topic = topic
        self._partitions = partitions
        self._idempotent = idempotent
        self._pause_s = pause_s
        self._under_way = 0
        self._stopping = threading.Event()
        settings: dict[str, object] = {"message.timeout.ms": int(timeout_s * 1000), "enable.idempotence": True}
        if not idempotent:
            settings = {
                "message.timeout.ms": 3_000,
                "message.send.max.retries": 0,
                "max.in.flight.requests.per.connection": 1,
            }
        fixed = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, "client.id": name, "logger": SILENT}
        self._producer = Producer({**fixed, **QUICK, **settings, **DEBUG})
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        recorder.producer(name, repeats=not idempotent)
        self._thread.start()

    @property
    def silent_s(self) -> float:
        """How long ago the last acknowledgement was."""
        return monotonic() - self.gap.last_s

    def stop(self) -> None:
        """Wait for what is under way, too."""
        self._stopping.set()
        self._thread.join()

    def abandon(self) -> None:
        """Wait for nothing: of what is under way, nobody will know."""
        self._stopping.set()
        self._producer.purge()
        self._thread.join()

    def _run(self) -> None:
        numbers = count()
        limit = 200 if self._idempotent else 1
        while not self._stopping.wait(self._pause_s):
            while self._under_way >= limit:
                self._producer.poll(POLL_S)
            self._send(next(numbers))
            self._producer.poll(0)
        while self._under_way:
            self._producer.poll(POLL_S)

    def _send(self, number: int) -> None:
        place = Place(self._topic, number % self._partitions)
        value = f"{self.name}:{number:06}"
        self._recorder.sent(self.name, place, value)
        self._under_way += 1
        self._producer.produce(self._topic, value.encode(), partition=place.partition, on_delivery=self._delivered)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._under_way -= 1
        value = (message.value() or b"").decode()
        if error is None:
            offset, partition = message.offset(), message.partition()
            assert partition is not None
            # There is no offset if it is a repetition of something that the broker does not remember in detail.
            self._recorder.acknowledged(self.name, value, SOMEWHERE if offset is None else offset)
            self.acknowledged += 1
            self.by_partition[partition] += 1
            self.gap.tick()
        else:
            self._recorder.unknown(self.name, value, error.name())
            self.errors.append(f"{value}: {error}")


class Reader:
    """A member of a group that reads, records, commits now and then, and goes on until it is stopped."""

    def __init__(self, recorder: Recorder, bootstrap: str, name: str, topic: str, group: str) -> None:
        self.name = name
        self.positions: dict[int, int] = {}
        self.errors: list[str] = []
        self._recorder = recorder
        self._topic = topic
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                "logger": SILENT,
                **QUICK,
            }
        )
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping.set()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        since_commit = 0
        try:
            while not self._stopping.is_set():
                for message in self._consumer.consume(100, timeout=POLL_S):
                    since_commit += self._take(message)
                if since_commit >= COMMIT_EVERY:
                    since_commit = 0
                    self._commit()
        finally:
            self._consumer.close()

    def _take(self, message: Message) -> int:
        if (error := message.error()) is not None:
            if error.code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                self.errors.append(str(error))
            return 0
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._recorder.read(self.name, Place(self._topic, partition), offset, (message.value() or b"").decode())
        self.positions[partition] = max(self.positions.get(partition, 0), offset + 1)
        return 1

    def _commit(self) -> None:
        """What cannot be committed now is with the next commit; a rebalance may have taken the partitions away."""
        try:
            self._consumer.commit(asynchronous=True)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._NO_OFFSET:
                self.errors.append(str(exception))


class Workload:
    """Two writers and a group of readers on one topic. A context manager: at its end all have ended."""

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        readers: int = 2,
        pause_s: float = 0.004,
        timeout_s: float = 60.0,
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.writers: list[Writer] = []
        self.readers: list[Reader] = []
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._reader_count = readers
        self._pause_s = pause_s
        self._timeout_s = timeout_s

    @property
    def plain(self) -> Writer:
        return self.writers[0]

    @property
    def idempotent(self) -> Writer:
        return self.writers[1]

    @property
    def acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self.writers)

    def progress(self, *, within_s: float = 30.0, records: int = 5, writers: Sequence[Writer] | None = None) -> None:
        """Wait until every writer has had some more records acknowledged in every partition."""
        before = {writer.name: Counter(writer.by_partition) for writer in writers or self.writers}

        def moved() -> bool:
            return all(
                writer.by_partition[p] >= before[writer.name][p] + records
                for writer in writers or self.writers
                for p in range(self.partitions)
            )

        eventually(moved, within_s=within_s, what=f"progress of all writers ({self._words()})")

    def stop_writing(self) -> None:
        for writer in self.writers:
            writer.stop()

    def read_to(self, ends: Mapping[int, int], *, within_s: float = 30.0) -> None:
        """Wait until the group has read up to these offsets."""
        eventually(
            lambda: all(self._position(p) >= end for p, end in ends.items()),
            within_s=within_s,
            what=f"the group's end of reading (it is to reach {dict(ends)}; {self._words()})",
        )

    def stop_reading(self) -> None:
        for reader in self.readers:
            reader.ask_to_stop()
        for reader in self.readers:
            reader.stop()
        self._recorder.group(f"group-{self.topic}", [reader.name for reader in self.readers])

    def _position(self, partition: int) -> int:
        return max((reader.positions.get(partition, 0) for reader in self.readers), default=0)

    def _words(self) -> str:
        writers = [f"{w.name} {dict(sorted(w.by_partition.items()))} {w.errors[-1:]}" for w in self.writers]
        readers = [f"{r.name} {dict(sorted(r.positions.items()))} {r.errors[-1:]}" for r in self.readers]
        return "; ".join([*writers, *readers])

    def _writer(self, name: str, *, idempotent: bool) -> Writer:
        return Writer(
            self._recorder,
            self._bootstrap,
            f"{name}-{self.topic}",
            self.topic,
            self.partitions,
            idempotent=idempotent,
            pause_s=self._pause_s,
            timeout_s=self._timeout_s,
        )

    def __enter__(self) -> Self:
        self.writers = [self._writer("plain", idempotent=False), self._writer("idempotent", idempotent=True)]
        self.readers = [
            Reader(self._recorder, self._bootstrap, f"reader-{self.topic}-{n}", self.topic, f"group-{self.topic}")
            for n in range(self._reader_count)
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self.writers:
            writer.abandon()
        for reader in self.readers:
            reader.ask_to_stop()
        for reader in self.readers:
            reader.stop()
