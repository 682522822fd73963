"""Connections: answers in order, limits, idleness, and what ends one."""

import pytest

from broker.harness import Harness, batch, fetch, produce, read
from cordwood.errors import Error
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)


def test_an_answer_waits_for_those_of_earlier_requests() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    parked = client.send(fetch(("t", 0, 0), max_wait_ms=100), 12)
    later = [client.send(MetadataRequest(topics=[]), 9), client.send(ApiVersionsRequest(), 0)]
    assert not client.inbox
    harness.append("t", b"x")
    assert [correlation_id for correlation_id, _ in client.inbox] == [parked, *later]
    assert read(client.take(FetchResponse)) == {("t", 0): [b"x"]}
    client.take(MetadataResponse)
    client.take(ApiVersionsResponse)


def test_a_later_request_is_served_while_an_earlier_one_waits() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=100), 12)
    client.send(produce("t", batch(b"from behind")), 9)
    assert read(client.take(FetchResponse)) == {("t", 0): [b"from behind"]}
    client.take(ProduceResponse)


def test_answers_of_two_connections_do_not_wait_for_each_other() -> None:
    harness = Harness()
    harness.topic("t")
    first, second = harness.connect(), harness.connect()
    first.send(fetch(("t", 0, 0), max_wait_ms=100), 12)
    second.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
    assert not first.inbox


def test_a_client_that_goes_away_gets_no_answer_and_leaves_nothing_behind() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=100), 12)
    assert harness.watchers() == 1
    client.disconnect()
    assert harness.watchers() == 0
    assert not harness.broker.ready
    harness.append("t", b"x")
    harness.advance(200)
    assert not client.inbox
    assert not harness.broker.connections


def test_a_client_may_go_away_while_its_change_is_under_way() -> None:
    harness = Harness()
    harness.hold_metadata = True
    client = harness.connect()
    client.send(_metadata_of("new"), 9)
    client.disconnect()
    harness.release()
    assert "new" in harness.broker.image.topics
    assert not client.inbox


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\3\0\1",  # no room for a correlation id
        b"\0\3\0\1\0\0\0\1\0\x64abc",  # a client id that goes on past the end
        b"\0\3\0\1\0\0\0\1\xff\xff\0\0\0\7",  # an array that goes on past the end
        b"\0\3\0\1\0\0\0\1\xff\xff\xff\xff\xff\xff!",  # a byte too many
        b"\0\3\0\x63\0\0\0\1\xff\xff",  # a version of Metadata that nobody knows
        b"\0\x26\0\1\0\0\0\1\xff\xff",  # an API that is declared and not served
        b"\x7f\x00\0\0\0\0\0\1\xff\xff",  # an API that nobody knows
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    ],
)
def test_what_is_no_request_ends_its_connection_and_no_other(frame: bytes) -> None:
    harness = Harness()
    client, other = harness.connect(), harness.connect()
    client.send_bytes(frame)
    assert client.closed
    assert client.connection.id not in harness.broker.connections
    other.ask(MetadataRequest(topics=[]), 9, MetadataResponse)


def test_a_huge_request_that_brings_no_records_ends_its_connection() -> None:
    harness = Harness(cordwood_max_recordless_request_bytes=2048)
    harness.topic("t")
    client = harness.connect()
    client.ask(produce("t", batch(b"x" * 5_000)), 9, ProduceResponse)
    client.send(_metadata_of("x" * 3_000), 9)
    assert client.closed is not None
    assert "brings no records" in client.closed


def test_a_connection_tells_the_log_who_it_is() -> None:
    client = Harness().connect("10.1.2.3")
    assert str(client.connection) == "1 from 10.1.2.3"
    client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, ApiVersionsResponse)
    assert str(client.connection) == "1 from 10.1.2.3 (a/1)"


def test_the_reason_for_an_unserved_api_names_it() -> None:
    client = Harness().connect()
    client.send_bytes(b"\0\x26\0\1\0\0\0\1\xff\xff")
    assert client.closed == "CreateDelegationToken version 1 is not served here"


def test_an_idle_connection_is_closed() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    idle, busy = harness.connect(), harness.connect()
    for _ in range(8):
        harness.advance(15_000)
        busy.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
    assert idle.closed == "nothing happened for 60000 ms"
    assert busy.closed is None


def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=300_000), 12)
    harness.advance(299_000)
    assert client.closed is None
    harness.advance(1_000)
    client.take(FetchResponse)
    harness.advance(59_000)
    assert client.closed is None, "the time counts from the answer"
    harness.advance(31_000)
    assert client.closed is not None


def test_who_waits_for_an_answer_and_holds_room_for_another_request_is_idle() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=300_000), 12)
    client.connection.room_bytes = 5
    harness.advance(91_000)
    assert client.closed == "nothing happened for 60000 ms"


def test_who_waits_for_an_answer_and_has_others_kept_behind_it_is_idle() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=300_000), 12)
    client.send(MetadataRequest(topics=[]), 12)
    harness.advance(91_000)
    assert client.closed == "nothing happened for 60000 ms"


def test_who_waits_for_an_answer_and_does_not_read_earlier_ones_is_idle() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=300_000), 12)
    client.connection.unread = True
    harness.advance(91_000)
    assert client.closed == "nothing happened for 60000 ms"


def test_who_waits_for_room_is_not_idle() -> None:
    harness = Harness(connections_max_idle_ms=60_000)
    client = harness.connect()
    client.connection.waits_for_room = True
    harness.advance(300_000)
    assert client.closed is None


def test_a_negative_idle_time_is_never() -> None:
    harness = Harness(connections_max_idle_ms=-1)
    client = harness.connect()
    harness.advance(3_600_000)
    assert client.closed is None


def waits_ms(harness: Harness, listener: str = "PLAINTEXT") -> int:
    return harness.broker.wait_to_accept_ms(listener, harness.now)


def test_who_is_more_than_may_connect_waits() -> None:
    harness = Harness(max_connections=2)
    first = harness.connect("10.0.0.1")
    assert waits_ms(harness) == 0
    harness.connect("10.0.0.2")
    assert waits_ms(harness) > 0
    assert "new connections wait: max.connections is 2" in harness.logger
    first.disconnect()
    assert waits_ms(harness) == 0


def test_what_new_connections_wait_for_is_said_when_they_begin_to() -> None:
    harness = Harness(max_connections=1)
    for _ in range(2):
        client = harness.connect()
        for _ in range(100):
            assert waits_ms(harness) > 0
            harness.advance(1_000)
        client.disconnect()
        assert waits_ms(harness) == 0
    assert len([line for line in harness.logger.lines if "new connections wait" in line]) == 2


def test_new_connections_that_wait_are_told_of_once_a_second_at_the_most() -> None:
    harness = Harness(max_connections=1)
    for _ in range(200):
        client = harness.connect()
        assert waits_ms(harness) > 0
        client.disconnect()
        assert waits_ms(harness) == 0
        harness.advance(10)
    assert len([line for line in harness.logger.lines if "new connections wait" in line]) == 2


def test_brokers_do_not_wait_at_a_listener_of_their_own() -> None:
    harness = Harness(
        max_connections=1,
        max_connection_creation_rate=1,
        listeners="CLIENTS://h:1,BROKERS://h:2",
        inter_broker_listener_name="BROKERS",
        listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    )
    harness.connect()
    assert waits_ms(harness, "CLIENTS") > 0
    assert waits_ms(harness, "BROKERS") == 0


def test_the_number_of_connections_of_one_address_is_limited() -> None:
    harness = Harness(max_connections_per_ip=1, max_connections_per_ip_overrides="10.0.0.9:2, 10.0.0.8:0")
    first = harness.connect("10.0.0.1")
    assert harness.try_connect("10.0.0.1") is None
    harness.connect("10.0.0.2")
    harness.connect("10.0.0.9")
    ninth = harness.connect("10.0.0.9")
    assert harness.try_connect("10.0.0.9") is None
    assert harness.try_connect("10.0.0.8") is None
    first.disconnect()
    ninth.disconnect()
    harness.connect("10.0.0.1")
    harness.connect("10.0.0.9")


def test_the_rate_of_new_connections_is_limited() -> None:
    harness = Harness(max_connection_creation_rate=2)
    harness.connect()
    harness.connect()
    waited_ms = waits_ms(harness)
    assert 0 < waited_ms <= 1_000
    harness.advance(waited_ms)
    assert waits_ms(harness) == 0


def test_the_address_that_a_client_dialled_is_the_one_it_is_told() -> None:
    client = Harness().connect()
    (broker,) = client.ask(MetadataRequest(topics=[]), 9, MetadataResponse).brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "192.168.0.1", 9092, None)


def test_an_advertised_address_is_what_every_client_is_told() -> None:
    harness = Harness(advertised_listeners="PLAINTEXT://example.org:1234", broker_rack="r1", node_id=5)
    client = harness.connect()
    (broker,) = client.ask(DescribeClusterRequest(), 1, DescribeClusterResponse).brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (5, "example.org", 1234, "r1")


@pytest.mark.parametrize(
    ("endpoint", "error"), [(2, Error.MISMATCHED_ENDPOINT_TYPE), (7, Error.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_a_broker_does_not_answer_for_controllers(endpoint: int, error: Error) -> None:
    client = Harness().connect()
    response = client.ask(DescribeClusterRequest(endpoint_type=endpoint), 1, DescribeClusterResponse)
    assert response.error_code == error
    assert response.error_message is not None


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_cluster_is_described(version: int) -> None:
    harness = Harness()
    response = harness.connect().ask(DescribeClusterRequest(), version, DescribeClusterResponse)
    assert response.cluster_id == harness.broker.image.cluster_id
    assert response.controller_id == 1
    assert response.cluster_authorized_operations == -(2**31)


def _metadata_of(*names: str) -> MetadataRequest:
    from cordwood.wire.messages import MetadataRequestTopic

    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
