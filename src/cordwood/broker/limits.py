"""How many clients may connect, from where, and how fast."""

from cordwood.broker.connection import Peer
from cordwood.config import BrokerConfig
from cordwood.ports import Instant


class ConnectionLimits:
    """Counts connections against ``max.connections`` and its kin."""

    def __init__(self) -> None:
        self._by_host: dict[str, int] = {}
        self._total = 0
        self._second = 0
        self._in_second = 0

    def admit(self, peer: Peer, config: BrokerConfig, now: Instant) -> str | None:
        """Count a new connection, or say why it must not be."""
        here = self._by_host.get(peer.host, 0)
        limit = _overrides(config.max_connections_per_ip_overrides).get(peer.host, config.max_connections_per_ip)
        if self._total >= config.max_connections:
            return f"max.connections is {config.max_connections}"
        if here >= limit:
            return f"max.connections.per.ip is {limit} for it"
        if self._too_fast(config.max_connection_creation_rate, now):
            return f"max.connection.creation.rate is {config.max_connection_creation_rate}"
        self._by_host[peer.host] = here + 1
        self._total += 1
        return None

    def _too_fast(self, rate: int, now: Instant) -> bool:
        second = now.mono_ms // 1000
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second > rate

    def leave(self, peer: Peer) -> None:
        self._total -= 1
        left = self._by_host[peer.host] - 1
        if left:
            self._by_host[peer.host] = left
        else:
            del self._by_host[peer.host]


def _overrides(text: str) -> dict[str, int]:
    """``address:number,address:number`` as a dictionary."""
    if not text:
        return {}
    pairs = (part.rpartition(":") for part in text.split(","))
    return {host.strip(): int(number) for host, _, number in pairs}
