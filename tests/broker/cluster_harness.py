"""Several whole brokers, joined in memory: one store, one clock, links that can be cut.

Everything that goes from one broker to another, or to the store, waits in one queue and is delivered in order until
nothing is left. Time stands still until ``advance``. Nothing happens by chance.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from broker.harness import START, Client, Harness
from cordwood.broker.additions import AT_ONCE, PAUSE_MS
from cordwood.broker.broker import Broker
from cordwood.broker.connection import Connection, Peer
from cordwood.effects import Dial, Effect, HangUp, Transmit, WriteMetadata
from cordwood.errors import CordwoodError, Error, PerhapsDone, StoreAway
from cordwood.ids import ConnectionId, LinkId, NodeId, TopicName
from cordwood.log.log import Log
from cordwood.ports import (
    Chunk,
    Create,
    Delete,
    FileSlice,
    Instant,
    LinkLoss,
    MetadataChange,
    SessionState,
)
from cordwood.sim.disk import SimDisk
from cordwood.sim.node import open_broker
from cordwood.sim.store import SimStore
from cordwood.wire.messages import CreateTopicsRequest, CreateTopicsRequestTopic, CreateTopicsResponse
from cordwood.wire.messages import CreateTopicsRequestAssignment as Assignment
from cordwood.wire.messages import CreateTopicsRequestConfig as Config

STEPS_MAX = 100_000
"""More than this for one event is a loop without an end."""


class LinkEnd(Client):
    """The far end of a link: a connection like any other to the broker it goes to."""

    def __init__(self, member: "Member", connection: Connection, caller: "Member", link: LinkId) -> None:
        super().__init__(member, connection)
        self.member = member
        self.caller = caller
        self.link = link

    def arrived(self, chunks: Sequence[Chunk]) -> None:
        data = b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks)
        while data:
            end = 4 + int.from_bytes(data[:4], "big")
            self.member.cluster.queue(partial(self.caller.link_received, self, data[4:end]))
            data = data[end:]


class Member(Harness):
    """One broker of a cluster."""

    def __init__(self, cluster: "Cluster", node: int, **settings: object) -> None:
        self.cluster = cluster
        self.node = NodeId(node)
        self.up = True
        self.links: dict[LinkId, LinkEnd] = {}
        self.boot_id = "the same"
        self.answers_to_lose = 0
        """The store does so many of the next changes, and can never say so."""
        self.writes_left: int | None = None
        """So many changes the store takes yet, and is away then; None: all of them."""
        super().__init__(
            SimDisk(Random(node)),
            cluster.store,
            node_id=node,
            zookeeper_connect="simulated",
            **{"listeners": f"PLAINTEXT://10.0.0.{node}:9092"} | settings,
        )

    def _open(self) -> Broker:
        self.now = self.cluster.now
        broker = open_broker(
            static=self.static,
            disk=self.disk,
            store=self.store,
            entropy=self.random,
            logger=self.logger,
            now=self.now,
            boot_id=self.boot_id,
        )
        self.broker = broker
        self.execute(broker.start(self.now))
        return broker

    # ------------------------------------------------------------------ events

    def receive(self, client: Client, frame: bytes) -> None:
        super().receive(client, frame)
        self.cluster.run()

    def disconnect(self, client: Client) -> None:
        super().disconnect(client)
        if isinstance(client, LinkEnd):
            self.cluster.queue(partial(client.caller.link_lost, client, LinkLoss.CLOSED))

    def advance(self, ms: int) -> None:
        self.cluster.advance(ms)

    def link_received(self, end: LinkEnd, frame: bytes) -> None:
        if self.up and end.link in self.links and not self.cluster.is_cut(end.member, self):
            buffer = bytearray(frame)
            effects = self.broker.link_received(end.link, memoryview(buffer), self.now)
            buffer[:] = b"\xdd" * len(buffer)
            self.execute(effects)

    def link_lost(self, end: LinkEnd, loss: LinkLoss) -> None:
        if self.up and self.links.pop(end.link, None) is not None:
            self.execute(self.broker.link_lost(end.link, loss, loss.value, self.now))

    def deliver(self, change: MetadataChange) -> None:
        if self.up and self not in self.cluster.deaf:
            self.execute(self.broker.metadata_changed([change], self.now))

    # ------------------------------------------------------------------ effects

    def _do(self, effect: Effect) -> None:
        match effect:
            case Dial(link, host, _):
                self.cluster.queue(partial(self._dial, link, self.cluster.at(host)))
            case Transmit(link, chunks):
                data = b"".join(c.read() if isinstance(c, FileSlice) else bytes(c) for c in chunks)
                self.cluster.queue(partial(self._transmit, link, data))
            case HangUp(link):
                end = self.links.pop(link, None)
                if end is not None and end.member.up and end.connection.id in end.member.clients:
                    self.cluster.queue(partial(end.member.hung_up, end))
            case WriteMetadata():
                self.cluster.queue(partial(self._write_shared, effect, self.broker))
            case _:
                super()._do(effect)

    def _dial(self, link: LinkId, target: "Member") -> None:
        if not self.up or self.cluster.is_cut(self, target):
            return
        if not target.up:
            self.execute(self.broker.link_lost(link, LinkLoss.REFUSED, "refused", self.now))
            return
        target._count += 1
        peer = Peer(f"10.0.0.{self.node}", 1000 + link, f"10.0.0.{target.node}", 9092)
        connection = target.broker.connected(ConnectionId(target._count), peer, self.now)
        assert connection is not None
        end = LinkEnd(target, connection, self, link)
        target.clients[connection.id] = self.links[link] = end
        self.execute(self.broker.link_up(link, self.now))

    def _transmit(self, link: LinkId, data: bytes) -> None:
        end = self.links.get(link)
        if end is None or not end.member.up or self.cluster.is_cut(self, end.member):
            return
        if end.connection.id in end.member.clients:
            Harness.receive(end.member, end, data[4:])

    def hung_up(self, end: LinkEnd) -> None:
        if self.up and end.connection.id in self.clients:
            Harness.disconnect(self, end)

    def _write_shared(self, effect: WriteMetadata, broker: Broker) -> None:
        if not self.up or broker is not self.broker or self in self.cluster.deaf:
            return
        try:
            if self.writes_left is not None:
                self._count_down()
            change = self._multi(effect)
        except CordwoodError as error:
            self.execute(broker.metadata_refused(effect.token, error, self.now))
            return
        lost = self.answers_to_lose > 0
        self.answers_to_lose -= lost
        if lost:
            self.execute(broker.metadata_refused(effect.token, PerhapsDone("the connection broke"), self.now))
        for operation in effect.operations:
            if isinstance(operation, Create) and operation.ephemeral:
                self.cluster.ephemeral[operation.path] = self
        for member in self.cluster.members.values():
            member.deliver(change)
        if not lost:
            self.execute(broker.metadata_written(effect.token, MetadataChange(), self.now))

    def _count_down(self) -> None:
        assert self.writes_left is not None
        if not self.writes_left:
            raise StoreAway("no connection")
        self.writes_left -= 1

    # ------------------------------------------------------------------ ends and beginnings

    def kill(self) -> None:
        """The process dies. Its peers see that their links are gone."""
        ends = [client for client in self.clients.values() if isinstance(client, LinkEnd)]
        own = list(self.links.values())
        self.up = False
        self.links.clear()
        super().kill()
        for end in ends:
            self.cluster.queue(partial(end.caller.link_lost, end, LinkLoss.CLOSED))
        for end in own:
            self.cluster.queue(partial(end.member.hung_up, end))
        self.cluster.run()

    def start(self) -> None:
        self.up = True
        super().start()
        self.cluster.run()

    def end_session(self) -> None:
        """The store has not heard of this broker for too long."""
        mine = [path for path, owner in self.cluster.ephemeral.items() if owner is self]
        for path in mine:
            del self.cluster.ephemeral[path]
            if path in self.store._nodes:
                change = self.store.multi([Delete(path)])
                for member in self.cluster.members.values():
                    member.deliver(change)
        self.cluster.run()

    def lose_session(self) -> None:
        """This broker learns that its session is over."""
        self.execute(self.broker.session_changed(SessionState.LOST, self.now))
        self.cluster.run()

    def regain_session(self) -> None:
        self.execute(self.broker.session_changed(SessionState.ALIVE, self.now))
        self.execute(self.broker.metadata_reloaded(list(self.store.load()), self.now))
        self.cluster.run()

    # ------------------------------------------------------------------ looking

    def log(self, topic: str, index: int = 0) -> Log:
        return self.partition(topic, index).log

    def content(self, topic: str, index: int = 0) -> bytes:
        """All bytes of a replica's log."""
        log = self.log(topic, index)
        return b"".join(segment.file.read(0, segment.size) for segment in log.segments)


class Cluster:
    """Brokers 1 to *count*, all started, registered and linked."""

    member_class: type[Member] = Member

    def __init__(self, count: int = 3, **settings: object) -> None:
        self.store = SimStore()
        self.now = START
        self.members: dict[int, Member] = {}
        self.ephemeral: dict[str, Member] = {}
        self.deaf: set[Member] = set()
        """Those who are cut off from the store."""
        self._cuts: set[frozenset[int]] = set()
        self._queue: deque[Callable[[], object]] = deque()
        self._running = False
        for node in range(1, count + 1):
            self.members[node] = self.member_class(self, node, **settings, **self.settings_of(node))
            self.run()

    def settings_of(self, node: int) -> dict[str, object]:
        """Those of one broker alone."""
        return {}

    def __getitem__(self, node: int) -> Member:
        return self.members[node]

    def queue(self, action: Callable[[], object]) -> None:
        self._queue.append(action)

    def run(self) -> None:
        """Deliver whatever is under way, and what follows from it."""
        if self._running:
            return
        self._running = True
        try:
            for _ in range(STEPS_MAX):
                if not self._queue:
                    return
                self._queue.popleft()()
            raise AssertionError("this never ends")
        finally:
            self._running = False

    def advance(self, ms: int) -> None:
        """Let time pass, timer by timer, on all brokers."""
        end_ms = self.now.mono_ms + ms
        while True:
            live = [member for member in self.members.values() if member.up]
            deadlines = [due for member in live if (due := member.broker.next_deadline()) is not None]
            due_ms = min(deadlines, default=end_ms + 1)
            if due_ms > end_ms:
                break
            self._pass_to(max(due_ms, self.now.mono_ms))
            for member in live:
                due = member.broker.next_deadline()
                if due is not None and due <= self.now.mono_ms and member.up:
                    member.execute(member.broker.tick(self.now))
            self.run()
        self._pass_to(end_ms)

    def _pass_to(self, mono_ms: int) -> None:
        passed_ms = mono_ms - self.now.mono_ms
        self.now = Instant(self.now.wall_ms + passed_ms, mono_ms)
        for member in self.members.values():
            member.now = self.now

    # ------------------------------------------------------------------ faults

    def at(self, host: str) -> Member:
        return self.members[int(host.rpartition(".")[2])]

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between two brokers any more, and nobody is told."""
        self._cuts.add(frozenset((one, other)))

    def heal(self) -> None:
        self._cuts.clear()

    def is_cut(self, one: Member, other: Member) -> bool:
        return frozenset((one.node, other.node)) in self._cuts

    # ------------------------------------------------------------------ shorthands

    def topic(self, name: str, *assignment: Sequence[int], **config: object) -> TopicName:
        """A topic with these replicas of its partitions; by default one on all brokers, led by the first."""
        assignment = assignment or (sorted(self.members),)
        wanted = CreateTopicsRequestTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                Assignment(partition_index=index, broker_ids=list(nodes)) for index, nodes in enumerate(assignment)
            ],
            configs=[Config(name=key.replace("_", "."), value=str(value)) for key, value in config.items()],
        )
        client = next(member for member in self.members.values() if member.up).connect()
        client.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
        self.advance(len(assignment) // AT_ONCE * PAUSE_MS)
        response = client.take(CreateTopicsResponse)
        assert response.topics[0].error_code == Error.NONE, response.topics[0]
        client.disconnect()
        self.run()
        return TopicName(name)

    def leader(self, topic: str, index: int = 0) -> Member:
        """The leader that all live brokers agree on."""
        leaders = {
            member.broker.image.topics[TopicName(topic)].partitions[index].leader
            for member in self.members.values()
            if member.up and member not in self.deaf
        }
        (leader,) = leaders
        return self.members[leader]

    def isr(self, topic: str, index: int = 0) -> list[int]:
        member = next(m for m in self.members.values() if m.up and m not in self.deaf)
        return sorted(member.broker.image.topics[TopicName(topic)].partitions[index].isr)

    def contents(self, topic: str, index: int = 0) -> set[bytes]:
        """The different contents of all replicas' logs: one, if they agree."""
        return {member.content(topic, index) for member in self.members.values() if member.up}

    def ends(self, topic: str, index: int = 0) -> list[tuple[int, int]]:
        """(high watermark, end) of all replicas."""
        found = [member.partition(topic, index) for member in self.members.values() if member.up]
        return [(partition.high_watermark, partition.log.end_offset) for partition in found]
