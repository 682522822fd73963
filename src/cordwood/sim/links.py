"""A broker's connections to other brokers, as its driver makes them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from cordwood.effects import Dial
from cordwood.ids import LinkId
from cordwood.ports import Chunk, FileSlice, LinkLoss
from cordwood.sim.network import Frames, Link, Network


class LinkEvents(Protocol):
    """Who is notified, when the process is running."""

    def when_running(self, action: Callable[[], None], /) -> None: ...

    def link_up(self, link: LinkId, /) -> None: ...

    def link_received(self, link: LinkId, frame: bytearray, /) -> None: ...

    def link_lost(self, link: LinkId, loss: LinkLoss, reason: str, /) -> None: ...


class LinkEnd:
    """The dialling end of one connection."""

    def __init__(self, on_frame: Callable[[bytearray], None], on_lost: Callable[[], None]) -> None:
        self._frames = Frames()
        self._on_frame = on_frame
        self._on_lost = on_lost

    def received(self, data: bytes, /) -> None:
        for frame in self._frames.feed(data):
            self._on_frame(frame)

    def lost(self) -> None:
        self._on_lost()


class Links:
    """All links, by the broker's ids for them."""

    def __init__(self, network: Network, host: str, events: LinkEvents) -> None:
        self._network = network
        self._host = host
        self._events = events
        self._links: dict[LinkId, Link] = {}

    def dial(self, effect: Dial) -> None:
        link_id, when_running = effect.link, self._events.when_running
        end = LinkEnd(
            lambda frame: when_running(partial(self._frame, link_id, frame)),
            lambda: when_running(partial(self._lost, link_id)),
        )
        self._links[link_id] = self._network.connect(
            end, self._host, (effect.host, effect.port), lambda: when_running(partial(self._up, link_id))
        )

    def transmit(self, link_id: LinkId, chunks: Sequence[Chunk]) -> None:
        link = self._links.get(link_id)
        if link is not None and link.is_open:
            link.up.write(b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks))

    def hang_up(self, link_id: LinkId) -> None:
        link = self._links.pop(link_id, None)
        if link is not None:
            link.cut(self._host)

    def _up(self, link_id: LinkId) -> None:
        if link_id in self._links:
            self._events.link_up(link_id)

    def _frame(self, link_id: LinkId, frame: bytearray) -> None:
        if link_id in self._links:
            self._events.link_received(link_id, frame)

    def _lost(self, link_id: LinkId) -> None:
        link = self._links.pop(link_id, None)
        if link is None:
            return
        if link.is_refused:
            self._events.link_lost(link_id, LinkLoss.REFUSED, "connection refused")
        else:
            self._events.link_lost(link_id, LinkLoss.CLOSED, "connection closed")
