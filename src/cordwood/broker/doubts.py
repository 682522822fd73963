"""Answers that name a broker which may have died just now: they wait for a moment, until others lead in its place.

A client whose connection to a leader breaks asks at once who leads now, and is here sooner than an election is done.
Told of the dead leader, it would be content and ask again a second or two later. So from the moment that a link is lost
until it stands again, the metadata has changed, or the time is up, such an answer waits. Every answer waits until the
end of the loop's turn: the news that the link is lost may lie behind the question.

A broker that went is named among the brokers for some seconds more. librdkafka parts with a broker that is not named
any more in the same moment in which it gives its partitions to new leaders, and then sometimes takes them away again.
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
"""Others on the same connection wait with the answer. An election takes some hundredths of a second."""
SUSPICION_MS: Final = 50
"""After a follower's own connection was lost: if its process is gone, the link to it is lost in a moment, too."""
DEPARTED_MS: Final = 3000


class Doubt:
    """An answer that waits: whom it would name, and how it is given."""

    __slots__ = ("answer", "call", "named")

    def __init__(self, call: Call, named: Callable[[], Iterable[NodeId]], answer: Callable[[], None]) -> None:
        self.call = call
        self.named = named
        self.answer = answer


class Doubts:
    """Who may be dead, and which answers wait to know."""

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
        """The brokers that went a moment ago, and have not come back."""
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
        """It was the link alone."""
        if self._until_ms.pop(node, None) is not None:
            self.look_again()

    def about(self, named: Callable[[], Iterable[NodeId]]) -> bool:
        """May one of these be dead?"""
        return bool(self._until_ms) and any(node in self._until_ms for node in named())

    def wait(self, call: Call, named: Callable[[], Iterable[NodeId]], answer: Callable[[], None]) -> None:
        """Answer when there is no doubt any more, at the end of this turn of the loop if there is none."""
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
