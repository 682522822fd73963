"""One run of a cluster: brokers, a store that they share, clients, and whatever the seed lets go wrong.

After a set number of events, the faults end. Then the clients must finish, every partition must have a leader and all
its replicas in sync, every broker must survive a clean stop, and the history of the run is checked.
"""

from collections.abc import Callable, Collection, Mapping
from random import Random
from types import MappingProxyType

from cordwood.cluster.image import MetadataImage, PartitionInfo
from cordwood.ids import NodeId, TopicName, TopicPartition
from cordwood.sim.admin import Admin
from cordwood.sim.client import Surroundings
from cordwood.sim.clock import SimClock
from cordwood.sim.cluster.checker import Replica, replica, violations
from cordwood.sim.cluster.consumer import Consumer
from cordwood.sim.cluster.faults import Faults
from cordwood.sim.cluster.mover import Mover
from cordwood.sim.cluster.node import SimNode
from cordwood.sim.cluster.producer import ALL, LEADER, Producer
from cordwood.sim.cluster.witness import Witness
from cordwood.sim.disk import PowerLost, SimDisk
from cordwood.sim.driver import Driver, Machine, Odds
from cordwood.sim.history import History
from cordwood.sim.keeper import TABLE, Keeper
from cordwood.sim.member import Member, Shared
from cordwood.sim.network import Network
from cordwood.sim.shared_store import SharedStore
from cordwood.sim.store import SimStore
from cordwood.sim.trace import Trace
from cordwood.sim.world import SimulationFailed

STEPS = 8_000
QUIET_STEPS_MAX = 100_000
LOOK_EVERY_STEPS = 25
EVENTS_PER_CHECK = 25
PORT = 9092

FIRST, SECOND = TopicName("first"), TopicName("second")
OFFSETS = TopicPartition(TopicName("__consumer_offsets"), 0)


class ClusterWorld:
    """Everything in one run. Equal seeds, brokers and steps give equal runs."""

    def __init__(
        self,
        seed: int,
        *,
        brokers: int = 3,
        steps: int = STEPS,
        echo: Callable[[str], None] | None = None,
        faults: Collection[str] = (),
        settings: Mapping[str, str] = MappingProxyType({}),
        pause_max_ms: int | None = None,
    ) -> None:
        """*faults*, the pauses between them, and *settings*: for a test that needs certain ones."""
        self.seed = seed
        self.steps = steps
        self.brokers = brokers
        self._random = random = Random(seed)
        self._clock = SimClock(random)
        self.trace = Trace(self._clock, echo)
        self._network = Network(self._clock, random)
        self._store = SharedStore(self._clock)
        self.history = History()
        self._static = {**_draw_settings(random, brokers), **settings}
        self._topics = _draw_topics(random, brokers)
        self._partitions = [
            TopicPartition(name, index) for name, (count, _) in self._topics.items() for index in range(count)
        ]
        self.witness = Witness(self.history, list(self._topics))
        self._odds = _draw_odds(random)
        self.nodes = [self._make_node(number) for number in range(1, brokers + 1)]
        self._around = Surroundings(
            self._clock,
            self._network,
            random,
            self.trace,
            self.history,
            addresses=[node.machine.address for node in self.nodes],
        )
        self._faults = Faults(self._around, self.nodes, self._store, self.witness, faults, pause_max_ms)
        self._draw_clients()

    @property
    def command(self) -> str:
        """How to repeat this run."""
        return f"python -m cordwood.sim --brokers {self.brokers} --seed {self.seed} --steps {self.steps} --verbose"

    @property
    def summary(self) -> str:
        """What happened, in one line."""
        history = self.history
        return (
            f"{len(self.trace.lines)} lines, {len(history.acknowledged)} batches acknowledged, "
            f"{sum(len(reading.seen) for reading in history.readings)} records read, "
            f"{history.lives} lives, {self.witness.elections} leaders"
        )

    def _make_node(self, number: int) -> SimNode:
        host = f"broker-{number}"
        disk = SimDisk(self._random)
        machine = Machine(
            self._clock, self._network, disk, SimStore(), self._random, self.trace, self._odds, (host, PORT)
        )
        machine.boot_id = "boot-0"
        machine.events_per_check = EVENTS_PER_CHECK
        static = {
            **self._static,
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{host}:{PORT}",
            "broker.rack": f"rack-{number % 2}",
        }
        return SimNode(number, machine, self._store, static, self._started)

    def _draw_clients(self) -> None:
        random, around = self._random, self._around
        topics = {str(name): plan for name, plan in self._topics.items()}
        topics[TABLE.topic] = 1, _draw_table(random, self.brokers)
        self._admin = Admin(around, topics, random.randint(0, 30))
        self._producers = [
            Producer(
                around,
                f"producer-{number}",
                self._partitions,
                batches=random.randint(30, 200),
                version=random.choice((3, 9, 12)),
                acks=random.choice((ALL, ALL, ALL, LEADER)),
                in_flight_max=random.randint(1, 5),
                pause_max_ms=random.choice((8, 60, 150)),
            )
            for number in range(random.randint(1, 3))
        ]
        self._consumers = [
            Consumer(around, f"consumer-{number}", self._partitions, version=random.choice((9, 12, 13, 17)))
            for number in range(random.randint(1, 2))
        ]
        self._mover = Mover(
            around,
            [*self._partitions, TABLE, OFFSETS],
            brokers=self.brokers,
            replicas_max=min(self.brokers, 3),
            changes=random.choice((0, 0, random.randint(1, 15))),
        )
        self._keeper = Keeper(around, batches=random.randint(0, 80))
        self._group = Shared(around, int(self._static["group.consumer.session.timeout.ms"]))
        self._members = [
            Member(
                around,
                self._group,
                f"member-{number}",
                [str(name) for name in self._topics],
                beats=random.randint(20, 100),
            )
            for number in range(random.randint(0, 3))
        ]

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Run everything. Raises ``SimulationFailed``, or any exception that a broker raised."""
        self.trace.line("world", f"seed {self.seed}, {self._describe()}")
        for node in self.nodes:
            node.start_in(500)
        clients: list[Admin | Producer | Consumer | Keeper | Member | Mover] = [
            self._admin,
            self._mover,
            *self._producers,
            *self._consumers,
            self._keeper,
            *self._members,
        ]
        for client in clients:
            client.start()
        self._faults.start()
        for _ in range(self.steps):
            self._step()
        self.trace.line("world", "all is calm")
        self._calm_down()
        self._run_until(lambda: not self._unfinished(), "the clients never finished")
        for node in self.nodes:
            self._restart_cleanly(node)
        self._run_until(self._is_settled, "the cluster never came to rest")
        self._judge()

    def _restart_cleanly(self, node: SimNode) -> None:
        self._run_until(self._is_led, "the partitions have no leaders, or only one replica in sync")
        lives = self.history.lives
        node.stop(lambda: node.start_in(0))
        self._run_until(lambda: self.history.lives > lives, f"{node.name} never came back")

    def _describe(self) -> str:
        topics = ", ".join(f"{name}: {count} {config}" for name, (count, config) in self._topics.items())
        return f"{len(self._producers)} producers, {len(self._consumers)} consumers; {topics}; {self._static}"

    def _step(self) -> None:
        what, action = self._clock.step()
        self.trace.line("", what)
        try:
            action()
        except PowerLost:
            node = next(node for node in self.nodes if node.disk.power_fails_after == 0)
            self._faults.die(node, node.way)
        for node in self.nodes:
            driver = node.driver
            if driver is not None and driver.failure is not None:
                self.trace.line(node.name, f"stops: {driver.failure}")
                self._faults.die(node, node.way)
            elif driver is not None and driver.acted:
                driver.acted = False
                self.witness.look(node)
                if not node.is_intact and not driver.broker.membership.fenced:
                    node.is_intact = True

    def _started(self, node: SimNode) -> None:
        self.history.lives += 1
        self.witness.forget(node.id)

    # ------------------------------------------------------------------ the end

    def _calm_down(self) -> None:
        self._odds.store_conflict = self._odds.store_failure = self._odds.removal_failure = 0.0
        self._faults.end()

    def _run_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        for number in range(QUIET_STEPS_MAX):
            if number % LOOK_EVERY_STEPS == 0 and condition():
                return
            self._step()
        raise SimulationFailed("\n".join([otherwise, *self._unfinished(), *self._unsettled()]))

    def _is_led(self) -> bool:
        """Does every partition have a leader, so that no broker is the only one with something?"""
        return all(
            partition.leader >= 0 and len(partition.isr) > 1
            for topic in self._faults.image().topics.values()
            for partition in topic.partitions
        )

    def _is_settled(self) -> bool:
        return not self._unfinished() and not self._unsettled() and not self._unread()

    def _unfinished(self) -> list[str]:
        """Which clients have not finished yet."""
        missing = [f"{node.name} is not there" for node in self.nodes if not node.is_running]
        writers: list[Admin | Keeper | Member | Producer] = [
            self._admin,
            self._keeper,
            *self._members,
            *self._producers,
        ]
        return missing + [f"{type(writer).__name__} has not finished" for writer in writers if not writer.is_done]

    def _drivers(self) -> list[Driver]:
        return [node.driver for node in self.nodes if node.driver is not None]

    def _unsettled(self) -> list[str]:
        """What is not as it should be in the end."""
        image = self._faults.image()
        found = [f"{topic_id} was deleted and is not gone" for topic_id in image.deleted_topics]
        if len(image.brokers) < len(self.nodes) or any(driver.broker.membership.fenced for driver in self._drivers()):
            found.append("a broker is not registered")
        if image.controller is None:
            found.append("there is no controller")
        for topic in image.topics.values():
            for info in topic.partitions:
                found += self._unsettled_partition(f"{topic.name}-{info.index}", topic.name, info)
        return found

    def _unsettled_partition(self, what: str, topic: TopicName, info: PartitionInfo) -> list[str]:
        found = []
        if info.leader < 0 or set(info.isr) != set(info.replicas):
            found.append(f"{what} is led by {info.leader}, in sync are {info.isr}")
        if info.moving:
            found.append(f"{what} still moves: {info.assignment}")
        local = [driver.broker.replicas.by_name.get(topic, {}).get(info.index) for driver in self._drivers()]
        ends = {(replica.log.end_offset, replica.high_watermark) for replica in local if replica is not None}
        if len(ends) != 1 or any(end != committed for end, committed in ends):
            found.append(f"{what} has ends {sorted(ends)}")
        return found

    def _unread(self) -> list[str]:
        ends = {partition: self._end(partition) for partition in self._partitions}
        return [
            f"{consumer.name} is at {consumer.position(partition)} of {end} in {partition}"
            for consumer in self._consumers
            for partition, end in ends.items()
            if consumer.position(partition) != end
        ]

    def _end(self, partition: TopicPartition) -> int:
        found = (d.broker.replicas.by_name.get(partition.topic, {}).get(partition.partition) for d in self._drivers())
        return next(replica.log.end_offset for replica in found if replica is not None)

    def _judge(self) -> None:
        image = self._faults.image()
        replicas: dict[TopicPartition, dict[NodeId, Replica]] = {
            partition: {node.id: replica(node.disk, partition) for node in self._holders(image, partition)}
            for partition in self._partitions
        }
        for node in self.nodes:
            self._check_directories(node)
        for node in self._holders(image, TABLE):
            assert node.driver is not None
            table = node.driver.broker.replicas.get(TABLE.topic, TABLE.partition)
            for text in self._keeper.surprises(table.log):
                self.history.complain(f"{node.name}: {text}")
        found = violations(self.history, self.witness.committed, replicas)
        found += self._admin.surprises(list(image.topics))
        if found:
            raise SimulationFailed("\n".join(found))
        self.trace.line("world", "a good run")

    def _holders(self, image: MetadataImage, partition: TopicPartition) -> list[SimNode]:
        replicas = image.topics[partition.topic].partitions[partition.partition].replicas
        return [node for node in self.nodes if node.id in replicas]

    def _check_directories(self, node: SimNode) -> None:
        assert node.driver is not None
        expected = {str(partition.name) for partition in node.driver.broker.replicas.all()}
        there = {name for name in node.disk.list("") if node.disk.exists(f"{name}/partition.metadata")}
        strays = {name for name in there if name.endswith("-stray")}
        if there - strays != expected:
            self.history.complain(f"the disk of {node.name} has {sorted(there)}, the metadata {sorted(expected)}")


def _draw_odds(random: Random) -> Odds:
    return Odds(
        store_conflict=random.choice((0.0, 0.1)),
        store_failure=random.choice((0.0, 0.05)),
        removal_failure=random.choice((0.0, 0.2)),
    )


def _draw_settings(random: Random, brokers: int) -> dict[str, str]:
    return {
        "zookeeper.connect": "store:2181",
        "zookeeper.session.timeout.ms": str(random.choice((600, 1_500, 3_000))),
        "replica.lag.time.max.ms": str(random.choice((250, 500, 2_000))),
        "replica.fetch.wait.max.ms": str(random.choice((20, 100, 250))),
        "replica.fetch.backoff.ms": str(random.choice((50, 200))),
        "replica.fetch.max.bytes": str(random.choice((100, 1_000, 1 << 20))),
        "replica.socket.timeout.ms": str(random.choice((600, 1_500))),
        "replica.high.watermark.checkpoint.interval.ms": str(random.choice((100, 1_000, 5_000))),
        "leader.imbalance.check.interval.seconds": str(random.choice((1, 5, 300))),
        "default.replication.factor": str(min(brokers, 3)),
        "offsets.topic.replication.factor": str(min(brokers, 3)),
        "max.incremental.fetch.session.cache.slots": str(random.choice((0, 1, 1_000, 1_000))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((100, 1_000, 60_000))),
        "log.retention.check.interval.ms": str(random.choice((500, 300_000))),
        "log.retention.ms": "-1",
        "offsets.topic.num.partitions": "2",
        "group.consumer.session.timeout.ms": str(random.choice((3_000, 45_000))),
        "group.consumer.min.session.timeout.ms": "900",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": str(random.choice((0, 500))),
        "log.cleaner.backoff.ms": str(random.choice((150, 1_000))),
        "log.cleaner.dedupe.buffer.size": str(random.choice((500, 128 << 20))),
    }


def _draw_topics(random: Random, brokers: int) -> dict[TopicName, tuple[int, dict[str, str]]]:
    """The numbers of partitions and the settings of the two watched topics."""
    return {
        name: (
            random.randint(1, 2),
            {
                "internal.segment.bytes": str(random.choice((400, 2_000, 1 << 20))),
                "index.interval.bytes": str(random.choice((0, 100, 4096))),
                "flush.messages": flush_messages,
                "min.insync.replicas": str(random.randint(1, min(brokers, 2))),
            },
        )
        for name, flush_messages in ((FIRST, str(1 << 40)), (SECOND, str(random.choice((1, 5, 1 << 40)))))
    }


def _draw_table(random: Random, brokers: int) -> dict[str, str]:
    """Settings of the topic that is compacted.

    Tombstones are kept for ever: a replica that was away until they were gone would keep what they deleted, here as in
    Kafka.
    """
    return {
        "cleanup.policy": "compact",
        "internal.segment.bytes": str(random.choice((400, 1_000))),
        "index.interval.bytes": str(random.choice((0, 100, 4096))),
        "min.cleanable.dirty.ratio": str(random.choice((0, 0.4))),
        "file.delete.delay.ms": str(random.choice((0, 2_000))),
        "min.insync.replicas": str(random.randint(1, min(brokers, 2))),
    }
