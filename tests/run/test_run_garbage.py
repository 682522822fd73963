"""What requests leave behind is freed at once: a broker that waits for the garbage collector grows, or pauses.

The collector is calmed down in a running broker (``run/server``), so a cycle of references stays for a long time.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from cordwood.testing import Broker
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from support.batches import FETCH_VERSION, PRODUCE_VERSION, produce, values_batch
from support.raw import ClosedByBroker, RawClient, framed
from support.waiting import eventually

TIMES = 5


class Clients:
    """Two clients of one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.one = RawClient(bootstrap)
        self.two = RawClient(bootstrap)
        self.create("t")

    def create(self, name: str) -> None:
        topic = CreateTopicsRequestTopic(name=name, num_partitions=1, replication_factor=1)
        self.one.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)

    def metadata(self) -> None:
        self.two.ask(MetadataRequest(topics=None), MetadataResponse)

    def write(self) -> int:
        answer = self.two.ask(produce("t", values_batch(b"x")), ProduceResponse, version=PRODUCE_VERSION)
        return answer.responses[0].partition_responses[0].base_offset

    def read(self) -> None:
        self.one.ask(fetch(), FetchResponse, version=FETCH_VERSION)

    def wait_in_vain(self) -> None:
        self.one.ask(fetch(self.write() + 1, max_wait_ms=1), FetchResponse, version=FETCH_VERSION)

    def wait_for_a_record(self) -> None:
        self.one.send(fetch(self.write() + 1, max_wait_ms=10_000), version=FETCH_VERSION)
        self.metadata()
        self.write()
        self.one.receive_frame()

    def go_away_while_waiting(self) -> None:
        with RawClient(self.bootstrap) as client:
            client.send(fetch(self.write() + 1, max_wait_ms=10_000), version=FETCH_VERSION)
            client.send(MetadataRequest(topics=[]))
            self.metadata()

    def use_a_session(self) -> None:
        request = fetch()
        request.session_epoch = 0
        session = self.one.ask(request, FetchResponse, version=FETCH_VERSION).session_id
        end = FetchRequest(session_id=session, session_epoch=-1)
        self.one.ask(end, FetchResponse, version=FETCH_VERSION)

    def create_and_delete(self) -> None:
        self.create("short-lived")
        gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="short-lived")])
        self.one.ask(gone, DeleteTopicsResponse)

    def take_a_producer_id(self) -> None:
        self.one.ask(InitProducerIdRequest(transaction_timeout_ms=1), InitProducerIdResponse)

    def send_garbage(self) -> None:
        with RawClient(self.bootstrap) as client:
            client.send_bytes(framed(b"\0\x03\0\x0c\0\0\0\0\xff\xff\0garbage"))
            with pytest.raises(ClosedByBroker):
                client.receive_frame()

    def close(self) -> None:
        self.one.close()
        self.two.close()


ACTIONS: list[Callable[[Clients], object]] = [
    Clients.metadata,
    Clients.write,
    Clients.read,
    Clients.wait_in_vain,
    Clients.wait_for_a_record,
    Clients.go_away_while_waiting,
    Clients.use_a_session,
    Clients.create_and_delete,
    Clients.take_a_producer_id,
    Clients.send_garbage,
]


def fetch(offset: int = 0, *, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchRequestPartition(fetch_offset=offset, partition_max_bytes=1000)
    topics = [FetchRequestTopic(topic="t", partitions=[partition])]
    return FetchRequest(min_bytes=1, max_wait_ms=max_wait_ms, topics=topics)


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with Broker() as broker:
        clients = Clients(broker.bootstrap)
        yield clients
        clients.close()


@pytest.fixture
def collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.usefixtures("collector")
def test_a_request_leaves_no_cycle_of_references(clients: Clients, action: Callable[[Clients], object]) -> None:
    action(clients)
    gc.collect()
    gc.garbage.clear()
    for _ in range(TIMES):
        action(clients)
    clients.metadata()  # the broker is done with what came before
    gc.collect()
    ours = Counter(type(left).__qualname__ for left in gc.garbage if type(left).__module__.startswith("cordwood"))
    functions = [
        getattr(left, "__qualname__", type(left).__qualname__)
        for left in gc.garbage
        if str(getattr(left, "__module__", "")).startswith("cordwood")
    ]
    assert not ours, functions


def test_the_test_can_tell_a_cycle(collector: None) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self

    Cycle()
    eventually(gc.collect, what="the discovery of a cycle")
    assert [left for left in gc.garbage if isinstance(left, Cycle)]
