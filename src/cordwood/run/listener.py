"""The socket that a listener's clients connect to."""

import os
import socket
from contextlib import suppress


def open_listener(host: str, port: int, *, backlog: int) -> socket.socket:
    """A bound, listening socket; ``OSError`` if that is impossible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        if is_loopback(sock.getsockname()[0]):
            _spare_pacing(sock)
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def plain_address(address: str) -> str:
    """An address as IPv4 writes it, if it is one: a listener for both versions sees it mapped into an IPv6 address."""
    return address.removeprefix("::ffff:") if "." in address else address


def _spare_pacing(sock: socket.socket) -> None:
    """Clients of a loopback address are on this machine, so there is no network to be careful with.

    Where the system's congestion control is BBR, it spreads what is sent over time, and the timers for that cost a
    quarter of what a consumer could read. This pacing starts when a connection is made, and does not stop when another
    algorithm is chosen later, so it is chosen on the listener, for all connections that it will accept. Every Linux has
    Reno and lets everybody use it; where there is no choice, nothing is lost.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
