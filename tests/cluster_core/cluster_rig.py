"""Several brokers' memberships and controllerships over one store, with every delay and death that a test asks for.

There are no sockets and no logs here. A *member* is what ``Broker`` is to its membership and its controllership: an
image, timers, proposals. It hears of the store's changes in their order, when the rig delivers them. The store ends
sessions, and what is ephemeral goes with them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast
from uuid import UUID

from cordwood.broker.controllership import Controllership
from cordwood.broker.membership import Membership
from cordwood.broker.proposals import Proposals
from cordwood.broker.timers import Timers
from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.cluster.registration import Applicant
from cordwood.config import BrokerConfig
from cordwood.effects import Effect, WriteMetadata
from cordwood.errors import Refused, StoreAway, StoreConflict
from cordwood.ids import NodeId, TopicName
from cordwood.ports import Create, Delete, Instant, MetadataChange, SessionState, StoreOp
from cordwood.sim.store import SimStore

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class SharedStore:
    """A store with sessions, and the story of all its changes."""

    def __init__(self) -> None:
        self._store = SimStore()
        self.changes: list[MetadataChange] = []
        self.truth = MetadataImage()
        self.watch: Callable[[], None] = lambda: None
        """Called after every change."""
        self._owners: dict[str, int] = {}
        self._sessions = 0

    def new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def multi(self, operations: Sequence[StoreOp], session: int) -> None:
        change = self._store.multi(operations)
        for operation in operations:
            if isinstance(operation, Delete):
                self._owners.pop(operation.path, None)
            elif isinstance(operation, Create) and operation.ephemeral:
                self._owners[operation.path] = session
        self._happened(change)

    def expire(self, session: int) -> None:
        for path in [path for path, owner in self._owners.items() if owner == session]:
            del self._owners[path]
            self._happened(self._store.multi([Delete(path)]))

    def owns(self, session: int) -> bool:
        return session in self._owners.values()

    def load(self) -> MetadataChange:
        return MetadataChange(list(self._store.load()))

    def _happened(self, change: MetadataChange) -> None:
        self.changes.append(change)
        self.truth.apply(*change)
        self.truth.check()
        self.watch()


class Lines:
    """A logger that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def debug(self, msg: str, /, *args: object) -> None:
        self.lines.append(msg % args)

    info = warning = error = debug


class Member:
    """One process of one broker."""

    clustered = True
    lacks_records = False

    def __init__(self, rig: "Rig", applicant: Applicant, config: BrokerConfig) -> None:
        self._rig = rig
        self.node = applicant.node
        self.config = config
        self.now = rig.now
        self.image = MetadataImage()
        self.image.apply(*rig.store.load())
        self.heard = len(rig.store.changes)
        """How many of the store's changes it knows."""
        self.session = rig.store.new_session()
        self.cut_off = False
        """Can it not reach the store?"""
        self.logger = Lines()
        self.effects: list[Effect] = []
        self.writes: list[WriteMetadata] = []
        self.timers = Timers()
        self.proposals = Proposals(self.timers, self.effects.append, lambda: True)
        self.replication = self.groups = self.replicas = self
        self.membership = Membership(cast("Broker", self), applicant)
        self.controllership = Controllership(cast("Broker", self))
        self.membership.start()
        self.controllership.start()
        self._took_effect()

    def fenced_changed(self) -> None:
        """What replication and groups would do."""

    def propose(self, plan: Callable[[], Sequence[StoreOp]], done: Callable[[Refused | None], None]) -> None:
        self.proposals.submit(plan, done, self.now)

    def order(
        self, plan: Callable[[], Sequence[StoreOp]], done: Callable[[Refused | None], None] = lambda _: None
    ) -> None:
        """Propose what a client, or replication, asks for."""
        self.propose(plan, done)
        self._took_effect()

    def _took_effect(self) -> None:
        self.writes += [effect for effect in self.effects if isinstance(effect, WriteMetadata)]
        self.effects.clear()
        self.membership.check()

    # ------------------------------------------------------------------ events

    def deliver(self, count: int = 1 << 30) -> None:
        """Hear of the next changes."""
        changes = [] if self.cut_off else self._rig.store.changes[self.heard : self.heard + count]
        for change in changes:
            self.heard += 1
            self._apply(change)
        self._took_effect()

    def _apply(self, change: MetadataChange) -> None:
        delta = self.image.apply(*change)
        self.membership.apply(delta)
        self.controllership.apply(delta)

    def write(self, *, catch_up: bool = True) -> None:
        """The store deals with the first write that is under way. *catch_up*: before a refusal it tells why."""
        effect = self.writes.pop(0)
        store = self._rig.store
        try:
            if self.cut_off:
                raise StoreAway("no connection")
            store.multi(effect.operations, self.session)
        except (StoreConflict, StoreAway) as error:
            if catch_up:
                self.deliver()
            self.proposals.refused(effect.token, error, self.now)
        else:
            self.deliver()
            self.proposals.accepted(effect.token, self.now)
        self._took_effect()

    def tick(self) -> None:
        self.now = self._rig.now
        self.timers.run_due(self.now)
        self._took_effect()

    def lose_session(self) -> None:
        """The store ends the session; the broker may hear of it much later."""
        self._rig.store.expire(self.session)

    def learn_of_loss(self) -> None:
        self.lose_session()
        self.membership.session_changed(SessionState.LOST)
        self._took_effect()

    def reconnect(self) -> None:
        """Another session, and everything read anew."""
        self.cut_off = False
        self.session = self._rig.store.new_session()
        self.membership.session_changed(SessionState.ALIVE)
        self.heard = len(self._rig.store.changes)
        delta = self.image.replace(self._rig.store.load().nodes)
        self.membership.apply(delta)
        self.controllership.apply(delta)
        self._took_effect()

    def stop_leading(self) -> None:
        self.membership.stop_leading()
        self._took_effect()

    def leave(self) -> None:
        self.membership.leave()
        self._took_effect()

    def process_is_gone(self, node: NodeId) -> None:
        self.controllership.process_is_gone(node)
        self._took_effect()


class Machine:
    """Where a broker's processes run: what outlives them."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.directory = node * 1000
        self.boot = 1
        self.clean = False


class Rig:
    """A store and brokers 1 to N, all of them up."""

    def __init__(self, count: int = 3, racks: Sequence[str] = (), **settings: object) -> None:
        self.now = Instant(1_700_000_000_000, 1000)
        self.store = SharedStore()
        static = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig.parse({"zookeeper.connect": "z:2181", **static})
        self._racks = racks
        self.machines = {NodeId(node): Machine(NodeId(node)) for node in range(1, count + 1)}
        self.members: dict[NodeId, Member] = {}
        for node in self.machines:
            self.start(node)
            self.settle()

    @property
    def truth(self) -> MetadataImage:
        return self.store.truth

    def topic(self, name: str) -> TopicInfo:
        return self.truth.topics[TopicName(name)]

    def applicant(self, node: NodeId) -> Applicant:
        machine = self.machines[node]
        return Applicant(
            node,
            {"PLAINTEXT": ("PLAINTEXT", f"host{node}", 9092)},
            UUID(int=machine.directory),
            f"boot {machine.boot}",
            clean=machine.clean,
            rack=self._racks[node - 1] if self._racks else None,
        )

    # ------------------------------------------------------------------ processes

    def start(self, node: int) -> Member:
        member = self.members[NodeId(node)] = Member(self, self.applicant(NodeId(node)), self.config)
        self.machines[NodeId(node)].clean = False
        return member

    def kill(self, node: int, *, noticed: bool = False) -> None:
        """The process dies. *noticed*: and its session is over."""
        member = self.members.pop(NodeId(node))
        if noticed:
            self.store.expire(member.session)

    def stop(self, node: int) -> None:
        """A process that was told to stop ends, with its session."""
        self.kill(node, noticed=True)
        self.machines[NodeId(node)].clean = True

    # ------------------------------------------------------------------ time

    def pass_time(self, ms: int) -> None:
        self.now = Instant(self.now.wall_ms + ms, self.now.mono_ms + ms)
        for member in list(self.members.values()):
            member.tick()

    def settle(self) -> None:
        """Deliver everything and let everything be written, until nothing more happens."""
        for _ in range(10_000):
            busy = False
            for member in list(self.members.values()):
                if member.heard < len(self.store.changes) and not member.cut_off:
                    member.deliver()
                    busy = True
                if member.writes:
                    member.write()
                    busy = True
            if not busy:
                return
        raise AssertionError("it never comes to rest")
