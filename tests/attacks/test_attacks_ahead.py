"""Clients that send requests without waiting for answers: more of them, or larger ones, than anybody sane does."""

from attacks.arena import MIB, create_topic, fetch_request
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from support.batches import FETCH_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, crowd, encoded
from support.waiting import eventually

API_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def create_wide_topic(client: RawClient) -> str:
    """Its description is long. All tests share one: each costs seconds when the broker stops and starts."""
    create_topic(client, "wide", partitions=1000)
    return "wide"


def test_a_reader_that_is_slow_gets_everything(broker: BrokerProcess) -> None:
    """Many requests at once, and their answers taken in late: none is lost, none comes twice."""
    with RawClient(broker.bootstrap) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=create_wide_topic(client))])
        client.send_bytes(b"".join(encoded(request, version=12, correlation_id=number) for number in range(200)))
        received = [int.from_bytes(client.receive_frame()[:4], "big") for _ in range(200)]
        assert received == list(range(200))
        client.ask(request, MetadataResponse)


def test_requests_pile_up_behind_a_waiting_one_and_are_answered_in_order(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    count = 1000
    waiting = encoded(fetch_request(topic, max_wait_ms=300), version=FETCH_VERSION, correlation_id=0)
    asked = [encoded(API_VERSIONS, version=3, correlation_id=number) for number in range(1, count)]
    client.send_bytes(waiting + b"".join(asked))
    received = [int.from_bytes(client.receive_frame()[:4], "big") for _ in range(count)]
    assert received == list(range(count))


def test_answers_kept_back_behind_a_waiting_request_take_bounded_memory(broker: BrokerProcess, topic: str) -> None:
    """Each connection has one request that waits for ever, and asks behind it for as much as it can."""
    with RawClient(broker.bootstrap) as client:
        create_wide_topic(client)
        create_topic(client, topic)
    endless = encoded(fetch_request(topic, max_wait_ms=2**31 - 1), version=FETCH_VERSION)
    large = encoded(MetadataRequest(topics=None), version=12)
    before = broker.forget_peak()
    with crowd(broker.bootstrap, 30) as clients, RawClient(broker.bootstrap) as other:
        for client in clients:
            client.send_bytes(endless + large * 127)
        other.ask(API_VERSIONS, ApiVersionsResponse)
        assert broker.peak_rss_bytes - before < 60 * MIB


def test_fetches_that_wait_for_ever_do_not_make_writing_slow(broker: BrokerProcess, topic: str) -> None:
    """Thousands of them, for more bytes than will ever come: each is told of every record."""
    with RawClient(broker.bootstrap) as client, crowd(broker.bootstrap, 100) as clients:
        create_topic(client, topic)
        endless = fetch_request(topic, max_wait_ms=2**31 - 1, min_bytes=2**31 - 1)
        for other in clients:
            other.send_bytes(encoded(endless, version=FETCH_VERSION) * 128)
        eventually(lambda: _cpu_of_asking_s(broker, client) < 0.05, what="the end of what the others ask")
        start_s = broker.cpu_s
        for _ in range(100):
            client.ask(_produce_to(topic, 0), ProduceResponse, version=11)
        assert broker.cpu_s - start_s < 3.0


def _cpu_of_asking_s(broker: BrokerProcess, client: RawClient) -> float:
    """Twenty small requests take hardly any, but what others ask has its turn between them."""
    start_s = broker.cpu_s
    for _ in range(20):
        client.ask(API_VERSIONS, ApiVersionsResponse)
    return broker.cpu_s - start_s


def test_chains_of_clients_that_wake_each_other_do_not_recurse(broker: BrokerProcess, topic: str) -> None:
    """One client's answer lets its next request go on, which gives the next client its answer, and so forth."""
    length = 150
    with RawClient(broker.bootstrap) as client, crowd(broker.bootstrap, length - 1) as clients:
        create_topic(client, topic, partitions=length)
        waits = [FetchRequestPartition(partition=number, partition_max_bytes=MIB) for number in range(length)]
        for number, other in enumerate(clients):
            fetch = FetchRequest(
                max_wait_ms=60_000, min_bytes=1, topics=[FetchRequestTopic(topic=topic, partitions=[waits[number]])]
            )
            filler = encoded(fetch, version=FETCH_VERSION) * 128
            other.send_bytes(filler + encoded(_produce_to(topic, number + 1), version=11))
        client.ask(_produce_to(topic, 0), ProduceResponse, version=11)
        for other in clients:
            for _ in range(129):
                assert other.receive_frame()


def _produce_to(topic: str, partition: int) -> ProduceRequest:
    return produce(topic, values_batch(b"wake"), partition=partition)
