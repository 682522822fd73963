"""Replication, from both ends: what this broker follows is fetched from its leaders; whom it leads is watched over."""

from typing import TYPE_CHECKING

from cordwood.cluster.image import Delta

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Replication:
    """Fetchers, one for each leader; and the upkeep of in-sync replicas."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def start(self) -> None:
        """Begin to fetch, and to look after those who lag."""

    def apply(self, delta: Delta) -> None:
        """Partitions have other leaders, or other followers."""

    def fenced_changed(self) -> None:
        """This broker may lead again, or must not any more: see ``broker.membership.fenced``."""

    def check(self) -> None: ...
