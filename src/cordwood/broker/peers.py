"""The other brokers of the cluster: one link to each, requests over it, and the verdict that one is dead."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cordwood.cluster.image import Delta
from cordwood.ids import LinkId, NodeId
from cordwood.ports import LinkLoss

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

OnAnswer = Callable[[memoryview | None], None]
"""Takes the answer's frame behind its header, lent; or None if the link broke first."""


class Peers:
    """Links by the brokers they go to."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def start(self) -> None:
        """Dial those who are there."""

    def apply(self, delta: Delta) -> None:
        """Dial those who came, hang up on those who went."""

    def link_up(self, link: LinkId) -> None: ...

    def received(self, link: LinkId, frame: memoryview) -> None: ...

    def link_lost(self, link: LinkId, loss: LinkLoss, reason: str) -> None: ...

    def is_up(self, node: NodeId) -> bool:
        return False

    def request(self, node: NodeId, message: object, version: int, on_answer: OnAnswer) -> None:
        """Ask another broker. Only while the link ``is_up``."""

    def check(self) -> None: ...
