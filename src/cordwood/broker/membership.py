"""This broker as one of a cluster: registered, or fenced.

A broker leads only while it is registered and its session with the metadata store lives. Without, it is *fenced*: it
acknowledges nothing any more, and whoever waits for that is told so at once.
"""

from typing import TYPE_CHECKING

from cordwood.cluster.image import Delta
from cordwood.ports import SessionState

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Membership:
    """Whether this broker counts."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.fenced = broker.clustered

    def start(self) -> None:
        """Register."""

    def session_changed(self, state: SessionState) -> None:
        """The session lives, hangs, or is over."""

    def apply(self, delta: Delta) -> None:
        """Notice one's own registration, or that it is gone."""
