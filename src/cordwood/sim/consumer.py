"""A consumer by assignment: it reads its partitions from their start, with fetch sessions if its version has them.

It asks for little at a time, and some consumers forget a partition now and then, so that answers are cut short and
sessions change. If the log is shorter than what it has read, which only a power failure may cause, it begins again at
0.
"""

from collections.abc import Sequence
from uuid import UUID

from cordwood.errors import Error
from cordwood.ids import NO_TOPIC_ID, TopicPartition
from cordwood.record.batch import batches
from cordwood.record.build import records
from cordwood.sim.client import Caller, Surroundings
from cordwood.sim.history import Reading, Seen
from cordwood.wire.messages import (
    FetchRequest,
    FetchRequestForgottenTopic,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

SESSIONS_SINCE = 7
IDS_SINCE = 13
WAIT_MAX_MS = 500
PAUSE_MAX_MS = 50

_RECORDS_BYTES_MAX = 1 << 24


class Consumer:
    """Reads until it is told to stop, and remembers what it saw."""

    def __init__(
        self, around: Surroundings, name: str, partitions: Sequence[TopicPartition], *, version: int, forgetful: float
    ) -> None:
        self._around = around
        self._partitions = partitions
        self._version = version
        self._forgetful = forgetful
        self._caller = Caller(around, name, self._connected)
        self._session_id = 0
        self._session_epoch = 0
        self._in_session: dict[TopicPartition, int] = {}
        """The offset that the session has for each of its partitions."""
        self._topic_ids: dict[str, UUID] = {}
        self._readings = {partition: self._new_reading(partition) for partition in partitions}
        self.name = name

    def _new_reading(self, partition: TopicPartition) -> Reading:
        reading = Reading(self._caller.name, partition, self._around.history.era)
        self._around.history.readings.append(reading)
        return reading

    def position(self, partition: TopicPartition) -> int:
        return len(self._readings[partition].seen)

    def start(self) -> None:
        self._caller.connect()

    def _connected(self) -> None:
        if self._around.random.random() < 0.5:
            self._close_session()
        self._in_session.clear()  # the session may continue, but it may have missed any part of the last request
        if self._version >= IDS_SINCE and not self._topic_ids:
            self._ask_for_ids()
        else:
            self._fetch()

    def _ask_for_ids(self) -> None:
        names = sorted({partition.topic for partition in self._partitions})
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        self._caller.ask(request, 12, MetadataResponse, self._know_ids)

    def _know_ids(self, response: MetadataResponse) -> None:
        found = {topic.name or "": topic.topic_id for topic in response.topics if topic.error_code == Error.NONE}
        if len(found) == len(response.topics):
            self._topic_ids = found
        self._pause()

    def _pause(self) -> None:
        delay_ms = self._around.random.randint(0, PAUSE_MAX_MS)
        self._around.clock.after(delay_ms, f"{self.name} goes on", self._go_on)

    def _go_on(self) -> None:
        if self._caller.is_connected and not len(self._caller):
            if self._version >= IDS_SINCE and not self._topic_ids:
                self._ask_for_ids()
            else:
                self._fetch()

    # ------------------------------------------------------------------ asking

    def _close_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._in_session.clear()

    def _fetch(self) -> None:
        random = self._around.random
        forgotten = self._forget_one() if random.random() < self._forgetful else []
        wanted = [p for p in self._partitions if p not in forgotten and self._in_session.get(p) != self.position(p)]
        has_sessions = self._version >= SESSIONS_SINCE
        request = FetchRequest(
            max_wait_ms=random.choice((0, random.randint(1, WAIT_MAX_MS))),
            min_bytes=random.choice((0, 1, 1, 200)),
            max_bytes=random.choice((1, 300, 1 << 20)),
            session_id=self._session_id,
            session_epoch=self._session_epoch if has_sessions else -1,
            topics=[self._wanted(partition) for partition in wanted],
            forgotten_topics_data=[
                FetchRequestForgottenTopic(
                    topic=p.topic, topic_id=self._topic_ids.get(p.topic, NO_TOPIC_ID), partitions=[p.partition]
                )
                for p in forgotten
            ],
        )
        if has_sessions:
            self._in_session.update({partition: self.position(partition) for partition in wanted})
        self._caller.ask(request, self._version, FetchResponse, self._fetched)

    def _forget_one(self) -> list[TopicPartition]:
        if not self._session_id or len(self._in_session) < 2:
            return []
        partition = self._around.random.choice(list(self._in_session))
        del self._in_session[partition]
        return [partition]

    def _wanted(self, partition: TopicPartition) -> FetchRequestTopic:
        return FetchRequestTopic(
            topic=partition.topic,
            topic_id=self._topic_ids.get(partition.topic, NO_TOPIC_ID),
            partitions=[
                FetchRequestPartition(
                    partition=partition.partition,
                    fetch_offset=self.position(partition),
                    partition_max_bytes=self._around.random.choice((1, 200, 1 << 20)),
                )
            ],
        )

    # ------------------------------------------------------------------ answers

    def _fetched(self, response: FetchResponse) -> None:
        if response.error_code != Error.NONE:
            self._around.trace.line(self.name, f"loses its session: {Error(response.error_code).name}")
            self._close_session()
        else:
            self._continue_session(response.session_id)
            names = {topic_id: name for name, topic_id in self._topic_ids.items()}
            for topic in response.responses:
                name = names[topic.topic_id] if self._version >= IDS_SINCE else topic.topic
                for answer in topic.partitions:
                    self._take(next(p for p in self._partitions if p == (name, answer.partition_index)), answer)
        self._pause()

    def _continue_session(self, session_id: int) -> None:
        if session_id == 0:
            self._close_session()
        else:
            self._session_id = session_id
            self._session_epoch += 1

    def _take(self, partition: TopicPartition, answer: FetchResponsePartition) -> None:
        history = self._around.history
        if answer.error_code == Error.OFFSET_OUT_OF_RANGE:
            if history.era == self._readings[partition].era:
                history.complain(f"{self.name} read {partition} up to {self.position(partition)}: out of range")
            self._around.trace.line(self.name, f"{partition} is shorter than {self.position(partition)}: from 0 again")
            self._readings[partition] = self._new_reading(partition)
            return
        if answer.error_code != Error.NONE:
            self._around.trace.line(self.name, f"{partition}: {Error(answer.error_code).name}")
            return
        assert isinstance(answer.records, memoryview)
        seen = self._readings[partition].seen
        first = len(seen)
        for batch, header in batches(answer.records):
            for record in records(batch, header, limit=_RECORDS_BYTES_MAX):
                if record.offset >= first:
                    seen.append(Seen(record.offset, record.value or b"", history.era))
        if len(seen) > first:
            self._around.trace.line(self.name, f"{partition}: offsets {first} to {len(seen) - 1}")
