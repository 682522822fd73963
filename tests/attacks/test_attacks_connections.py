"""Storms of connections, against the limits on their number, their origin and their rate."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from attacks.arena import MIB
from cordwood.testing import Broker
from cordwood.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from support.process import BrokerProcess
from support.raw import ClosedByBroker, RawClient, crowd
from support.waiting import eventually

API_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")

other_hosts = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no loopback address but 127.0.0.1")


def admitted(client: RawClient) -> bool:
    try:
        client.ask(API_VERSIONS, ApiVersionsResponse)
    except ClosedByBroker:
        return False
    return True


@contextmanager
def limited(**settings: object) -> Iterator[Broker]:
    """A broker with limits, and a client that came first: it must not notice anything."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    with Broker(settings=named) as broker, RawClient(broker.bootstrap) as first:
        assert admitted(first)
        yield broker
        assert admitted(first)


def test_more_than_max_connections_wait_until_others_leave() -> None:
    with limited(max_connections=3) as broker, crowd(broker.bootstrap, 30) as clients:
        for client in clients:
            client.send(API_VERSIONS)
        for client, not_yet in zip(clients, clients[2:], strict=False):
            assert client.receive_frame()
            assert not not_yet.has_answer()
            client.close()


def test_who_waits_for_a_place_may_go() -> None:
    with limited(max_connections=2) as broker, RawClient(broker.bootstrap) as client:
        assert admitted(client)
        with crowd(broker.bootstrap, 50):
            pass
        client.close()
        with RawClient(broker.bootstrap) as other:
            assert admitted(other)


@other_hosts
def test_more_than_max_connections_of_one_address_are_refused() -> None:
    with (
        limited(max_connections_per_ip=3) as broker,
        crowd(broker.bootstrap, 5) as clients,
        RawClient(broker.bootstrap, source_host="127.0.0.2") as other,
    ):
        assert [admitted(client) for client in clients] == [True] * 2 + [False] * 3
        assert admitted(other)


@other_hosts
def test_an_address_may_have_a_limit_of_its_own() -> None:
    overrides = {"max_connections_per_ip": 100, "max_connections_per_ip_overrides": "127.0.0.2:1,127.0.0.3:0"}
    with (
        limited(**overrides) as broker,
        RawClient(broker.bootstrap, source_host="127.0.0.2") as one,
        RawClient(broker.bootstrap, source_host="127.0.0.2") as two,
        RawClient(broker.bootstrap, source_host="127.0.0.3") as three,
    ):
        assert [admitted(client) for client in (one, two, three)] == [True, False, False]


def test_connections_that_come_too_fast_wait() -> None:
    with limited(max_connection_creation_rate=20) as broker, crowd(broker.bootstrap, 50) as clients:
        for client in clients:
            client.send(API_VERSIONS)
        assert all(client.receive_frame() for client in clients)


def test_two_thousand_connections_that_do_nothing(broker: BrokerProcess) -> None:
    before = broker.forget_peak()
    with crowd(broker.bootstrap, 2000) as clients:
        assert admitted(clients[-1])
        assert broker.peak_rss_bytes - before < 30 * MIB
    eventually(lambda: broker.open_files < 200, what="the end of the connections")


def test_connections_that_end_before_they_are_accepted(broker: BrokerProcess) -> None:
    for _ in range(500):
        RawClient(broker.bootstrap).reset()
    eventually(lambda: broker.open_files < 200, what="the end of the connections")


def test_connections_reset_in_the_middle_of_an_answer(broker: BrokerProcess) -> None:
    for size in (1, 4, 10, 30):
        for _ in range(50):
            with RawClient(broker.bootstrap) as client:
                client.send(API_VERSIONS)
                client.receive_bytes(size)
                client.reset()
    eventually(lambda: broker.open_files < 200, what="the end of the connections")
