"""Answers that name a broker which may have just died: they wait for a moment, until others lead in its place.

A client whose connection to a leader breaks asks at once who leads now, sooner than an election can finish. If it were
told of the dead leader, it would accept that and ask again only a second or two later. So from the moment a link is
lost until it is back, the metadata has changed, or the time is up, such an answer waits. Every answer waits until the
end of the loop's turn, because the news that the link is lost may lie behind the question.

A broker that is gone is still listed among the brokers for a few seconds. When a broker is no longer listed, librdkafka
drops it at the same moment as it gives its partitions to new leaders, and then sometimes takes them away again.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from cordwood.broker.connection import Call
from cordwood.cluster.image import BrokerInfo, Delta, Registration
from cordwood.effects import Linger
from cordwood.ids import NodeId
from cordwood.ports import Instant

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

DOUBT_MS: Final = 1000
"""Other requests on the same connection wait with it. An election takes some hundredths of a second."""
SUSPICION_MS: Final = 50
"""After a follower's own connection was lost: if its process is gone, the link to it will be lost in a moment, too."""
DEPARTED_MS: Final = 3000


class Doubt:
    """An answer that waits: which brokers it would name, and how to give it."""

    __slots__ = ("answer", "call", "named")

    def __init__(self, call: Call, named: Callable[[], Iterable[NodeId]], answer: Callable[[], None]) -> None:
        self.call = call
        self.named = named
        self.answer = answer


class Doubts:
    """Which brokers may be dead, and which answers wait to find out."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._until_ms: dict[NodeId, int] = {}
        self._waiting: dict[Doubt, None] = {}
        self._departed: dict[NodeId, tuple[Registration, int]] = {}

    def apply(self, delta: Delta) -> None:
        """The metadata has changed."""
        if not self._broker.clustered:
            return
        for registration in delta.departed:
            until_ms = self._broker.now.mono_ms + DEPARTED_MS
            self._departed[registration.id] = registration, until_ms
            self._broker.timers.at(until_ms, self._expire)
        self.look_again()

    def departed(self, call: Call) -> list[BrokerInfo]:
        """The brokers that left a moment ago and have not come back."""
        listener, there = call.connection.peer.listener, self._broker.image.brokers
        return [
            BrokerInfo(node, *registration.endpoints[listener], registration.rack)
            for node, (registration, _) in self._departed.items()
            if node not in there and listener in registration.endpoints
        ]

    def begin(self, node: NodeId, for_ms: int = DOUBT_MS) -> None:
        """The link to a broker was lost, or one of its connections to this one."""
        until_ms = self._broker.now.mono_ms + for_ms
        if until_ms > self._until_ms.get(node, 0):
            self._until_ms[node] = until_ms
            self._broker.timers.at(until_ms, self._expire)

    def end(self, node: NodeId) -> None:
        """Only the link was broken."""
        if self._until_ms.pop(node, None) is not None:
            self.look_again()

    def about(self, named: Callable[[], Iterable[NodeId]]) -> bool:
        """Might one of these be dead?"""
        return bool(self._until_ms) and any(node in self._until_ms for node in named())

    def wait(self, call: Call, named: Callable[[], Iterable[NodeId]], answer: Callable[[], None]) -> None:
        """Answer when there is no doubt any more, but not before the end of this turn of the loop."""
        doubt = Doubt(call, named, answer)
        self._waiting[doubt] = None
        self._broker.effects.append(Linger())
        call.abandon = lambda: self._forget(doubt)

    def look_again(self) -> None:
        """The turn of the loop is over, or something has changed: the metadata, or a link."""
        for doubt in list(self._waiting):
            if not self.about(doubt.named):
                self._forget(doubt)
                doubt.answer()

    def _forget(self, doubt: Doubt) -> None:
        self._waiting.pop(doubt, None)
        doubt.call.abandon = None

    def _expire(self, now: Instant) -> None:
        self._until_ms = {node: until_ms for node, until_ms in self._until_ms.items() if until_ms > now.mono_ms}
        self._departed = {node: entry for node, entry in self._departed.items() if entry[1] > now.mono_ms}
        self.look_again()

    def check(self) -> None:
        for doubt in self._waiting:
            assert not doubt.call.connection.closed
