"""A client that keeps a table in a compacted topic: it sets keys, deletes them, and remembers what was acknowledged.

Whenever a broker has started, and at the end, this must hold: nobody finds a value of a key that is older than the last
acknowledged one, nor one that was never sent, nor any value of a key whose deletion was acknowledged.
"""

from collections.abc import Iterable
from typing import NamedTuple

from cordwood.errors import Error
from cordwood.ids import TopicName, TopicPartition
from cordwood.log.log import Log
from cordwood.record.batch import Codec, batches
from cordwood.record.build import Record, build, records
from cordwood.sim.client import Caller, Surroundings
from cordwood.wire.messages import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
)

TABLE = TopicPartition(TopicName("table"), 0)

KEYS = (b"a", b"b", b"c", b"a key that is too long to be kept whole")
RECORDS_MAX = 3
PAUSE_MAX_MS = 120


class Told(NamedTuple):
    """An acknowledged write."""

    offset: int
    value: bytes | None


class Keeper:
    """Writes a batch at a time; one that is not acknowledged may be in the log or not, and is not sent again."""

    def __init__(self, around: Surroundings, *, batches: int) -> None:
        self._around = around
        self._caller = Caller(around, "keeper", self._find if around.clustered else self._go_on)
        self._left = batches
        self._sent: set[tuple[bytes | None, bytes | None]] = set()
        self._told: dict[bytes | None, Told] = {}
        """The last acknowledged write of each key."""
        self._in_doubt: set[bytes | None] = set()
        """Keys that have been written to since then, without an answer."""

    @property
    def is_done(self) -> bool:
        return not self._left and not len(self._caller)

    def start(self) -> None:
        self._caller.connect()

    def _pause(self) -> None:
        self._around.clock.after(self._around.random.randint(1, PAUSE_MAX_MS), "keeper goes on", self._go_on)

    def _find(self) -> None:
        """Ask who leads the table."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TABLE.topic)], allow_auto_topic_creation=False)
        self._caller.ask(request, 12, MetadataResponse, self._found)

    def _found(self, response: MetadataResponse) -> None:
        (topic,) = response.topics
        leader = topic.partitions[TABLE.partition].leader_id if topic.partitions else -1
        address = next(((broker.host, broker.port) for broker in response.brokers if broker.node_id == leader), None)
        if not self._caller.move(address):
            self._pause()

    def _go_on(self) -> None:
        if self._caller.is_connected and not len(self._caller) and self._left:
            self._left -= 1
            self._write()

    def _write(self) -> None:
        random = self._around.random
        now_ms = self._around.clock.now.wall_ms
        contents = [
            Record(
                number, now_ms, random.choice(KEYS), None if random.random() < 0.2 else b"%d.%d" % (self._left, number)
            )
            for number in range(random.randint(1, RECORDS_MAX))
        ]
        self._sent |= {(record.key, record.value) for record in contents}
        self._in_doubt |= {record.key for record in contents}
        data = build(contents, codec=random.choice((Codec.NONE, Codec.ZSTD)))
        part = ProduceRequestPartition(index=TABLE.partition, records=memoryview(data))
        request = ProduceRequest(
            acks=-1, timeout_ms=1_000, topic_data=[ProduceRequestTopic(name=TABLE.topic, partition_data=[part])]
        )
        self._caller.ask(request, 9, ProduceResponse, lambda response: self._answered(contents, response))

    def _answered(self, contents: list[Record], response: ProduceResponse) -> None:
        ((answer,),) = [topic.partition_responses for topic in response.responses]
        if answer.error_code == Error.NONE:
            for record in contents:
                self._told[record.key] = Told(answer.base_offset + record.offset, record.value)
                self._in_doubt.discard(record.key)
            self._around.on_acknowledged()
        elif answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            self._left += 1  # the topic does not exist yet
        elif answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            self._caller.move(None)
        self._pause()

    # ------------------------------------------------------------------ checking

    def surprises(self, log: Log | None) -> list[str]:
        """What the log lacks, or has and should not."""
        found = list(_stored(log)) if log is not None else []
        return [
            *(f"table: nobody sent {r.value!r} for {r.key!r}" for r in found if (r.key, r.value) not in self._sent),
            *(text for key, told in self._told.items() for text in self._of_key(key, told, found)),
        ]

    def _of_key(self, key: bytes | None, told: Told, found: list[Record]) -> Iterable[str]:
        mine = [record for record in found if record.key == key]
        what = f"table: {key!r} was {told.value!r} at offset {told.offset}, acknowledged"
        newest = mine[-1] if mine else None
        if newest is None or newest.offset < told.offset:
            if told.value is not None:
                yield f"{what}, and is lost"
            elif newest is not None:
                yield f"{what}, and {newest.value!r} from offset {newest.offset} is back"
        elif newest.offset == told.offset and newest.value != told.value:
            yield f"{what}, and is {newest.value!r}"
        elif newest.offset > told.offset and key not in self._in_doubt:
            yield f"{what}, and {newest.value!r} comes after it"


def _stored(log: Log) -> Iterable[Record]:
    offset = log.log_start_offset
    while (piece := log.read(offset, 1 << 20, up_to_offset=log.end_offset)) is not None:
        for batch, header in batches(memoryview(piece.read())):
            yield from records(batch, header, limit=1 << 20)
            offset = header.next_offset
