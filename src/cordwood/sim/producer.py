"""An idempotent producer. After a lost connection, a timeout, or an error, it sends unacknowledged batches again, in
order, with the same sequence numbers.

A power failure may take what the broker has acknowledged. Then the broker expects a different sequence number, and says
so; this producer gives up the batches in flight (they may be in the log or not) and continues with a new id.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from cordwood.errors import Error
from cordwood.ids import TopicPartition
from cordwood.record.batch import Codec
from cordwood.record.build import Record, build
from cordwood.sim.client import Caller, Surroundings
from cordwood.sim.history import Acknowledged
from cordwood.wire.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
)

RETRY_MAX_MS = 300
RECORDS_MAX = 4

_LOST_HISTORY = (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_EPOCH)


@dataclass(slots=True)
class Outgoing:
    """A batch on its way: it keeps its sequence number however often it is sent."""

    partition: TopicPartition
    sequence: int
    values: tuple[bytes, ...]
    in_flight: bool = False
    life: int = 0
    """The broker's life in which it was first sent."""


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
        self._around = around
        self._partitions = partitions
        self._version = version
        self._acks = acks
        self._in_flight_max = in_flight_max
        self._pause_max_ms = pause_max_ms
        self._caller = Caller(around, name, self._connected)
        self._producer_id = -1
        self._id_era = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._established: set[TopicPartition] = set()
        """Partitions where the broker knows this producer id. Until then it accepts any sequence number as the first,
        as Kafka does, so a second batch must not overtake a first that was refused."""
        self._unacknowledged: deque[Outgoing] = deque()
        self._left = batches
        self.name = name

    @property
    def is_done(self) -> bool:
        return not self._left and not self._unacknowledged

    def start(self) -> None:
        self._caller.connect()
        self._pause()

    def _pause(self) -> None:
        delay_ms = self._around.random.randint(1, self._pause_max_ms)
        self._around.clock.after(delay_ms, f"{self.name} has a new batch", self._next)

    def _next(self) -> None:
        if len(self._unacknowledged) < self._in_flight_max:
            self._add()
        self._pump()
        if self._left:
            self._pause()

    def _add(self) -> None:
        self._left -= 1
        random = self._around.random
        partition = random.choice(self._partitions)
        sent = self._around.history.sent.setdefault((self.name, partition), [])
        count = random.randint(1, RECORDS_MAX)
        values = tuple(b"%s/%s/%d" % (self.name.encode(), str(partition).encode(), len(sent) + n) for n in range(count))
        sent.extend(values)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + count
        self._unacknowledged.append(Outgoing(partition, sequence, values))

    # ------------------------------------------------------------------ sending

    def _connected(self) -> None:
        for batch in self._unacknowledged:
            batch.in_flight = False
        if self._producer_id < 0:
            self._caller.ask(InitProducerIdRequest(), 4, InitProducerIdResponse, self._initialised)
        else:
            self._pump()

    def _initialised(self, response: InitProducerIdResponse) -> None:
        if response.error_code != Error.NONE:
            self._retry(f"no producer id: {Error(response.error_code).name}")
            return
        self._producer_id = response.producer_id
        self._id_era = self._around.history.era
        self._around.history.producer_ids.append(response.producer_id)
        self._around.trace.line(self.name, f"is producer {response.producer_id}")
        self._pump()

    def _pump(self) -> None:
        if not self._caller.is_connected or self._producer_id < 0:
            return
        for batch in self._unacknowledged:
            if not batch.in_flight and (batch.partition in self._established or self._is_first(batch)):
                batch.in_flight = True
                self._send(batch)

    def _send(self, batch: Outgoing) -> None:
        batch.life = batch.life or self._around.history.lives
        now_ms = self._around.clock.now.wall_ms
        data = build(
            [Record(number, now_ms, None, value) for number, value in enumerate(batch.values)],
            codec=self._around.random.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4)),
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=batch.sequence,
        )
        part = ProduceRequestPartition(index=batch.partition.partition, records=memoryview(data))
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=1_000,
            topic_data=[ProduceRequestTopic(name=batch.partition.topic, partition_data=[part])],
        )
        self._caller.ask(request, self._version, ProduceResponse, lambda response: self._answered(batch, response))

    # ------------------------------------------------------------------ answers

    def _answered(self, batch: Outgoing, response: ProduceResponse) -> None:
        ((answer,),) = [topic.partition_responses for topic in response.responses]
        if batch not in self._unacknowledged:
            return  # given up in the meantime
        if answer.error_code == Error.NONE:
            self._acknowledged(batch, answer.base_offset)
        elif answer.error_code in _LOST_HISTORY and self._is_first(batch):
            self._begin_anew(batch, Error(answer.error_code))
        else:
            self._retry(f"{batch.partition} sequence {batch.sequence}: {Error(answer.error_code).name}")

    def _acknowledged(self, batch: Outgoing, offset: int) -> None:
        self._unacknowledged.remove(batch)
        self._established.add(batch.partition)
        self._around.trace.line(self.name, f"{batch.partition} sequence {batch.sequence} is at offset {offset}")
        self._around.history.acknowledged.append(
            Acknowledged(self.name, batch.partition, offset, batch.values, self._around.history.era)
        )
        self._around.on_acknowledged()
        self._pump()

    def _is_first(self, batch: Outgoing) -> bool:
        """Is it the one that the broker should expect? A later one fails only because an earlier one has failed."""
        return next(other for other in self._unacknowledged if other.partition == batch.partition) is batch

    def _begin_anew(self, batch: Outgoing, error: Error) -> None:
        history = self._around.history
        if not self._is_excused(batch):
            history.complain(f"{self.name} was told {error.name} for {batch.partition} sequence {batch.sequence}")
        self._around.trace.line(self.name, f"{batch.partition} sequence {batch.sequence}: {error.name}, begins anew")
        self._unacknowledged.clear()
        self._sequences.clear()
        self._established.clear()
        self._producer_id = -1
        self._caller.drop("it needs a new producer id")

    def _is_excused(self, batch: Outgoing) -> bool:
        """May the broker have lost track of this producer?

        In a power failure, if the topic is not synced. And of several batches in flight, a broker that has restarted
        may know only the last, like Kafka's: a snapshot holds no more.
        """
        history = self._around.history
        lost = history.era != self._id_era and batch.partition.topic not in history.safe_topics
        return lost or (self._in_flight_max > 1 and history.lives != batch.life)

    def _retry(self, reason: str) -> None:
        """Drop the connection, so that nothing overtakes what is sent again."""
        self._around.trace.line(self.name, f"tries again: {reason}")
        delay_ms = self._around.random.randint(1, RETRY_MAX_MS)
        self._around.clock.after(delay_ms, f"{self.name} tries again", lambda: self._caller.drop(reason))
