"""An idempotent producer that follows the leaders.

The batches of a partition are numbered. When one is not acknowledged, the producer waits for the answers to all that
are in flight to that partition, then asks for the leader, and sends again from the first unacknowledged batch, in
order.

With acks=1, acknowledged batches may be lost with their leader. Then the next leader misses a sequence number and says
so; the producer gives up the batches in flight (they may be in the log or not) and continues with a new id.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from cordwood.errors import Error
from cordwood.ids import TopicPartition
from cordwood.record.batch import Codec
from cordwood.record.build import Record, build
from cordwood.sim.client import Surroundings
from cordwood.sim.cluster.lines import Lines
from cordwood.sim.history import Acknowledged
from cordwood.wire.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
)

RETRY_MAX_MS = 200
RECORDS_MAX = 4
ALL, LEADER = -1, 1

_LOST_HISTORY = (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_EPOCH)


@dataclass(slots=True, eq=False)
class Batch:
    """A batch on its way: it keeps its sequence number however often it is sent."""

    sequence: int
    values: tuple[bytes, ...]
    in_flight: bool = False
    life: int = -1
    """How often a broker had started when it was first sent."""


@dataclass(slots=True, eq=False)
class Queue:
    """The batches on their way to one partition, in order."""

    partition: TopicPartition
    batches: deque[Batch] = field(default_factory=deque)
    next_sequence: int = 0
    in_flight: int = 0
    failed: bool = True
    """A batch was refused, or the leader is not known: nothing is sent before that is resolved."""
    retrying: bool = False
    established: bool = False
    """The leader knows this producer id; until then it accepts any sequence number as the first, as Kafka does."""


class Producer:
    """Sends numbered records to its partitions until it has sent enough."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        partitions: Sequence[TopicPartition],
        *,
        batches: int,
        version: int,
        acks: int,
        in_flight_max: int,
        pause_max_ms: int,
    ) -> None:
        self.name = name
        self._around = around
        self._lines = Lines(around, name)
        self._queues = [Queue(partition) for partition in partitions]
        self._topics = sorted({partition.topic for partition in partitions})
        self._version = version
        self._acks = acks
        self._in_flight_max = in_flight_max
        self._pause_max_ms = pause_max_ms
        self._producer_id = -1
        self._asking_for_id = False
        self._left = batches

    @property
    def is_done(self) -> bool:
        return not self._left and not any(queue.batches for queue in self._queues)

    def start(self) -> None:
        self._pause()

    def _pause(self) -> None:
        delay_ms = self._around.random.randint(1, self._pause_max_ms)
        self._around.clock.after(delay_ms, f"{self.name} has a new batch", self._next)

    def _next(self) -> None:
        queue = self._around.random.choice(self._queues)
        if len(queue.batches) < self._in_flight_max:
            self._add(queue)
            self._pump(queue)
        if self._left:
            self._pause()

    def _add(self, queue: Queue) -> None:
        self._left -= 1
        sent = self._around.history.sent.setdefault((self.name, queue.partition), [])
        count = self._around.random.randint(1, RECORDS_MAX)
        who = f"{self.name}/{queue.partition}".encode()
        values = tuple(b"%s/%d" % (who, len(sent) + number) for number in range(count))
        sent.extend(values)
        queue.batches.append(Batch(queue.next_sequence, values))
        queue.next_sequence += count

    # ------------------------------------------------------------------ sending

    def _pump(self, queue: Queue) -> None:
        if self._producer_id < 0:
            self._ask_for_id()
            return
        if queue.failed or self._lines.leader(queue.partition) is None:
            queue.failed = True
            self._recover(queue)
            return
        for batch in queue.batches:
            if not batch.in_flight and (queue.established or batch is queue.batches[0]):
                self._send(queue, batch)

    def _ask_for_id(self) -> None:
        if self._producer_id < 0 and not self._asking_for_id:
            self._asking_for_id = True
            self._lines.ask_any(InitProducerIdRequest(), 4, InitProducerIdResponse, self._initialised)

    def _initialised(self, response: InitProducerIdResponse | None) -> None:
        self._asking_for_id = False
        if response is None or response.error_code != Error.NONE:
            delay_ms = self._around.random.randint(1, RETRY_MAX_MS)
            self._around.clock.after(delay_ms, f"{self.name} asks for an id again", self._ask_for_id)
            return
        self._producer_id = response.producer_id
        self._around.history.producer_ids.append(response.producer_id)
        self._around.trace.line(self.name, f"is producer {response.producer_id}")
        for queue in self._queues:
            self._pump(queue)

    def _send(self, queue: Queue, batch: Batch) -> None:
        leader = self._lines.leader(queue.partition)
        assert leader is not None
        batch.in_flight = True
        queue.in_flight += 1
        if batch.life < 0:
            batch.life = self._around.history.lives
        now_ms = self._around.clock.now.wall_ms
        data = build(
            [Record(number, now_ms, None, value) for number, value in enumerate(batch.values)],
            codec=self._around.random.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4)),
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=batch.sequence,
        )
        part = ProduceRequestPartition(index=queue.partition.partition, records=memoryview(data))
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=1_000,
            topic_data=[ProduceRequestTopic(name=queue.partition.topic, partition_data=[part])],
        )
        producer_id = self._producer_id
        self._lines.ask(
            leader.node,
            request,
            self._version,
            ProduceResponse,
            lambda response: self._answered(queue, batch, producer_id, response),
        )

    # ------------------------------------------------------------------ answers

    def _answered(self, queue: Queue, batch: Batch, producer_id: int, response: ProduceResponse | None) -> None:
        if producer_id != self._producer_id:
            return  # given up in the meantime
        batch.in_flight = False
        queue.in_flight -= 1
        if response is None:
            self._failed(queue, batch, "no answer")
            return
        ((answer,),) = [topic.partition_responses for topic in response.responses]
        error = Error(answer.error_code)
        if error is Error.NONE:
            self._acknowledged(queue, batch, answer.base_offset)
        elif error in _LOST_HISTORY and batch is queue.batches[0]:
            self._begin_anew(queue, batch, error)
        else:
            self._failed(queue, batch, error.name)

    def _acknowledged(self, queue: Queue, batch: Batch, offset: int) -> None:
        history = self._around.history
        self._around.trace.line(self.name, f"{queue.partition} sequence {batch.sequence} is at offset {offset}")
        if batch in queue.batches:
            queue.batches.remove(batch)
        queue.established = True
        if self._acks == ALL:
            history.acknowledged.append(Acknowledged(self.name, queue.partition, offset, batch.values, 0))
            self._around.on_acknowledged()
        self._pump(queue)

    def _failed(self, queue: Queue, batch: Batch, reason: str) -> None:
        self._around.trace.line(self.name, f"{queue.partition} sequence {batch.sequence} failed: {reason}")
        queue.failed = True
        self._recover(queue)

    def _recover(self, queue: Queue) -> None:
        """Send again from the first batch, when all that are in flight have been answered."""
        if queue.in_flight or queue.retrying:
            return
        queue.retrying = True
        delay_ms = self._around.random.randint(1, RETRY_MAX_MS)
        self._around.clock.after(
            delay_ms,
            f"{self.name} looks for the leader of {queue.partition}",
            lambda: self._lines.refresh(self._topics, lambda: self._refreshed(queue)),
        )

    def _refreshed(self, queue: Queue) -> None:
        queue.retrying = False
        queue.failed = self._lines.leader(queue.partition) is None
        if queue.batches:
            self._pump(queue)

    def _begin_anew(self, queue: Queue, batch: Batch, error: Error) -> None:
        history = self._around.history
        what = f"{queue.partition} sequence {batch.sequence}"
        if not self._is_excused(batch):
            history.complain(f"{self.name} was told {error.name} for {what}")
        self._around.trace.line(self.name, f"{what}: {error.name}, begins anew")
        for old in self._queues:
            old.batches.clear()
        self._queues = [Queue(old.partition) for old in self._queues]
        self._producer_id = -1
        self._ask_for_id()

    def _is_excused(self, batch: Batch) -> bool:
        """May the cluster have lost track of this producer?

        What only a leader had may be lost. And of several batches in flight, a broker that has started since may know
        only the last, like Kafka's: a snapshot holds no more.
        """
        return self._acks == LEADER or (self._in_flight_max > 1 and self._around.history.lives != batch.life)
