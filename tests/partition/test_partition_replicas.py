"""Three replicas of one partition, without brokers: whatever happens to them, what was committed stays.

Elections, fetches that bring a part of what there is, states that arrive late, leaders that do not know yet that they
are none, processes that die and come back, with or without the high watermark that they knew. A model of the metadata
is the only thing that is not real here.
"""

from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.cluster.image import NO_LEADER
from cordwood.config import TopicConfig
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.recovery import open_log
from cordwood.partition.partition import Partition
from cordwood.partition.truncation import divergence
from cordwood.ports import Instant
from cordwood.record.batch import batches
from cordwood.record.build import build_values, records
from cordwood.sim.disk import SimDisk

NOW = Instant(1000, 1000)
NODES = [NodeId(1), NodeId(2), NodeId(3)]
SETTINGS = {"internal.segment.bytes": "400", "min.insync.replicas": "1"}


class Replica:
    """One broker's replica, on a disk of its own."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.disk = SimDisk(Random(node))
        self.alive = True
        self.life = 0
        self.knows = -1
        """The version of the metadata that it has heard of."""
        self.partition = self._open(0)

    def _open(self, high_watermark: int) -> Partition:
        log = open_log(self.disk, "t-0", TopicConfig.parse(SETTINGS), now=NOW)
        name = TopicPartition(TopicName("t"), 0)
        return Partition(name, TopicId(UUID(int=1)), log, self.node, high_watermark=high_watermark)

    def kill(self) -> None:
        self.alive = False
        self.disk.kill()

    def restart(self, former_epoch: int, *, forgets: bool) -> None:
        before = self.partition
        self.alive = True
        self.life += 1
        self.knows = -1
        self.partition = self._open(0 if forgets else before.high_watermark)
        self.partition.former_epoch = former_epoch


class Proposal:
    """A leader's wish for other in-sync replicas, on its way to the metadata."""

    def __init__(self, by: Replica, version: int, isr: tuple[NodeId, ...]) -> None:
        self.by = by
        self.partition = by.partition
        self.epoch = by.partition.leader_epoch
        self.version = version
        self.isr = isr


class World:
    """The replicas, and the metadata as it stands."""

    def __init__(self) -> None:
        self.replicas = {node: Replica(node) for node in NODES}
        self.leader = NODES[0]
        self.epoch = 0
        self.isr: tuple[NodeId, ...] = tuple(NODES)
        self.version = 0
        self.proposals: list[Proposal] = []
        self.committed: list[bytes] = []
        self.count = 0
        for node in NODES:
            self.tell(node)

    # ------------------------------------------------------------------ the metadata

    def tell(self, node: NodeId) -> None:
        """A replica hears of the metadata as it is now."""
        replica = self.replicas[node]
        if replica.alive:
            replica.knows = self.version
            replica.partition.become(
                leader=self.leader,
                epoch=self.epoch,
                isr=self.isr,
                replicas=tuple(NODES),
                version=self.version,
                now_ms=NOW.mono_ms,
            )
            self.note(replica)

    def elect(self, number: int) -> None:
        """The controller: the dead are not in sync, and one of those who are leads."""
        isr = tuple(node for node in self.isr if self.replicas[node].alive)
        if isr:
            self.isr, self.leader = isr, isr[number % len(isr)]
            self.epoch += 1
            self.version += 1

    def decide(self) -> None:
        """The oldest proposal is compared and set, or comes too late. Its proposer hears of it when it is told."""
        if self.proposals:
            proposal = self.proposals.pop(0)
            lives = all(self.replicas[node].alive for node in proposal.isr)
            if proposal.version == self.version and proposal.epoch == self.epoch and lives:
                self.isr = proposal.isr
                self.version += 1
            if proposal.partition.leader_epoch == proposal.epoch:
                proposal.partition.proposing = False

    def expel(self, node: NodeId, other: NodeId) -> None:
        """A leader wants a follower out."""
        replica = self.replicas[node]
        partition = replica.partition
        if replica.alive and partition.leading and not partition.proposing and other != node:
            self.propose(replica, tuple(n for n in partition.isr if n != other))

    def propose(self, replica: Replica, isr: tuple[NodeId, ...]) -> None:
        replica.partition.proposing = True
        self.proposals.append(Proposal(replica, replica.knows, isr))

    # ------------------------------------------------------------------ replicas

    def append(self, node: NodeId, size: int) -> None:
        replica = self.replicas[node]
        if replica.alive and replica.partition.leading:
            self.count += 1
            values = [b"%d.%d by %d" % (self.count, n, node) for n in range(size)]
            replica.partition.append(memoryview(build_values(values)), required_acks=1, now=NOW)
            self.note(replica)

    def fetch(self, node: NodeId, max_bytes: int) -> None:
        """What a fetcher does, and what its leader does with the request."""
        follower = self.replicas[node]
        mine = follower.partition
        if not follower.alive or mine.leader in (NO_LEADER, node):
            return
        leader = self.replicas[mine.leader]
        theirs = leader.partition
        if not leader.alive:
            return
        mine.forget_unknown(NOW)
        try:
            theirs.check_reader(mine.leader_epoch)
            diverging = divergence(theirs.log, last_epoch=mine.log.latest_epoch, offset=mine.log.end_offset)
        except Refused as refusal:
            if refusal.error is Error.OFFSET_OUT_OF_RANGE:
                raise  # nothing is ever deleted here
            return
        if diverging is not None:
            before = mine.log.end_offset, mine.log.latest_epoch
            mine.truncate(diverging, NOW)
            assert (mine.log.end_offset, mine.log.latest_epoch) != before, "or it would never end"
        else:
            self._fetch(leader, follower, max_bytes)
        mine.check()

    def _fetch(self, leader: Replica, follower: Replica, max_bytes: int) -> None:
        theirs, mine = leader.partition, follower.partition
        offset = mine.log.end_offset
        if theirs.fetched_by(follower.node, offset, 0, epoch=follower.life, eligible=True, now_ms=NOW.mono_ms):
            self.propose(leader, (*theirs.isr, follower.node))
        self.note(leader)
        found = theirs.log.read(offset, max_bytes, up_to_offset=theirs.log.end_offset)
        if found is not None:
            mine.append_as_follower(memoryview(bytearray(found.read())), NOW)
        mine.follow(theirs.high_watermark)

    def kill(self, node: NodeId) -> None:
        replica = self.replicas[node]
        if replica.alive:
            replica.kill()

    def restart(self, node: NodeId, forgets: bool) -> None:
        replica = self.replicas[node]
        if not replica.alive:
            if self.leader == node:  # it steps down before it is there again
                self.leader = NO_LEADER
                self.epoch += 1
                self.version += 1
            replica.restart(self.epoch, forgets=forgets)
            for other in self.replicas.values():  # and leaders hear that it lives anew
                if other.alive and node in other.partition.followers:
                    other.partition.followers[node].forget()

    # ------------------------------------------------------------------ what usually goes together

    def work(self, node: NodeId, others: int) -> None:
        """A leader takes something, and some followers fetch it: so many times, or not at all."""
        self.append(node, 1)
        for number, follower in enumerate(n for n in NODES if n != node):
            for _ in range(others >> 2 * number & 3):
                self.fetch(follower, 1 << 20)

    def lead(self, others: int) -> None:
        if self.leader != NO_LEADER:
            self.work(self.leader, others)

    def fail_over(self, number: int, told: int) -> None:
        """The leader dies, another leads, and some hear of it."""
        if self.leader != NO_LEADER:
            self.kill(self.leader)
        self.elect(number)
        for bit, node in enumerate(NODES):
            if told >> bit & 1:
                self.tell(node)

    def agree(self) -> None:
        """All that was proposed is decided, and all hear of it."""
        while self.proposals:
            self.decide()
        for node in NODES:
            self.tell(node)

    # ------------------------------------------------------------------ what must hold

    def note(self, replica: Replica) -> None:
        """What a leader shows as committed is what was shown before, and perhaps more."""
        partition = replica.partition
        partition.check()
        if partition.leader == partition.node:
            shown = content(partition)[: partition.high_watermark]
            common = min(len(shown), len(self.committed))
            assert shown[:common] == self.committed[:common], "what was committed is another record now"
            if len(shown) > len(self.committed):
                self.committed = shown

    def settle(self) -> None:
        """All faults end. Then all replicas have the same, with all that was committed."""
        self.proposals.clear()
        for node in NODES:
            self.restart(node, forgets=False)
        self.elect(0)
        for _ in range(60):
            for node in NODES:
                self.tell(node)
                self.fetch(node, 1 << 20)
            self.decide()
        contents = [content(replica.partition) for replica in self.replicas.values()]
        assert contents[0] == contents[1] == contents[2]
        assert contents[0][: len(self.committed)] == self.committed
        assert len(self.isr) == 3
        assert len({replica.partition.high_watermark for replica in self.replicas.values()}) == 1
        assert len({raw(replica.partition) for replica in self.replicas.values()}) == 1


def raw(partition: Partition) -> bytes:
    return b"".join(segment.file.read(0, segment.size) for segment in partition.log.segments)


def content(partition: Partition) -> list[bytes]:
    return [
        record.value or b""
        for data, header in batches(memoryview(raw(partition)))
        for record in records(data, header, limit=1 << 20)
    ]


nodes = st.sampled_from(NODES)
some = st.integers(0, 15)
steps = st.one_of(
    st.tuples(st.just(World.lead), some),
    st.tuples(st.just(World.lead), some),
    st.tuples(st.just(World.fail_over), st.integers(0, 1), st.integers(0, 7)),
    st.tuples(st.just(World.agree)),
    st.tuples(st.just(World.restart), nodes, st.booleans()),
    st.tuples(st.just(World.expel), nodes, nodes),
    st.tuples(st.just(World.fetch), nodes, st.sampled_from([1, 1 << 20])),
    st.tuples(st.just(World.work), nodes, some),
    st.tuples(st.just(World.tell), nodes),
    st.tuples(st.just(World.elect), st.integers(0, 2)),
    st.tuples(st.just(World.decide)),
    st.tuples(st.just(World.kill), nodes),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=60))
def test_what_was_committed_stays_and_replicas_become_the_same(history: list[tuple]) -> None:  # type: ignore[type-arg]
    world = World()
    for step, *arguments in history:
        step(world, *arguments)
    world.settle()
