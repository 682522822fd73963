"""A consumer by assignment that follows the leaders: it reads each of its partitions from the start, in its own loop.

A leader never takes back what it has shown: within one leader epoch, the high watermark that it reports does not fall,
and no leader knows less than what was read from another.
"""

from collections.abc import Sequence

from cordwood.errors import Error
from cordwood.ids import NO_TOPIC_ID, TopicPartition
from cordwood.record.batch import batches
from cordwood.record.build import records
from cordwood.sim.client import Surroundings
from cordwood.sim.cluster.lines import Leader, Lines
from cordwood.sim.history import Reading, Seen
from cordwood.wire.messages import (
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
)

WAIT_MAX_MS = 200
PAUSE_MAX_MS = 80
RETRY_MAX_MS = 200
FOLLOWERS_SERVE_SINCE = 11
"""From this version on, any replica answers (KIP-392): it may know less than the leader did."""

_RECORDS_BYTES_MAX = 1 << 24


class Consumer:
    """Reads until the simulation ends, and remembers what it saw."""

    def __init__(self, around: Surroundings, name: str, partitions: Sequence[TopicPartition], *, version: int) -> None:
        self.name = name
        self._around = around
        self._lines = Lines(around, name)
        self._topics = sorted({partition.topic for partition in partitions})
        self._version = version
        self._readings = {partition: Reading(name, partition) for partition in partitions}
        self._told: dict[tuple[TopicPartition, Leader], int] = {}
        """The last high watermark that each leader reported in each epoch."""
        around.history.readings += self._readings.values()

    def position(self, partition: TopicPartition) -> int:
        return len(self._readings[partition].seen)

    def start(self) -> None:
        for partition in self._readings:
            self._look(partition)

    def _look(self, partition: TopicPartition) -> None:
        self._lines.refresh(self._topics, lambda: self._later(partition, PAUSE_MAX_MS))

    def _later(self, partition: TopicPartition, delay_max_ms: int) -> None:
        delay_ms = self._around.random.randint(0, delay_max_ms)
        self._around.clock.after(delay_ms, f"{self.name} goes on with {partition}", lambda: self._fetch(partition))

    def _retry(self, partition: TopicPartition) -> None:
        delay_ms = self._around.random.randint(1, RETRY_MAX_MS)
        what = f"{self.name} looks for the leader of {partition}"
        self._around.clock.after(delay_ms, what, lambda: self._look(partition))

    # ------------------------------------------------------------------ asking

    def _fetch(self, partition: TopicPartition) -> None:
        leader = self._lines.leader(partition)
        if leader is None:
            self._retry(partition)
            return
        random = self._around.random
        wanted = FetchRequestPartition(
            partition=partition.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=self.position(partition),
            partition_max_bytes=random.choice((1, 200, 1 << 20)),
        )
        topic = FetchRequestTopic(
            topic=partition.topic,
            topic_id=self._lines.topic_ids.get(partition.topic, NO_TOPIC_ID),
            partitions=[wanted],
        )
        request = FetchRequest(
            max_wait_ms=random.choice((0, random.randint(1, WAIT_MAX_MS))),
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=0,
            session_epoch=-1,
            topics=[topic],
        )
        self._lines.ask(
            leader.node,
            request,
            self._version,
            FetchResponse,
            lambda response: self._fetched(partition, leader, response),
        )

    # ------------------------------------------------------------------ answers

    def _fetched(self, partition: TopicPartition, leader: Leader, response: FetchResponse | None) -> None:
        answers = [answer for topic in response.responses for answer in topic.partitions] if response else []
        if len(answers) != 1 or answers[0].error_code != Error.NONE:
            self._refused(partition, answers)
            return
        if self._version < FOLLOWERS_SERVE_SINCE:
            self._hear_of(partition, leader, answers[0].high_watermark)
        self._take(partition, answers[0])
        self._later(partition, PAUSE_MAX_MS)

    def _refused(self, partition: TopicPartition, answers: Sequence[FetchResponsePartition]) -> None:
        error = Error(answers[0].error_code) if answers else None
        if error is Error.OFFSET_OUT_OF_RANGE:
            self._around.history.complain(
                f"{self.name} read {partition} up to {self.position(partition)}: out of range"
            )
        self._around.trace.line(self.name, f"{partition}: {error.name if error is not None else 'no answer'}")
        self._retry(partition)

    def _hear_of(self, partition: TopicPartition, leader: Leader, high_watermark: int) -> None:
        before = self._told.get((partition, leader), -1)
        if high_watermark < before:
            self._around.history.complain(
                f"{partition}: broker {leader.node} told {self.name} the high watermark {before}, "
                f"and then {high_watermark}, both in epoch {leader.epoch}"
            )
        self._told[partition, leader] = high_watermark

    def _take(self, partition: TopicPartition, answer: FetchResponsePartition) -> None:
        assert isinstance(answer.records, memoryview)
        seen = self._readings[partition].seen
        first = len(seen)
        for batch, header in batches(answer.records):
            for record in records(batch, header, limit=_RECORDS_BYTES_MAX):
                if record.offset >= first:
                    seen.append(Seen(record.offset, record.value or b"", 0))
        if len(seen) > first:
            self._around.trace.line(self.name, f"{partition}: offsets {first} to {len(seen) - 1}")
