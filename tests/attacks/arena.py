"""A broker process under attack, and an honest client that is connected throughout.

After every attack: the broker runs, its memory has kept within bounds, the honest client goes on undisturbed over the
connection it had, and nothing that it ever wrote is lost.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TypeVar

from cordwood.record.batch import batches
from cordwood.record.build import records
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    CreateTopicsResponseTopic,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    ProduceResponse,
    ProduceResponsePartition,
)
from support.batches import FETCH_VERSION, PRODUCE_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient

T = TypeVar("T")
MIB = 1 << 20

REQUEST_BYTES_MAX = 8 * MIB
GROWTH_BYTES_MAX = 150 * MIB
"""What one attack may take, beyond what the broker has when it begins."""
ALL_GROWTH_BYTES_MAX = 220 * MIB
"""What all attacks one after the other may take: the system's allocator does not give everything back at once."""

STALL_S_MAX = 30.0
STALL_CPU_S_MAX = 3.0
"""How long the honest client may ever wait for an answer, and how much the broker may do for others meanwhile.

The first is generous, because a machine may be busy with other things; the second does not depend on that.
"""

SETTINGS = {
    "socket.request.max.bytes": REQUEST_BYTES_MAX,
    "queued.max.requests": 500,
    "connections.max.idle.ms": 60_000,
    "socket.listen.backlog.size": 2000,  # or the system makes a crowd wait for seconds
    "cordwood.max.decompressed.message.bytes": 16 * MIB,
}


class Bystander:
    """An honest client on one connection: it writes record after record, in the background, and reads all of them back.

    What it notes: every record got the next offset, and how long the slowest answer took.
    """

    TOPIC = "bystander"

    def __init__(self, broker: BrokerProcess, *, idle_s: float) -> None:
        self._broker = broker
        self._idle_s = idle_s
        self._spoke_s = monotonic()
        self._client = RawClient(broker.bootstrap)
        self._written: list[bytes | None] = []
        self._lock = Lock()
        self._stop = Event()
        self._failure: BaseException | None = None
        self.forget_slowest()
        create_topic(self._client, self.TOPIC, {"retention.ms": -1})  # its records are from 1970
        self._thread = Thread(target=self._write_on, name="bystander", daemon=True)
        self._thread.start()

    def forget_slowest(self) -> None:
        self.slowest_s = 0.0
        self.slowest_cpu_s = 0.0

    def _write_on(self) -> None:
        while not self._stop.wait(0.02):
            try:
                with self._lock:
                    self._write()
            except BaseException as failure:
                self._failure = failure
                return

    def _write(self) -> None:
        value = f"record {len(self._written)}".encode()
        start_s, start_cpu_s = monotonic(), self._broker.cpu_s
        placed = self._undisturbed(lambda client: produced(client, self.TOPIC, values_batch(value)))
        self.slowest_s = max(self.slowest_s, monotonic() - start_s)
        self.slowest_cpu_s = max(self.slowest_cpu_s, self._broker.cpu_s - start_cpu_s)
        assert (placed.error_code, placed.base_offset) == (0, len(self._written))
        self._written.append(value)

    def _undisturbed(self, talk: Callable[[RawClient], T]) -> T:
        """What comes of a talk. Only who was silent for as long as the limit may find the connection closed: a client
        of a machine that stood still."""
        while True:
            spoke_s, self._spoke_s = self._spoke_s, monotonic()
            try:
                return talk(self._client)
            except ClosedByBroker:
                if monotonic() - spoke_s < self._idle_s:
                    raise
            self._client.close()
            self._spoke_s = monotonic()
            self._client = RawClient(self._broker.bootstrap)

    def check(self) -> None:
        """It has met no trouble, and everything that it ever wrote is there."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._write()
            assert self._undisturbed(lambda client: read_all(client, self.TOPIC)) == self._written

    @property
    def written(self) -> list[bytes | None]:
        return self._written

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


class Arena:
    """The broker, the bystander, and what must be true after every attack."""

    def __init__(self, data: Path, settings: Mapping[str, object], wrapper: Sequence[str]) -> None:
        self._data = data
        self._settings = settings
        self._wrapper = wrapper
        self._starts = 0
        self._fallen = False
        self._start()

    def _start(self) -> None:
        self._starts += 1
        data = self._data / str(self._starts)
        self.process = BrokerProcess(data, settings=self._settings, wrapper=self._wrapper).start()
        idle_s = int(str(self._settings["connections.max.idle.ms"])) / 1000
        self.bystander = Bystander(self.process, idle_s=idle_s)
        self.bystander.check()
        self.rss_bytes = self._begin_rss_bytes = self.process.rss_bytes

    def begin(self) -> None:
        """Forget earlier peaks. Where an earlier attack succeeded there is a new broker."""
        if self._fallen:
            self.bystander.close()
            self.process.end()
            self._start()
            self._fallen = False
        self.process.log.clear()
        self._begin_rss_bytes = self.process.forget_peak()
        self.bystander.forget_slowest()

    def check(self) -> None:
        self._fallen = True
        assert not self._killed(), f"the attack killed the broker:\n{self.process.log_text()}"
        peak_bytes = self.process.peak_rss_bytes
        assert peak_bytes < self._begin_rss_bytes + GROWTH_BYTES_MAX
        assert peak_bytes < self.rss_bytes + ALL_GROWTH_BYTES_MAX
        self.bystander.check()
        assert self.bystander.slowest_s < STALL_S_MAX
        assert self.bystander.slowest_cpu_s < STALL_CPU_S_MAX
        self._fallen = False

    def _killed(self) -> bool:
        """Has it ended, or is it about to? It says so before it does."""
        return not self.process.running or "CRITICAL" in self.process.log_text()

    def close(self) -> None:
        """Stop cleanly, and find everything again after a start."""
        self.bystander.close()
        status = self.process.stop()
        if self._fallen:
            return
        assert status == 0
        with self.process as again, RawClient(again.bootstrap) as client:
            assert read_all(client, Bystander.TOPIC) == self.bystander.written
            assert again.stop() == 0


def create_topic(
    client: RawClient, name: str, config: Mapping[str, object] | None = None, *, partitions: int = 1
) -> CreateTopicsResponseTopic:
    configs = [CreateTopicsRequestConfig(name=key, value=str(value)) for key, value in (config or {}).items()]
    topic = CreateTopicsRequestTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    return client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse).topics[0]


def produced(client: RawClient, topic: str, batch: bytes | None, *, acks: int = 1) -> ProduceResponsePartition:
    """What became of one batch."""
    answer = client.ask(produce(topic, batch, acks=acks), ProduceResponse, version=PRODUCE_VERSION)
    return answer.responses[0].partition_responses[0]


def fetch_request(topic: str, offset: int = 0, *, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    partition = FetchRequestPartition(fetch_offset=offset, partition_max_bytes=10 * MIB)
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[FetchRequestTopic(topic=topic, partitions=[partition])]
    )


def fetched(client: RawClient, topic: str, offset: int) -> bytes:
    """The bytes of batches from *offset* on."""
    answer = client.ask(fetch_request(topic, offset), FetchResponse, version=FETCH_VERSION)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code == 0
    assert isinstance(partition.records, bytes | memoryview)
    return bytes(partition.records)


def read_all(client: RawClient, topic: str) -> list[bytes | None]:
    """The values of all records of a topic's only partition."""
    values: list[bytes | None] = []
    offset = 0
    while data := fetched(client, topic, offset):
        for batch, header in batches(memoryview(bytearray(data))):
            values += [record.value for record in records(batch, header, limit=64 * MIB)]
            offset = header.next_offset
    return values
