"""A client's connection: one at a time, established again whenever it is lost. The clients built on it are small state
machines: ``producer``, ``consumer``, ``admin``."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from cordwood.ports import FileSlice
from cordwood.sim.clock import SimClock
from cordwood.sim.history import History
from cordwood.sim.network import BROKER, Address, Frames, Link, Network
from cordwood.sim.trace import Trace
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.registry import api_of

TIMEOUT_MS = 1_500
RECONNECT_MAX_MS = 200

R = TypeVar("R")


@dataclass(slots=True)
class Surroundings:
    """What every client is given."""

    clock: SimClock
    network: Network
    random: Random
    trace: Trace
    history: History
    on_acknowledged: Callable[[], None] = field(default=lambda: None)
    """Called when a producer has been told that a batch is safe: the worst moment to lose it."""
    addresses: Sequence[Address] = (BROKER,)
    """Where brokers are."""

    @property
    def clustered(self) -> bool:
        """Are there several brokers, so that the client must find the right one?"""
        return len(self.addresses) > 1


@dataclass(slots=True)
class InFlight:
    """A request that has not been answered yet."""

    correlation_id: int
    version: int
    response: type
    on_answer: Callable[[object], None]


class Caller:
    """A connection to a broker that reconnects. *on_connect* tells the owner of each new one.

    If there are several brokers, it connects to any one of them, unless the owner wants to ``move`` to a certain one.
    """

    def __init__(self, around: Surroundings, name: str, on_connect: Callable[[], None]) -> None:
        self._around = around
        self.name = name
        self._on_connect = on_connect
        self._link: Link | None = None
        self._wanted: Address | None = None
        self._frames = Frames()
        self._in_flight: deque[InFlight] = deque()
        self._count = 0

    def __len__(self) -> int:
        return len(self._in_flight)

    def connect(self) -> None:
        self._frames = Frames()
        addresses = self._around.addresses
        address = self._wanted or (self._around.random.choice(addresses) if len(addresses) > 1 else addresses[0])
        self._link = self._around.network.connect(self, self.name, address)
        self._on_connect()

    def move(self, address: Address | None) -> bool:
        """Connect to this broker, or (None) to any. Returns whether that is a different one than now."""
        self._wanted = address
        if self._link is None or self._link.address == address:
            return False
        self.drop("it wants another broker")
        return True

    def ask(self, request: object, version: int, cls: type[R], on_answer: Callable[[R], None]) -> None:
        """Send a request. The answer, if it comes on this connection, goes to *on_answer*."""
        self.tell(request, version)
        number = self._count
        self._in_flight.append(InFlight(number, version, cls, on_answer))  # type: ignore[arg-type]
        self._around.clock.after(TIMEOUT_MS, f"{self.name} looks for answer {number}", lambda: self._give_up(number))

    def tell(self, request: object, version: int) -> None:
        """Send a request that has no answer."""
        assert self._link is not None
        self._count += 1
        self._around.trace.line(self.name, f"asks {api_of(request).name} v{version}, number {self._count}")
        chunks = request_frame(correlation_id=self._count, api_version=version, message=request, client_id=self.name)
        self._link.up.write(b"".join(bytes(c) for c in chunks if not isinstance(c, FileSlice)))

    def _give_up(self, number: int) -> None:
        if any(request.correlation_id == number for request in self._in_flight):
            self._wanted = None
            self.drop("no answer in time")

    def drop(self, reason: str) -> None:
        """Break the connection; requests in flight may have been carried out or not."""
        if self._link is not None:
            self._around.trace.line(self.name, f"drops its connection: {reason}")
            self._link.cut(self.name)

    def received(self, data: bytes, /) -> None:
        for frame in self._frames.feed(data):
            view = memoryview(frame)
            request = self._in_flight.popleft()
            if read_correlation_id(view) != request.correlation_id:
                self._around.history.complain(f"{self.name} got an answer out of order")
                return
            request.on_answer(read_response(request.response, request.version, view))

    def lost(self) -> None:
        if self._link is not None and self._link.is_refused:
            self._wanted = None
        self._link = None
        self._in_flight.clear()
        delay_ms = self._around.random.randint(1, RECONNECT_MAX_MS)
        self._around.clock.after(delay_ms, f"{self.name} connects again", self.connect)

    @property
    def is_connected(self) -> bool:
        return self._link is not None and self._link.is_open
