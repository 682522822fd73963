"""Replication that is slowed down, so that moving partitions leaves room for clients (KIP-73).

A throttled replica's bytes count against a rate. Once more bytes have been transferred than the rate allows for the
time that has passed, replicas that are throttled and not in sync wait until the average is back below the rate.
"""

from collections.abc import Callable, Sequence
from typing import Final

from cordwood.ids import NodeId
from cordwood.partition.partition import Partition

UNLIMITED: Final = (1 << 63) - 1


class Rate:
    """A rate in bytes per second, and how far ahead of it the transfer is."""

    def __init__(self, bytes_per_second: Callable[[], int]) -> None:
        self._bytes_per_second = bytes_per_second
        self._ahead_bytes = 0.0
        self._at_ms = 0

    def record(self, size: int, now_ms: int) -> None:
        if self._bytes_per_second() < UNLIMITED:
            self._pass(now_ms)
            self._ahead_bytes += size

    def wait_ms(self, now_ms: int) -> int:
        """How long to wait before more may be transferred; 0 means now."""
        rate = self._bytes_per_second()
        if rate >= UNLIMITED:
            return 0
        self._pass(now_ms)
        if self._ahead_bytes <= 0:
            return 0
        return int(self._ahead_bytes * 1000 / rate) + 1 if rate > 0 else 1000

    def _pass(self, now_ms: int) -> None:
        passed_ms = max(now_ms - self._at_ms, 0)
        self._at_ms = now_ms
        self._ahead_bytes = max(self._ahead_bytes - passed_ms * self._bytes_per_second() / 1000, 0.0)


def is_named(replicas: Sequence[str], partition: Partition, node: NodeId) -> bool:
    """Does a topic's list of throttled replicas name this one?"""
    return "*" in replicas or f"{partition.name.partition}:{node}" in replicas
