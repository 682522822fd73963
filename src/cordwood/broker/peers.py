"""The other brokers of the cluster: one link to each, requests over it, and noticing that one is dead.

A broker is dialled when it registers, and for as long as it is registered: at once when its link is lost, then with
growing pauses. If a broker that was reached before now refuses the connection, its process is gone: this is reported,
long before its session with the metadata store expires. Answers come in the order of the requests; if one does not come
within ``replica.socket.timeout.ms``, the link is closed.

Invariants (``check``): there is a link for each registered broker but this one, and no other; only a link that is up
has requests waiting.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from cordwood.broker.timers import Timer
from cordwood.cluster.image import Delta, Registration
from cordwood.effects import Dial, HangUp, Transmit
from cordwood.errors import ProtocolError
from cordwood.ids import LinkId, NodeId
from cordwood.ports import Instant, LinkLoss
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.registry import api_of

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

OnAnswer = Callable[[object | None], None]
"""Takes the answer, whose records lie in a buffer that is only lent; or None if the link was lost first."""

FIRST_PAUSE_MS: Final = 50
DIAL_TIMEOUT_MS: Final = 5_000


class Asked(NamedTuple):
    """A request that waits for its answer."""

    correlation_id: int
    answer: type
    version: int
    on_answer: OnAnswer
    deadline_ms: int


@dataclass(slots=True, eq=False)
class Link:
    """The link to another broker, whether it is up or being established."""

    id: LinkId
    node: NodeId
    address: tuple[str, int]
    life: int
    """The broker epoch of the registration with this address."""
    is_up: bool = False
    was_up: bool = False
    pause_ms: int = 0
    asked: deque[Asked] = field(default_factory=deque)
    timer: Timer | None = None


class Peers:
    """Links by the brokers they go to."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._links: dict[NodeId, Link] = {}
        self._by_id: dict[LinkId, Link] = {}
        self._missing: dict[NodeId, bool] = {}
        """The brokers for which it was logged that there is no link. True: it accepted a link and did not answer, so
        now it must answer. A process that is stopped or cut off accepts links too: its system does so in its place."""
        self._link_count = 0
        self._request_count = 0

    # ------------------------------------------------------------------ who is there

    def start(self) -> None:
        """Dial the brokers that are there."""
        if self._broker.clustered:
            for node in self._broker.image.brokers:
                self._match(node)

    def apply(self, delta: Delta) -> None:
        """Dial brokers that have come, hang up on those that have gone."""
        if self._broker.clustered:
            for node in delta.brokers:
                self._match(node)

    def _match(self, node: NodeId) -> None:
        image = self._broker.image
        registration = image.brokers.get(node) if node != self._broker.node else None
        address = None if registration is None else self._address(registration)
        life = image.broker_epoch(node)
        link = self._links.get(node)
        if link is not None and (link.address != address or link.life != life):
            self._end(link)
            link = None
        if link is None and address is not None:
            link = Link(LinkId(0), node, address, life)
            self._links[node] = link
            self._dial(link)

    def _address(self, registration: Registration) -> tuple[str, int] | None:
        """Where brokers reach each other: the listener configured for it, or the one named like this broker's first."""
        config = self._broker.config
        endpoints = registration.endpoints
        own = config.listener_named_for_brokers() or next((e.name for e in config.endpoints()), "")
        return endpoints.get(own) or next(iter(endpoints.values()), None)

    # ------------------------------------------------------------------ dialling

    def _dial(self, link: Link) -> None:
        self._link_count += 1
        link.id = LinkId(self._link_count)
        self._by_id[link.id] = link
        self._broker.effects.append(Dial(link.id, *link.address))
        deadline_ms = self._broker.now.mono_ms + DIAL_TIMEOUT_MS
        self._set_timer(link, self._broker.timers.at(deadline_ms, partial(self._give_up, link, "it does not answer")))

    def _set_timer(self, link: Link, timer: Timer | None) -> None:
        if link.timer is not None:
            link.timer.cancel()
        link.timer = timer

    def link_up(self, link_id: LinkId) -> None:
        link = self._by_id.get(link_id)
        if link is not None:
            link.is_up = link.was_up = True
            link.pause_ms = 0
            self._set_timer(link, None)
            if not self._missing.get(link.node):
                self._is_back(link)
            self._broker.doubts.end(link.node)
            self._broker.replication.link_up(link.node)

    def link_lost(self, link_id: LinkId, loss: LinkLoss, reason: str) -> None:
        link = self._by_id.pop(link_id, None)
        if link is not None:
            self._lost(link, loss, reason)

    def _give_up(self, link: Link, reason: str, _: Instant) -> None:
        self._hang_up(link, reason)

    def _hang_up(self, link: Link, reason: str) -> None:
        """Close a link that does not work, and establish it anew."""
        self._broker.effects.append(HangUp(link.id))
        del self._by_id[link.id]
        self._lost(link, LinkLoss.UNREACHABLE, reason)

    def _lost(self, link: Link, loss: LinkLoss, reason: str) -> None:
        """It is dialled again: at once if it was up, otherwise after a pause."""
        broker = self._broker
        stood, link.is_up = link.is_up, False
        if link.node not in self._missing:
            self._missing[link.node] = False
            broker.logger.info("no link to broker %d: %s", link.node, reason)
        self._missing[link.node] |= stood and loss is LinkLoss.UNREACHABLE
        self._set_timer(link, None)
        self._fail_asked(link)
        if stood:
            broker.doubts.begin(link.node)
        is_first = stood and loss is not LinkLoss.REFUSED
        if is_first:
            self._dial(link)
        else:
            link.pause_ms = min(max(2 * link.pause_ms, FIRST_PAUSE_MS), max(broker.config.replica_fetch_backoff_ms, 1))
            deadline_ms = broker.now.mono_ms + link.pause_ms
            self._set_timer(link, broker.timers.at(deadline_ms, partial(self._dial_again, link)))
        if loss is LinkLoss.REFUSED and link.was_up:
            broker.controllership.process_is_gone(link.node)

    def _is_back(self, link: Link) -> None:
        if self._missing.pop(link.node, None) is not None:
            self._broker.logger.info("linked to broker %d at %s:%d", link.node, *link.address)

    def _dial_again(self, link: Link, _: Instant) -> None:
        link.timer = None
        self._dial(link)

    def _end(self, link: Link) -> None:
        """The link is no longer wanted."""
        del self._links[link.node]
        if self._by_id.pop(link.id, None) is not None:
            self._broker.effects.append(HangUp(link.id))
        link.is_up = False
        self._set_timer(link, None)
        self._fail_asked(link)

    def _fail_asked(self, link: Link) -> None:
        asked, link.asked = link.asked, deque()
        for entry in asked:
            entry.on_answer(None)

    # ------------------------------------------------------------------ asking

    def is_up(self, node: NodeId) -> bool:
        link = self._links.get(node)
        return link is not None and link.is_up

    def request(self, node: NodeId, message: object, version: int, on_answer: OnAnswer) -> None:
        """Ask another broker. Only allowed while the link ``is_up``."""
        link = self._links[node]
        assert link.is_up, "there is nobody to ask"
        self._request_count = (self._request_count + 1) & 0x7FFFFFFF
        broker = self._broker
        frame = request_frame(
            correlation_id=self._request_count,
            api_version=version,
            message=message,
            client_id=f"broker-{broker.node}",
        )
        deadline_ms = broker.now.mono_ms + broker.config.replica_socket_timeout_ms
        link.asked.append(Asked(self._request_count, api_of(message).response, version, on_answer, deadline_ms))
        if link.timer is None:
            link.timer = broker.timers.at(deadline_ms, partial(self._look_for_silence, link))
        broker.effects.append(Transmit(link.id, frame))

    def received(self, link_id: LinkId, frame: memoryview) -> None:
        link = self._by_id.get(link_id)
        if link is None:
            return
        try:
            if not link.asked or link.asked[0].correlation_id != read_correlation_id(frame):
                raise ProtocolError("an answer that nobody asked for")
            asked = link.asked[0]
            answer: object = read_response(asked.answer, asked.version, frame)
        except ProtocolError as error:
            self._hang_up(link, str(error))
            return
        link.asked.popleft()
        if self._missing:
            self._is_back(link)
        asked.on_answer(answer)

    def _look_for_silence(self, link: Link, now: Instant) -> None:
        """One timer serves all requests of a link: it is set again as long as there are younger ones."""
        link.timer = None
        if not link.asked:
            return
        deadline_ms = link.asked[0].deadline_ms
        if deadline_ms <= now.mono_ms:
            self._hang_up(link, "a request was not answered in time")
        else:
            link.timer = self._broker.timers.at(deadline_ms, partial(self._look_for_silence, link))

    def check(self) -> None:
        broker = self._broker
        for node, link in self._links.items():
            assert link.node == node
            assert node in broker.image.brokers
            assert node != broker.node
            assert link.is_up or not link.asked
            assert not link.is_up or self._by_id[link.id] is link
            assert link.is_up or link.timer is not None, "a link that does not stand is being made"
        assert all(self._links.get(link.node) is link for link in self._by_id.values())
