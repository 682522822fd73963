"""The socket that a listener's clients connect to."""

import socket
from contextlib import closing

import pytest

from cordwood.run.listener import is_loopback, open_listener


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
