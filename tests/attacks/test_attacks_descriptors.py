"""Few file descriptors, and clients that take them all: the broker goes on with what it has."""

import socket
from contextlib import suppress

from attacks.arena import create_topic, produced, read_all
from cordwood.errors import Error
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from support.batches import PRODUCE_VERSION, produce, values_batch
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient, crowd, encoded
from support.waiting import eventually

LIMIT = 400
ARENA_WRAPPER = ["sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh"]


def answered(client: RawClient) -> bool:
    try:
        client.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), ApiVersionsResponse)
    except (ClosedByBroker, TimeoutError):
        return False
    return True


def test_more_connections_than_descriptors_leave_some_for_files(broker: BrokerProcess, topic: str) -> None:
    """Connections are refused before files cannot be opened any more: other clients' topics still grow."""
    with RawClient(broker.bootstrap) as before:
        create_topic(before, topic)
        with crowd(broker.bootstrap, LIMIT + 100):
            assert produced(before, topic, values_batch(b"x")).error_code == Error.NONE
            assert create_topic(before, topic + "-2", {"flush.messages": 1}).error_code == Error.NONE
            assert produced(before, topic + "-2", values_batch(b"x")).error_code == Error.NONE
        eventually(lambda: broker.open_files < LIMIT // 2, what="the end of the crowd")
        with RawClient(broker.bootstrap) as after:
            assert answered(after)


def test_a_storm_of_connections_without_descriptors_costs_no_cpu(broker: BrokerProcess) -> None:
    """A listener that cannot accept must not try again and again, nor fill the log."""
    with crowd(broker.bootstrap, LIMIT + 50):
        start_s = broker.cpu_s
        waiting = socket.create_connection(("127.0.0.1", int(broker.bootstrap.rpartition(":")[2])))
        with waiting:
            waiting.settimeout(1.0)
            with suppress(TimeoutError):
                waiting.recv(1)
        assert broker.cpu_s - start_s < 0.6
        assert len(broker.log) < 20, "a line a second, not one for each that is refused"


def test_more_segments_than_descriptors_do_no_harm(broker: BrokerProcess, topic: str) -> None:
    """Each batch begins a segment, and they come faster than segments are brought to the disk."""
    with RawClient(broker.bootstrap) as client:
        create_topic(client, topic, {"segment.index.bytes": 4, "retention.ms": -1})
        create_topic(client, topic + "-synced", {"flush.messages": 1})
        batch = encoded(produce(topic, values_batch(b"x")), version=PRODUCE_VERSION)
        for _ in range(10):
            client.send_bytes(batch * 100)
            for _ in range(100):
                assert client.receive_frame()
            produced(client, topic + "-synced", values_batch(b"x"))
        eventually(lambda: broker.open_files < LIMIT // 2, what="the segments to be closed")
        taken = len(read_all(client, topic))
        assert produced(client, topic, values_batch(b"x")).base_offset == taken
        assert produced(client, topic + "-synced", values_batch(b"x")).error_code == Error.NONE


def test_more_partitions_than_descriptors_are_refused(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        create_topic(client, topic)
        assert create_topic(client, topic + "-many", partitions=2 * LIMIT).error_code == Error.POLICY_VIOLATION
        for number in range(LIMIT):
            create_topic(client, f"{topic}-{number}")
            ask = MetadataRequest(topics=[MetadataRequestTopic(name=f"{topic}-{number}-by-asking")])
            client.ask(ask, MetadataResponse)
            more = CreatePartitionsRequestTopic(name=topic, count=number + 2, assignments=None)
            client.ask(CreatePartitionsRequest(topics=[more]), CreatePartitionsResponse)
        assert produced(client, topic, values_batch(b"x")).error_code == Error.NONE
    assert "Too many open files" not in broker.log_text()
