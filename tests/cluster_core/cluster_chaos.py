"""A cluster in trouble, seeded: brokers die, lose sessions, disks and power, come back; partitions are written to,
moved and elected; every message of the store comes late. A model of replication tells what must never happen.

The model: each broker has a log of each partition, a list of numbers that survives its process. A leader appends;
followers copy from the one whom both take for the leader of the same epoch; the leader counts a record as acknowledged
when all that it takes for in sync have copied it, those included whom it has just proposed. That is as much of
replication as the controller's decisions rest on.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from cluster_core.cluster_rig import Member, Rig
from cordwood.cluster.controller import create_topic, delete_topics, plan_topic
from cordwood.cluster.election import elect_preferred, elect_uncleanly
from cordwood.cluster.image import NO_LEADER, PartitionInfo, TopicInfo
from cordwood.cluster.reassignment import cancel, move, write_moves
from cordwood.cluster.states import Live, State, change_isr, state_of, write_states
from cordwood.errors import Refused
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.ports import StoreOp

Key = tuple[TopicId, int]


@dataclass
class Leadership:
    """What a leader knows in one epoch."""

    epoch: int
    start: int
    """How long its log was when it began."""
    copied: dict[NodeId, tuple[int, int]] = field(default_factory=dict)
    """How far each follower is, and in which life it was so."""
    proposed: set[NodeId] = field(default_factory=set)
    """Those for whom a proposal is under way."""
    high_watermark: int = 0


class Chaos:
    """One seed's story."""

    def __init__(self, seed: int, count: int = 4) -> None:
        self.random = Random(seed)
        self.rig = Rig(count)
        self.logs: dict[NodeId, dict[Key, list[int]]] = {node: defaultdict(list) for node in self.rig.machines}
        self.acknowledged: dict[Key, list[int]] = defaultdict(list)
        self.leaderships: dict[tuple[NodeId, Key], Leadership] = {}
        self.before: dict[Key, State] = {}
        self.unclean: set[TopicId] = set()
        """Topics that may lose records."""
        self.allowed: set[Key] = set()
        """Partitions for which somebody asked for an unclean election."""
        self.records = 0
        self.topics = 0
        self.rig.store.watch = self.check
        self.check()

    # ------------------------------------------------------------------ what must hold

    def check(self) -> None:
        """The store has changed."""
        now: dict[Key, State] = {}
        for topic in self.rig.truth.topics.values():
            for partition in topic.partitions:
                key = topic.id, partition.index
                now[key] = state_of(partition)
                if key in self.before:
                    self._check_change(topic, partition, self.before[key])
                if topic.id not in self.unclean and key not in self.allowed:
                    self._check_records(partition, key)
        self.before = now

    def _check_change(self, topic: TopicInfo, partition: PartitionInfo, before: State) -> None:
        state = state_of(partition)
        assert state.leader_epoch >= before.leader_epoch
        if state.leader != before.leader:
            assert state.leader_epoch > before.leader_epoch
            lawful = topic.id in self.unclean or (topic.id, partition.index) in self.allowed or before.leader_epoch < 0
            assert lawful or state.leader == NO_LEADER or state.leader in before.isr

    def _check_records(self, partition: PartitionInfo, key: Key) -> None:
        """Whoever may lead has everything that was acknowledged."""
        acknowledged = self.acknowledged[key]
        for node in partition.isr:
            held = self.logs[node][key]
            assert held[: len(acknowledged)] == acknowledged or not self._counts(node), (node, held, acknowledged)

    def _counts(self, node: NodeId) -> bool:
        """Does a broker live, and is it there in this life? If not it has yet to say what it may have lost."""
        member, truth = self.rig.members.get(node), self.rig.truth
        return member is not None and node in truth.brokers and truth.broker_epoch(node) == member.membership.epoch

    # ------------------------------------------------------------------ steps

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choices([step for _, step in STEPS], [weight for weight, _ in STEPS])[0](self)

    def _member(self) -> Member | None:
        return self.random.choice(list(self.rig.members.values())) if self.rig.members else None

    def deliver(self) -> None:
        member = self._member()
        if member is not None:
            member.deliver(self.random.randint(1, 5))

    def write(self) -> None:
        member = self._member()
        if member is not None and member.writes:
            member.write(catch_up=self.random.random() < 0.8)

    def wait(self) -> None:
        self.rig.pass_time(self.random.choice([10, 200, 1000]))

    def create(self) -> None:
        member = self._member()
        if member is None or len(self.rig.truth.topics) >= 3:
            return
        name = f"t{self.random.randint(1, 3)}"
        unclean = self.random.random() < 0.2
        replicas = self.random.randint(1, 3)

        def plan() -> list[StoreOp]:
            config = {"unclean.leader.election.enable": "true"} if unclean else {}
            new = plan_topic(
                member.image, self.random, name=name, partitions=2, replicas=replicas, manual={}, config=config
            )
            if unclean:
                self.unclean.add(new.id)
            return create_topic(member.image, new, states_max=1)

        member.order(plan)

    def delete(self) -> None:
        member = self._member()
        if member is not None and member.image.topics and self.random.random() < 0.2:
            name = self.random.choice(list(member.image.topics))

            def plan() -> list[StoreOp]:
                topic = member.image.topics.get(name)
                return [] if topic is None else delete_topics(member.image, [topic])

            member.order(plan)

    # ------------------------------------------------------------------ trouble

    def kill(self) -> None:
        member = self._member()
        if member is not None:
            self.rig.kill(member.node, noticed=self.random.random() < 0.3)
            self._forget(member.node)

    def notice(self) -> None:
        """Somebody sees that a process is gone; or is wrong about it."""
        member = self._member()
        gone = [node for node in self.rig.machines if node not in self.rig.members]
        if member is not None and (gone or self.random.random() < 0.1):
            member.process_is_gone(self.random.choice(gone or list(self.rig.machines)))

    def lose_power(self) -> None:
        """The machine stops; what its disk did not have is gone. Only where nothing acknowledged goes for good."""
        member = self._member()
        if member is not None and self._others_have(member.node):
            self.rig.kill(member.node, noticed=True)
            self._forget(member.node)
            self.rig.machines[member.node].boot += 1
            for log in self.logs[member.node].values():
                del log[self.random.randint(0, len(log)) :]

    def _others_have(self, node: NodeId) -> bool:
        """Is there, wherever a broker is in sync, another one that lives and is to keep its records?"""
        return all(
            any(
                other != node and self._counts(other) and other not in partition.adding + partition.removing
                for other in partition.isr
            )
            for topic in self.rig.truth.topics.values()
            for partition in topic.partitions
            if node in partition.isr
        )

    def lose_disk(self) -> None:
        gone = [node for node in self.rig.machines if node not in self.rig.members]
        if gone and self.random.random() < 0.3:
            node = self.random.choice(gone)
            self.rig.machines[node].directory += 1
            self.logs[node].clear()

    def start(self) -> None:
        gone = [node for node in self.rig.machines if node not in self.rig.members]
        if gone:
            self.rig.start(self.random.choice(gone))

    def expire(self) -> None:
        """Sessions of dead processes end."""
        for session in range(1, 1000):
            if self.rig.store.owns(session) and session not in [m.session for m in self.rig.members.values()]:
                self.rig.store.expire(session)

    def cut_off(self) -> None:
        """A broker loses its session and does not know it yet."""
        member = self._member()
        if member is not None:
            member.cut_off = True
            member.lose_session()

    def reconnect(self) -> None:
        for member in self.rig.members.values():
            if member.cut_off and self.random.random() < 0.5:
                member.learn_of_loss()
                if self.random.random() < 0.7:
                    member.reconnect()

    def stop(self) -> None:
        member = self._member()
        if member is None:
            return
        if member.membership.stopping and member.membership.may_stop:
            self.rig.stop(member.node)
            self._forget(member.node)
        elif self.random.random() < 0.5:
            member.stop_leading()

    def _forget(self, node: NodeId) -> None:
        for owner, key in list(self.leaderships):
            if owner == node:
                del self.leaderships[owner, key]

    # ------------------------------------------------------------------ what people ask for

    def _pick(self, member: Member) -> tuple[TopicName, int] | None:
        if not member.image.topics:
            return None
        topic = self.random.choice(list(member.image.topics.values()))
        return topic.name, self.random.randrange(len(topic.partitions))

    def reassign(self) -> None:
        member = self._member()
        picked = None if member is None else self._pick(member)
        if member is None or picked is None:
            return
        name, index = picked
        target = self.random.sample(range(1, len(self.rig.machines) + 1), self.random.randint(2, 3))
        give_up = self.random.random() < 0.3

        def plan() -> list[StoreOp]:
            topic = member.image.topics.get(name)
            if topic is None:
                return []
            live, partition = Live.of(member.image), topic.partitions[index]
            if give_up:
                planned = cancel(topic, partition, live, lambda _: False)
            else:
                found = move(partition, target, member.image.incarnations, live)
                if found is None:
                    return []
                planned = found
            return write_moves(member.image, topic, {index: planned})

        member.order(plan)

    def elect(self) -> None:
        member = self._member()
        picked = None if member is None else self._pick(member)
        if member is None or picked is None:
            return
        name, index = picked
        unclean = self.random.random() < 0.1

        def plan() -> list[StoreOp]:
            topic = member.image.topics.get(name)
            if topic is None:
                return []
            if unclean:
                self.allowed.add((topic.id, index))
            elected = (elect_uncleanly if unclean else elect_preferred)(topic.partitions[index], Live.of(member.image))
            return write_states(member.image, {TopicPartition(name, index): elected})

        member.order(plan)

    # ------------------------------------------------------------------ replication

    def _led(self, member: Member) -> list[tuple[TopicInfo, PartitionInfo]]:
        return [
            (topic, partition)
            for topic in member.image.topics.values()
            for partition in topic.partitions
            if partition.leader == member.node
        ]

    def _leadership(self, member: Member, key: Key, epoch: int) -> Leadership:
        known = self.leaderships.get((member.node, key))
        if known is None or known.epoch != epoch:
            known = Leadership(epoch, len(self.logs[member.node][key]))
            self.leaderships[member.node, key] = known
        return known

    def append(self) -> None:
        member = self._member()
        if member is None or member.membership.fenced:
            return
        for topic, partition in self._led(member):
            key = topic.id, partition.index
            self._leadership(member, key, partition.leader_epoch)
            self.records += 1
            self.logs[member.node][key].append(self.records)
            self._acknowledge(member, topic, partition)

    def copy(self) -> None:
        """A follower fetches from those whom it takes for leaders."""
        member = self._member()
        if member is None:
            return
        for topic in member.image.topics.values():
            for partition in topic.partitions:
                leader = self.rig.members.get(partition.leader)
                if member.node in partition.replicas and leader is not None and leader is not member:
                    self._copy(member, leader, topic, partition)

    def _copy(self, member: Member, leader: Member, topic: TopicInfo, partition: PartitionInfo) -> None:
        theirs = leader.image.topic_by_id(topic.id)
        if theirs is None or partition.index >= len(theirs.partitions):
            return
        known = theirs.partitions[partition.index]
        if (known.leader, known.leader_epoch) != (leader.node, partition.leader_epoch):
            return
        if leader.membership.epoch < 0:
            return  # it led in a former life, and has yet to say what it may have lost
        key = topic.id, partition.index
        source, log = self.logs[leader.node][key], self.logs[member.node][key]
        common = next((at for at, (a, b) in enumerate(zip(source, log, strict=False)) if a != b), None)
        if common is None:
            common = min(len(source), len(log))
        log[:] = source[: self.random.randint(common, len(source))]
        leadership = self._leadership(leader, key, known.leader_epoch)
        leadership.copied[member.node] = len(log), member.membership.epoch
        self._acknowledge(leader, theirs, known)

    def _acknowledge(self, leader: Member, topic: TopicInfo, partition: PartitionInfo) -> None:
        if leader.membership.fenced:
            return
        key = topic.id, partition.index
        leadership = self._leadership(leader, key, partition.leader_epoch)
        log = self.logs[leader.node][key]
        followers = ({*partition.isr} | leadership.proposed) - {leader.node}
        end = min([len(log), *(leadership.copied.get(node, (0, 0))[0] for node in followers)])
        leadership.high_watermark = max(leadership.high_watermark, end)
        if end > len(self.acknowledged[key]):
            self.acknowledged[key] = log[:end]

    def change_isr(self) -> None:
        member = self._member()
        if member is None or member.membership.fenced:
            return
        for topic, partition in self._led(member):
            leadership = self._leadership(member, (topic.id, partition.index), partition.leader_epoch)
            if leadership.proposed:
                continue
            enough = max(leadership.high_watermark, leadership.start)
            joining = {
                node: epoch
                for node, (end, epoch) in leadership.copied.items()
                if end >= enough and node not in partition.isr
            }
            leaving = [node for node in partition.isr if node != member.node and self.random.random() < 0.1]
            if joining or leaving:
                self._propose_isr(member, topic, partition, leadership, joining, leaving)

    def _propose_isr(
        self,
        member: Member,
        topic: TopicInfo,
        partition: PartitionInfo,
        leadership: Leadership,
        joining: dict[NodeId, int],
        leaving: list[NodeId],
    ) -> None:
        leadership.proposed = set(joining)

        def plan() -> list[StoreOp]:
            current = member.image.topics.get(topic.name)
            if current is None or current.id != topic.id or member.membership.fenced:
                return []
            if current.partitions[partition.index].leader_epoch != leadership.epoch:
                return []
            return change_isr(
                member.image, current, partition.index, leader=member.node, leaving=leaving, joining=joining
            )

        member.order(plan, lambda _: leadership.proposed.clear())

    # ------------------------------------------------------------------ the end

    def recover(self) -> None:
        """No more trouble: everything comes to rest, and must be whole again."""
        rig = self.rig
        for member in list(rig.members.values()):
            if member.membership.stopping:
                rig.stop(member.node)
                self._forget(member.node)
            elif member.cut_off or not rig.store.owns(member.session):
                member.learn_of_loss()
                member.reconnect()
        self.expire()
        for node in rig.machines:
            if node not in rig.members:
                rig.start(node)
        for _ in range(40):
            rig.settle()
            rig.pass_time(6000)
            for member in rig.members.values():
                self._replicate(member)

    def _replicate(self, member: Member) -> None:
        for topic in member.image.topics.values():
            for partition in topic.partitions:
                leader = self.rig.members.get(partition.leader)
                if leader is not None and leader is not member and member.node in partition.replicas:
                    self._copy(member, leader, topic, partition)
        for topic, partition in self._led(member):
            leadership = self._leadership(member, (topic.id, partition.index), partition.leader_epoch)
            joining = {
                node: epoch
                for node, (end, epoch) in leadership.copied.items()
                if end == len(self.logs[member.node][topic.id, partition.index])
                and node not in partition.isr
                and node in partition.replicas
            }
            if joining and not leadership.proposed:
                self._propose_isr(member, topic, partition, leadership, joining, [])

    def check_whole(self) -> None:
        rig = self.rig
        assert sorted(rig.truth.brokers) == sorted(rig.machines)
        assert rig.truth.controller in rig.machines
        assert not any(member.membership.fenced for member in rig.members.values())
        for topic in rig.truth.topics.values():
            for partition in topic.partitions:
                if not partition.isr:
                    continue  # the only one in sync lost its disk
                assert partition.leader != NO_LEADER, (topic.name, partition)
                assert set(partition.isr) == set(partition.replicas), (topic.name, partition)
                assert not partition.moving, (topic.name, partition)
        for member in rig.members.values():
            assert member.image.topics == rig.truth.topics
            assert member.writes == []
            assert not member.controllership._busy


STEPS = [
    (20, Chaos.deliver),
    (25, Chaos.write),
    (5, Chaos.wait),
    (2, Chaos.create),
    (1, Chaos.delete),
    (3, Chaos.kill),
    (3, Chaos.notice),
    (2, Chaos.lose_power),
    (1, Chaos.lose_disk),
    (5, Chaos.start),
    (2, Chaos.expire),
    (1, Chaos.cut_off),
    (2, Chaos.reconnect),
    (2, Chaos.stop),
    (3, Chaos.reassign),
    (2, Chaos.elect),
    (8, Chaos.append),
    (12, Chaos.copy),
    (8, Chaos.change_isr),
]


def run(seed: int, steps: int = 400) -> Chaos:
    chaos = Chaos(seed)
    for _ in range(3):
        chaos.create()
        chaos.rig.settle()
    try:
        chaos.run(steps)
    except Refused as refusal:
        raise AssertionError("a refusal that nobody was told of") from refusal
    chaos.recover()
    chaos.check_whole()
    return chaos
