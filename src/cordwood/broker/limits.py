"""How many clients may connect, from where, and how fast.

As in Kafka, a client whose address has too many connections is disconnected; one that is too many or too fast for the
broker as a whole waits to be accepted.
"""

from typing import Final

from cordwood.broker.connection import Peer
from cordwood.config import BrokerConfig
from cordwood.ports import Instant

PLACE_MS: Final = 1_000
"""How long to wait for a free place before looking again: the limit may have been altered."""


class ConnectionLimits:
    """Counts connections against ``max.connections`` and its kin."""

    def __init__(self) -> None:
        self._by_host: dict[str, int] = {}
        self._total = 0
        self._second = 0
        self._in_second = 0

    def admit(self, peer: Peer, config: BrokerConfig, now: Instant) -> str | None:
        """Count a new connection, or say why it must not be."""
        self._count_in_second(now)
        here = self._by_host.get(peer.host, 0)
        limit = _overrides(config.max_connections_per_ip_overrides).get(peer.host, config.max_connections_per_ip)
        if here >= limit:
            return f"max.connections.per.ip is {limit} for it"
        self._by_host[peer.host] = here + 1
        self._total += 1
        return None

    def wait(self, listener: str, config: BrokerConfig, now: Instant) -> tuple[int, str]:
        """How many milliseconds the next connection has to wait, and why; 0 if it does not have to."""
        if self._total >= config.max_connections:
            waiting = PLACE_MS, f"max.connections is {config.max_connections}"
        elif now.mono_ms // 1000 == self._second and self._in_second >= config.max_connection_creation_rate:
            rate = config.max_connection_creation_rate
            waiting = 1000 - now.mono_ms % 1000, f"max.connection.creation.rate is {rate}"
        else:
            return 0, ""
        return (0, "") if _is_of_brokers(listener, config) else waiting

    def _count_in_second(self, now: Instant) -> None:
        second = now.mono_ms // 1000
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1

    def leave(self, peer: Peer) -> None:
        self._total -= 1
        left = self._by_host[peer.host] - 1
        if left:
            self._by_host[peer.host] = left
        else:
            del self._by_host[peer.host]


def _is_of_brokers(listener: str, config: BrokerConfig) -> bool:
    """Do brokers have this listener to themselves? Then clients must not keep them from reaching each other."""
    return listener == config.listener_named_for_brokers() and len(config.endpoints()) > 1


def _overrides(text: str) -> dict[str, int]:
    """``address:number,address:number`` as a dictionary."""
    if not text:
        return {}
    pairs = (part.rpartition(":") for part in text.split(","))
    return {host.strip(): int(number) for host, _, number in pairs}
