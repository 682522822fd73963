"""A network of byte streams: every connection keeps its order, none keeps a pace, and any may break.

What is written arrives in pieces of any size after any delay. When a connection breaks, what was on its way is lost in
both directions, and each end learns of it at a different time.

Hosts may be cut off from each other, in both directions or in one. Then nothing arrives, not even the end of a
connection; when the road is open again, what was sent arrives, and the ends of dead connections learn that they are
dead. A host without power is cut off from everybody.
"""

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Protocol

from cordwood.sim.clock import SimClock

DELAY_MAX_MS = 20
RESEND_MAX_MS = 400

Address = tuple[str, int]
"""A host and a port."""

BROKER: Address = ("broker", 9092)
"""The address of a broker that is alone in its world."""


class End(Protocol):
    """The holder of one end of a connection."""

    def received(self, data: bytes, /) -> None: ...

    def lost(self) -> None: ...


class Roads:
    """Which host can reach which."""

    def __init__(self) -> None:
        self.blocked: set[tuple[str, str]] = set()
        self.dark: set[str] = set()
        """Hosts without power."""

    def is_open(self, source: str, target: str) -> bool:
        return (source, target) not in self.blocked and source not in self.dark and target not in self.dark

    def is_open_both_ways(self, one: str, other: str) -> bool:
        return self.is_open(one, other) and self.is_open(other, one)


class Pipe:
    """One direction of a connection."""

    def __init__(self, clock: SimClock, random: Random, name: str, is_passable: Callable[[], bool]) -> None:
        self._clock = clock
        self._random = random
        self._name = name
        self._is_passable = is_passable
        self._on_its_way: deque[bytes] = deque()
        self.reader: End | None = None
        self.is_silent = False
        """Nothing arrives any more, and nobody is told."""

    def write(self, data: bytes) -> None:
        for piece in _pieces(data, self._random):
            self._on_its_way.append(piece)
            what = f"{len(piece)} bytes to {self._name}"
            self._clock.after(self._random.randint(0, DELAY_MAX_MS), what, self._deliver)

    def attach(self, reader: End) -> None:
        """Start reading. What arrived before there was a reader is delivered now."""
        self.reader = reader
        self.flow()

    def flow(self) -> None:
        """What was held up is delivered now."""
        for piece in self._on_its_way:
            self._clock.after(0, f"{len(piece)} bytes to {self._name}", self._deliver)

    def _deliver(self) -> None:
        """Give the reader the oldest piece; it does not matter for which piece the delivery was scheduled."""
        if self._on_its_way and self.reader is not None and not self.is_silent and self._is_passable():
            self.reader.received(self._on_its_way.popleft())

    def cut(self) -> None:
        self._on_its_way.clear()
        self.reader = None


class Link:
    """A connection: a pipe to the broker and one back."""

    def __init__(
        self,
        clock: SimClock,
        random: Random,
        number: int,
        host: str,
        address: Address = BROKER,
        roads: Roads | None = None,
    ) -> None:
        self._clock = clock
        self._random = random
        self._roads = roads = roads or Roads()
        self.number = number
        self.host = host
        self.address = address
        server = address[0]
        self.up = Pipe(clock, random, f"the {server} on connection {number}", lambda: roads.is_open(host, server))
        self.down = Pipe(clock, random, f"{host} on connection {number}", lambda: roads.is_open(server, host))
        self.is_open = True
        self.is_refused = False
        """Did nobody listen?"""
        self._unheard: list[tuple[End, str, str]] = []
        """Ends that cannot learn of the break as long as the road to them is blocked."""

    def touches(self, host: str) -> bool:
        return host in (self.host, self.address[0])

    @property
    def is_over(self) -> bool:
        """Do both ends know that it is broken?"""
        return not self.is_open and not self._unheard

    def cut(self, by: str | None = None) -> None:
        """Break the connection. Both ends learn of it; the host that caused it learns of it in any case."""
        if not self.is_open:
            return
        self.is_open = False
        server = self.address[0]
        for end, who, other in ((self.up.reader, server, self.host), (self.down.reader, self.host, server)):
            if end is not None:
                if by == who or self._roads.is_open(other, who):
                    self._tell(end, who)
                else:
                    self._unheard.append((end, who, other))
        self.up.cut()
        self.down.cut()

    def _tell(self, end: End, who: str) -> None:
        name = who if who == self.host else f"the {who}"
        what = f"{name} sees the end of connection {self.number}"
        self._clock.after(self._random.randint(0, DELAY_MAX_MS), what, end.lost)

    def flow(self) -> None:
        """Roads have been opened."""
        self.up.flow()
        self.down.flow()
        unheard, self._unheard = self._unheard, []
        for end, who, other in unheard:
            if self._roads.is_open(other, who):
                self._tell(end, who)
            else:
                self._unheard.append((end, who, other))


Accept = Callable[[Link], None]


class Network:
    """All connections, and the places to connect to."""

    def __init__(self, clock: SimClock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._count = 0
        self.roads = Roads()
        self.links: dict[int, Link] = {}
        self.listeners: dict[Address, Accept] = {}
        """Who accepts connections, and where."""

    def connect(
        self, client: End, host: str, address: Address = BROKER, on_up: Callable[[], None] | None = None
    ) -> Link:
        """Start connecting. If nobody listens, the client is told that the connection is lost."""
        self._count += 1
        link = Link(self._clock, self._random, self._count, host, address, self.roads)
        self.links[self._count] = link
        link.down.reader = client
        self._set_out(link, on_up, DELAY_MAX_MS)
        return link

    def _set_out(self, link: Link, on_up: Callable[[], None] | None, delay_max_ms: int) -> None:
        what = f"connection {link.number} from {link.host}"
        self._clock.after(self._random.randint(0, delay_max_ms), what, lambda: self._arrive(link, on_up))

    def _arrive(self, link: Link, on_up: Callable[[], None] | None) -> None:
        if not link.is_open:
            return
        if not self.roads.is_open_both_ways(link.host, link.address[0]):
            self._set_out(link, on_up, RESEND_MAX_MS)
            return
        listener = self.listeners.get(link.address)
        if listener is None:
            link.is_refused = True
            link.cut()
            return
        if on_up is not None:
            what = f"{link.host} is connected to {link.address[0]}"
            self._clock.after(self._random.randint(0, DELAY_MAX_MS), what, lambda: on_up() if link.is_open else None)
        listener(link)

    # ------------------------------------------------------------------ faults

    def cut_one(self) -> Link | None:
        """Break any one connection."""
        link = self._any()
        if link is not None:
            link.cut()
        return link

    def silence_one(self) -> Link | None:
        """Let nothing arrive on one connection any more, in either direction. It breaks when one end times out."""
        link = self._any()
        if link is not None:
            link.up.is_silent = link.down.is_silent = True
        return link

    def _any(self) -> Link | None:
        self._forget_closed()
        opened = [number for number, link in self.links.items() if link.is_open]
        return self.links[self._random.choice(opened)] if opened else None

    def cut_all(self, host: str) -> None:
        """Break all connections of a host."""
        for link in list(self.links.values()):
            if link.touches(host):
                link.cut(host)
        self._forget_closed()

    def heal(self) -> None:
        """Must be called when roads have been opened: what waited for that continues."""
        self._forget_closed()
        for link in list(self.links.values()):
            link.flow()

    def _forget_closed(self) -> None:
        self.links = {number: link for number, link in self.links.items() if not link.is_over}


class Frames:
    """Reassembles the pieces of a stream into whole frames, without their length prefixes."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[bytearray]:
        self._data += data
        frames = []
        while len(self._data) >= 4:
            size = int.from_bytes(self._data[:4], "big")
            if len(self._data) < 4 + size:
                break
            frames.append(self._data[4 : 4 + size])
            del self._data[: 4 + size]
        return frames


def _pieces(data: bytes, random: Random) -> list[bytes]:
    """*data*, mostly whole, sometimes cut anywhere into a few pieces."""
    if len(data) < 2 or random.random() < 0.6:
        return [data]
    cuts = sorted({0, len(data), *(random.randrange(1, len(data)) for _ in range(random.randint(1, 3)))})
    return [data[start:end] for start, end in pairwise(cuts)]
