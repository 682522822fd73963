"""The socket that a listener's clients connect to."""

import logging
import socket
from contextlib import closing

import pytest

from cordwood.run import node
from cordwood.run.listener import is_loopback, open_listener, plain_address
from cordwood.testing import Broker
from cordwood.wire.messages import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from support.raw import ClosedByBroker, RawClient


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux lets a program choose")
def test_nothing_is_paced_on_a_loopback_address() -> None:
    with closing(open_listener("127.0.0.1", 0, backlog=5)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address, timeout=5), listener.accept()[0] as accepted:
            chosen = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert chosen.rstrip(b"\0") == b"reno"


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("10.127.0.1", False)],
)
def test_only_loopback_addresses_are(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


class ListenerOfMacOs(socket.socket):
    """One whose first clients went again before they were accepted."""

    gone = 3

    def accept(self) -> tuple[socket.socket, object]:
        if self.gone:
            self.gone -= 1
            raise ConnectionAbortedError
        return super().accept()


def test_who_goes_before_he_is_accepted_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def open_as_macos(host: str, port: int, *, backlog: int) -> socket.socket:
        return ListenerOfMacOs(fileno=open_listener(host, port, backlog=backlog).detach())

    monkeypatch.setattr(node, "open_listener", open_as_macos)
    with caplog.at_level(logging.WARNING), Broker() as broker, RawClient(broker.bootstrap) as client:
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        client.ask(request, ApiVersionsResponse)
    assert "could not be accepted" not in caplog.text


@pytest.mark.parametrize(
    ("address", "expected"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("::ffff:1:2", "::ffff:1:2")],
)
def test_an_address_of_ipv4_inside_of_one_of_ipv6_is_that_of_ipv4(address: str, expected: str) -> None:
    assert plain_address(address) == expected


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")
def test_a_listener_for_both_kinds_of_addresses_speaks_of_those_that_its_clients_know() -> None:
    settings = {"listeners": "PLAINTEXT://[::]:0", "max.connections.per.ip.overrides": "127.0.0.1:1"}
    with Broker(settings=settings) as broker:
        bootstrap = "127.0.0.1:" + broker.bootstrap.rpartition(":")[2]
        with RawClient(bootstrap) as client, RawClient(bootstrap) as one_too_many:
            (told,) = client.ask(MetadataRequest(topics=[]), MetadataResponse).brokers
            assert f"{told.host}:{told.port}" == bootstrap
            with pytest.raises(ClosedByBroker):
                one_too_many.ask(MetadataRequest(topics=[]), MetadataResponse)
