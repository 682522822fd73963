"""A whole broker without clock, sockets or threads: a test sends requests and gets answers, all in one call.

Effects are carried out at once unless the test holds them back (``hold_metadata``, ``hold_syncs``, ``hold_removals``,
``hold_compactions``, ``hold_lingers``).
After every event the broker's invariants are checked, and the bytes of the request are overwritten: nothing may keep a
view of them.
"""

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from cordwood.broker.additions import AT_ONCE, PAUSE_MS
from cordwood.broker.broker import Broker
from cordwood.broker.connection import Connection, Peer
from cordwood.effects import Close, Compact, Effect, Linger, Remove, Send, Sync, WriteMetadata
from cordwood.errors import CordwoodError, CorruptData, Error, StorageError, StoreConflict
from cordwood.ids import ConnectionId, TopicName
from cordwood.partition.partition import Partition
from cordwood.ports import Chunk, FileSlice, Instant, MetadataChange
from cordwood.record.batch import batches
from cordwood.record.build import Record, build, records
from cordwood.sim.disk import SimDisk
from cordwood.sim.node import open_broker
from cordwood.sim.store import SimStore
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
)
from cordwood.wire.registry import api_of

R = TypeVar("R")

START = Instant(wall_ms=1_700_000_000_000, mono_ms=5_000)


class Lines:
    """A logger that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def debug(self, msg: str, /, *args: object) -> None:
        self.lines.append(msg % args)

    info = warning = error = debug

    def __contains__(self, text: str) -> bool:
        return any(text in line for line in self.lines)


class Client:
    """One connection, seen from the client's end."""

    def __init__(self, harness: "Harness", connection: Connection) -> None:
        self._harness = harness
        self._versions: dict[int, tuple[type, int]] = {}
        self._count = 0
        self.connection = connection
        self.inbox: deque[tuple[int, object]] = deque()
        self.closed: str | None = None
        """Why the broker has closed the connection, if it has."""

    def send(self, request: object, version: int, client_id: str | None = "test") -> int:
        """Send a request and do not wait; its correlation id."""
        self._count += 1
        api = api_of(request)
        self._versions[self._count] = (api.response, version)
        chunks = request_frame(correlation_id=self._count, api_version=version, message=request, client_id=client_id)
        self.send_bytes(b"".join(bytes(c) for c in chunks if not isinstance(c, FileSlice))[4:])
        return self._count

    def send_bytes(self, frame: bytes) -> None:
        """Send any bytes as one frame."""
        self._harness.receive(self, frame)

    def arrived(self, chunks: Sequence[Chunk]) -> None:
        """One answer, or several that leave together."""
        data = memoryview(b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks))
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            assert end <= len(data)
            frame, data = data[4:end], data[end:]
            correlation_id = read_correlation_id(frame)
            cls, version = self._versions.pop(correlation_id)
            self.inbox.append((correlation_id, read_response(cls, version, frame)))

    def expect_raw(self, correlation_id: int, cls: type, version: int) -> None:
        """An answer of this type and version will come to a request that was sent as bytes."""
        self._versions[correlation_id] = (cls, version)

    def take(self, cls: type[R]) -> R:
        """The next answer, which must be there."""
        assert self.inbox, f"no answer yet; closed: {self.closed}"
        _, response = self.inbox.popleft()
        assert isinstance(response, cls)
        return response

    def ask(self, request: object, version: int, cls: type[R]) -> R:
        """Send a request; its answer must come at once."""
        correlation_id = self.send(request, version)
        assert self.inbox, f"no answer yet; closed: {self.closed}"
        assert self.inbox[0][0] == correlation_id
        return self.take(cls)

    def disconnect(self) -> None:
        self._harness.disconnect(self)


class Harness:
    """A broker, its disk and its store; a clock that stands still until ``advance``."""

    def __init__(self, disk: SimDisk | None = None, store: SimStore | None = None, **settings: object) -> None:
        """*settings* are the broker's, with ``_`` for ``.``"""
        self.static = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.random = Random(7)
        self.disk = disk or SimDisk(Random(8))
        self.store = store or SimStore()
        self.logger = Lines()
        self.now = START
        self.clients: dict[ConnectionId, Client] = {}
        self.hold_metadata = self.hold_syncs = self.hold_removals = self.hold_compactions = False
        self.hold_lingers = False
        self.held: deque[Effect] = deque()
        self.syncs = 0
        """How many ``Sync`` effects there were."""
        self.conflicts = 0
        """How many of the next metadata writes the store refuses because of a conflict."""
        self.store_error: CordwoodError | None = None
        self.checking = True
        """Look at the broker's invariants after every event? Not while a test has broken something on purpose."""
        self._count = 0
        self.broker = self._open()

    def _open(self) -> Broker:
        broker = open_broker(
            static=self.static,
            disk=self.disk,
            store=self.store,
            entropy=self.random,
            logger=self.logger,
            now=self.now,
        )
        self.broker = broker
        self.execute(broker.start(self.now))
        return broker

    # ------------------------------------------------------------------ events

    def connect(self, host: str = "10.0.0.1") -> Client:
        client = self.try_connect(host)
        assert client is not None
        return client

    def try_connect(self, host: str = "10.0.0.1") -> Client | None:
        self._count += 1
        peer = Peer(host, 40_000 + self._count, "192.168.0.1", 9092)
        connection = self.broker.connected(ConnectionId(self._count), peer, self.now)
        if connection is None:
            return None
        client = self.clients[connection.id] = Client(self, connection)
        return client

    def disconnect(self, client: Client) -> None:
        del self.clients[client.connection.id]
        self.execute(self.broker.disconnected(client.connection, self.now))

    def receive(self, client: Client, frame: bytes) -> None:
        buffer = bytearray(frame)
        effects = self.broker.received(client.connection, memoryview(buffer), self.now)
        buffer[:] = b"\xee" * len(buffer)
        self.execute(effects)

    def advance(self, ms: int) -> None:
        """Let time pass, timer by timer."""
        end = self.now.mono_ms + ms
        while (deadline := self.broker.next_deadline()) is not None and deadline <= end:
            self._pass(max(deadline - self.now.mono_ms, 0))
            self.execute(self.broker.tick(self.now))
        self._pass(end - self.now.mono_ms)

    def _pass(self, ms: int) -> None:
        self.now = Instant(self.now.wall_ms + ms, self.now.mono_ms + ms)

    # ------------------------------------------------------------------ effects

    def execute(self, effects: Sequence[Effect]) -> None:
        if self.checking:
            self.broker.check()
        for effect in effects:
            if self._is_held(effect):
                self.held.append(effect)
            else:
                self._do(effect)

    def _is_held(self, effect: Effect) -> bool:
        return (
            (self.hold_metadata and isinstance(effect, WriteMetadata))
            or (self.hold_syncs and isinstance(effect, Sync))
            or (self.hold_removals and isinstance(effect, Remove))
            or (self.hold_compactions and isinstance(effect, Compact))
            or (self.hold_lingers and isinstance(effect, Linger))
        )

    def release(self, count: int | None = None) -> None:
        """Carry out what was held back: the first *count*, or all, and what follows from them."""
        while self.held and count != 0:
            self._do(self.held.popleft())
            count = None if count is None else count - 1

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(connection, chunks):
                if connection in self.clients:
                    self.clients[connection].arrived(chunks)
            case Close(connection, reason):
                if connection in self.clients:
                    self.clients[connection].closed = reason
                    self.disconnect(self.clients[connection])
            case WriteMetadata():
                self._write(effect)
            case Sync(token, files):
                self.syncs += 1
                for file in files:
                    file.sync()
                self.execute(self.broker.synced(token, self.now))
            case Remove(token, paths, directories):
                for path in paths:
                    self.disk.remove(path)
                for path in directories:
                    self.disk.remove_tree(path)
                self.execute(self.broker.removed(token, self.now))
            case Compact():
                self._compact(effect)
            case Linger():
                self.execute(self.broker.lingered(self.now))

    def _compact(self, effect: Compact) -> None:
        error: StorageError | CorruptData | None = None
        try:
            for _ in effect.work:
                pass
        except (StorageError, CorruptData) as failure:
            error = failure
        self.execute(self.broker.compacted(effect.token, error, self.now))

    def _write(self, effect: WriteMetadata) -> None:
        try:
            change = self._multi(effect)
        except CordwoodError as error:
            self.execute(self.broker.metadata_refused(effect.token, error, self.now))
            return
        self.execute(self.broker.metadata_written(effect.token, change, self.now))

    def _multi(self, effect: WriteMetadata) -> MetadataChange:
        if self.store_error is not None:
            raise self.store_error
        if self.conflicts:
            self.conflicts -= 1
            raise StoreConflict("as the test wants it")
        return self.store.multi(effect.operations)

    # ------------------------------------------------------------------ ends and beginnings

    def stop(self) -> None:
        """A clean stop."""
        for client in list(self.clients.values()):
            self.disconnect(client)
        self.broker.shut_down(self.now)
        self.held.clear()

    def kill(self) -> None:
        """The process dies: what was written is there, what was on its way is not."""
        self.clients.clear()
        self.held.clear()
        self.disk.kill()

    def lose_power(self) -> None:
        self.clients.clear()
        self.held.clear()
        self.disk.crash()

    def start(self) -> None:
        self.broker = self._open()

    # ------------------------------------------------------------------ shorthands

    def topic(self, name: str, partitions: int = 1, **config: object) -> TopicName:
        """Create a topic, through the API, on a connection of its own."""
        client = self.connect()
        wanted = CreateTopicsRequestTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[
                CreateTopicsRequestConfig(name=key.replace("_", "."), value=str(value)) for key, value in config.items()
            ],
        )
        client.send(CreateTopicsRequest(topics=[wanted]), 7)
        self.advance(partitions // AT_ONCE * PAUSE_MS)
        response = client.take(CreateTopicsResponse)
        assert response.topics[0].error_code == Error.NONE, response.topics[0].error_message
        client.disconnect()
        return TopicName(name)

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.broker.replicas.get(TopicName(topic), index)

    def damage(self, path: str, position: int) -> None:
        """Turn a byte of a file round, as a rotten disk does."""
        self.checking = False
        self.disk._files[path].data[position] ^= 0xFF

    def close_files(self) -> None:
        """From now on the running broker can neither read nor write what it has open."""
        self.checking = False
        self.disk.kill()

    def watchers(self) -> int:
        """How many readers the partitions tell of news."""
        return sum(len(partition.watchers) for partition in self.broker.replicas.all())

    def append(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Produce one batch on a connection of its own; its first offset."""
        client = self.connect()
        data = batch(*values, timestamp=self.now.wall_ms)
        answer = produced(client.ask(produce(topic, data, partition=partition), 9, ProduceResponse))
        assert answer.error_code == Error.NONE, answer
        client.disconnect()
        return answer.base_offset


def batch(
    *values: bytes,
    timestamp: int = START.wall_ms,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    keys: bool = False,
) -> bytes:
    """A record batch as a producer sends it."""
    return bytes(
        build(
            [Record(n, timestamp, b"k%d" % n if keys else None, value) for n, value in enumerate(values)],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )


def produce(topic: str, data: bytes | None, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequestTopic(
                name=topic,
                partition_data=[
                    ProduceRequestPartition(index=partition, records=None if data is None else memoryview(data))
                ],
            )
        ],
    )


def produced(response: ProduceResponse) -> ProduceResponsePartition:
    """The only partition of an answer."""
    ((answer,),) = [topic.partition_responses for topic in response.responses]
    return answer


def fetch(
    *topics: tuple[str, int, int],
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    session_id: int = 0,
    session_epoch: int = -1,
    isolation_level: int = 0,
) -> FetchRequest:
    """A fetch of (topic, partition, offset)s."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        isolation_level=isolation_level,
        topics=[
            FetchRequestTopic(
                topic=topic,
                partitions=[
                    FetchRequestPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                    )
                ],
            )
            for topic, partition, offset in topics
        ],
    )


def read(response: FetchResponse) -> dict[tuple[str, int], list[bytes | None]]:
    """The values of an answer, by topic and partition; what is empty or refused is there with no values."""
    return {
        (topic.topic, part.partition_index): values_of(part.records)
        for topic in response.responses
        for part in topic.partitions
    }


def values_of(data: object) -> list[bytes | None]:
    assert isinstance(data, memoryview | bytes)
    return [record.value for raw, header in batches(memoryview(data)) for record in records(raw, header, limit=1 << 20)]


def codes(response: FetchResponse) -> dict[tuple[str, int], int]:
    """The error codes of an answer, by topic and partition."""
    return {
        (topic.topic, part.partition_index): part.error_code
        for topic in response.responses
        for part in topic.partitions
    }
