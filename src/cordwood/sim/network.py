"""A network of byte streams: every connection keeps its order, none keeps its pace, and any may break.

What is written arrives in pieces of any size after any delay. When a connection breaks, what was on its way is lost in
both directions, and each end hears of it at a time of its own.
"""

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Protocol

from cordwood.sim.clock import SimClock

DELAY_MAX_MS = 20


class End(Protocol):
    """Whoever holds one end of a connection."""

    def received(self, data: bytes, /) -> None: ...

    def lost(self) -> None: ...


class Pipe:
    """One direction of a connection."""

    def __init__(self, clock: SimClock, random: Random, name: str) -> None:
        self._clock = clock
        self._random = random
        self._name = name
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
        """Read from now on. What came before there was a reader comes now."""
        self.reader = reader
        for piece in self._on_its_way:
            self._clock.after(0, f"{len(piece)} bytes to {self._name}", self._deliver)

    def _deliver(self) -> None:
        """Give the reader the oldest piece: which delivery was meant for which piece does not matter."""
        if self._on_its_way and self.reader is not None and not self.is_silent:
            self.reader.received(self._on_its_way.popleft())

    def cut(self) -> None:
        self._on_its_way.clear()
        self.reader = None


class Link:
    """A connection: a pipe to the broker and one back."""

    def __init__(self, clock: SimClock, random: Random, number: int, host: str) -> None:
        self._clock = clock
        self._random = random
        self.number = number
        self.host = host
        self.up = Pipe(clock, random, f"the broker on connection {number}")
        self.down = Pipe(clock, random, f"{host} on connection {number}")
        self.is_open = True

    def cut(self) -> None:
        """Break. Both ends hear of it, whoever caused it."""
        if not self.is_open:
            return
        self.is_open = False
        for end, who in ((self.up.reader, "the broker"), (self.down.reader, self.host)):
            if end is not None:
                what = f"{who} sees the end of connection {self.number}"
                self._clock.after(self._random.randint(0, DELAY_MAX_MS), what, end.lost)
        self.up.cut()
        self.down.cut()


class Network:
    """All connections, and the one place to connect to."""

    def __init__(self, clock: SimClock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._count = 0
        self.links: dict[int, Link] = {}
        self.listener: Callable[[Link], None] | None = None
        """Who accepts connections; None while nobody does."""

    def connect(self, client: End, host: str) -> Link:
        """Begin to connect. If nobody listens, the client hears that the connection is lost."""
        self._count += 1
        link = self.links[self._count] = Link(self._clock, self._random, self._count, host)
        link.down.reader = client
        what = f"connection {link.number} from {host}"
        self._clock.after(self._random.randint(0, DELAY_MAX_MS), what, lambda: self._arrive(link))
        return link

    def _arrive(self, link: Link) -> None:
        if not link.is_open:
            return
        if self.listener is None:
            link.cut()
        else:
            self.listener(link)

    def cut_one(self) -> Link | None:
        """Break one connection, any one."""
        link = self._any()
        if link is not None:
            link.cut()
        return link

    def silence_one(self) -> Link | None:
        """Let nothing arrive on one connection any more, in either direction. It breaks when one loses patience."""
        link = self._any()
        if link is not None:
            link.up.is_silent = link.down.is_silent = True
        return link

    def _any(self) -> Link | None:
        self._forget_closed()
        return self.links[self._random.choice(list(self.links))] if self.links else None

    def cut_all(self) -> None:
        for link in list(self.links.values()):
            link.cut()
        self.links.clear()

    def _forget_closed(self) -> None:
        self.links = {number: link for number, link in self.links.items() if link.is_open}


class Frames:
    """Puts the pieces of a stream together again: whole frames, without their size."""

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
    """*data*, mostly whole, sometimes in a few pieces, cut anywhere."""
    if len(data) < 2 or random.random() < 0.6:
        return [data]
    cuts = sorted({0, len(data), *(random.randrange(1, len(data)) for _ in range(random.randint(1, 3)))})
    return [data[start:end] for start, end in pairwise(cuts)]
