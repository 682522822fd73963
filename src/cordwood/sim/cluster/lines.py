"""A client's connections to the brokers of a cluster, and what it knows of the leaders.

Every request gets one answer: the broker's, or None if the connection was lost or the timeout expired.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from cordwood.errors import Error
from cordwood.ids import TopicName, TopicPartition
from cordwood.ports import FileSlice
from cordwood.sim.client import TIMEOUT_MS, InFlight, Surroundings
from cordwood.sim.network import Address, Frames
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse
from cordwood.wire.registry import api_of

R = TypeVar("R")
Answer = Callable[[R | None], None]


class Line:
    """One connection to one broker, from its beginning to its end."""

    def __init__(self, around: Surroundings, name: str, address: Address) -> None:
        self._around = around
        self._name = name
        self._frames = Frames()
        self._in_flight: deque[InFlight] = deque()
        self._count = 0
        self.is_over = False
        self._link = around.network.connect(self, name, address)

    def ask(self, request: object, version: int, cls: type[R], on_answer: Answer[R]) -> None:
        self._count += 1
        number = self._count
        where = self._link.address[0]
        self._around.trace.line(self._name, f"asks {where} {api_of(request).name} v{version}, number {number}")
        chunks = request_frame(correlation_id=number, api_version=version, message=request, client_id=self._name)
        self._in_flight.append(InFlight(number, version, cls, on_answer))  # type: ignore[arg-type]
        self._link.up.write(b"".join(bytes(c) for c in chunks if not isinstance(c, FileSlice)))
        self._around.clock.after(TIMEOUT_MS, f"{self._name} looks for answer {number}", lambda: self._give_up(number))

    def _give_up(self, number: int) -> None:
        if any(request.correlation_id == number for request in self._in_flight):
            self._around.trace.line(self._name, f"drops its connection to {self._link.address[0]}: no answer in time")
            self._link.cut(self._name)
            self.lost()

    def received(self, data: bytes, /) -> None:
        for frame in self._frames.feed(data):
            view = memoryview(frame)
            request = self._in_flight.popleft()
            if read_correlation_id(view) != request.correlation_id:
                self._around.history.complain(f"{self._name} got an answer out of order")
                return
            request.on_answer(read_response(request.response, request.version, view))

    def lost(self) -> None:
        self.is_over = True
        in_flight, self._in_flight = self._in_flight, deque()
        for request in in_flight:
            request.on_answer(None)


class Leader(NamedTuple):
    """Who leads a partition, as far as a client knows."""

    node: int
    epoch: int


class Lines:
    """All connections of one client."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self._around = around
        self._name = name
        self._lines: dict[Address, Line] = {}
        self._addresses: dict[int, Address] = {}
        self.leaders: dict[TopicPartition, Leader] = {}
        self.topic_ids: dict[str, UUID] = {}

    def ask(self, node: int, request: object, version: int, cls: type[R], on_answer: Answer[R]) -> None:
        """Ask a broker that ``refresh`` has reported."""
        self._line(self._addresses[node]).ask(request, version, cls, on_answer)

    def ask_any(self, request: object, version: int, cls: type[R], on_answer: Answer[R]) -> None:
        self._line(self._around.random.choice(self._around.addresses)).ask(request, version, cls, on_answer)

    def _line(self, address: Address) -> Line:
        line = self._lines.get(address)
        if line is None or line.is_over:
            line = self._lines[address] = Line(self._around, self._name, address)
        return line

    def refresh(self, topics: Sequence[str], then: Callable[[], None]) -> None:
        """Ask some broker who leads what, and go on, whatever the outcome."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )

        def know(response: MetadataResponse | None) -> None:
            if response is not None:
                self._know(response)
            then()

        self.ask_any(request, 12, MetadataResponse, know)

    def _know(self, response: MetadataResponse) -> None:
        self._addresses.update({broker.node_id: (broker.host, broker.port) for broker in response.brokers})
        for topic in response.topics:
            if topic.error_code == Error.NONE and topic.name is not None:
                self.topic_ids[topic.name] = topic.topic_id
                for partition in topic.partitions:
                    name = TopicPartition(TopicName(topic.name), partition.partition_index)
                    self._learn(name, Leader(partition.leader_id, partition.leader_epoch))

    def _learn(self, name: TopicPartition, leader: Leader) -> None:
        """Ignore what is older than what is already known."""
        known = self.leaders.get(name)
        if known is None or known.epoch <= leader.epoch:
            self.leaders[name] = leader

    def leader(self, name: TopicPartition) -> Leader | None:
        found = self.leaders.get(name)
        return found if found is not None and found.node in self._addresses else None
