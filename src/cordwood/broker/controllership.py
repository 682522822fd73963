"""The controller's part of a broker: it stands for election, and while it is elected it keeps the cluster in order."""

from typing import TYPE_CHECKING

from cordwood.cluster.image import Delta

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Controllership:
    """What this broker does as the controller, or to become it."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def start(self) -> None:
        """Stand for election if there is no controller."""

    def apply(self, delta: Delta) -> None:
        """Stand for election, or see to what has changed."""
