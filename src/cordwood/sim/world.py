"""One run: a broker, some clients, and whatever the seed lets go wrong.

The seed draws the settings, the clients and every delay; it breaks connections, kills the process, cuts the power in
the middle of anything, lets the disk and the store fail, and sets the wall clock. After a set number of events the
faults end, the clients finish, and the history of the run is checked.
"""

from collections.abc import Callable
from random import Random

from cordwood.errors import StorageError
from cordwood.ids import TopicName, TopicPartition
from cordwood.sim.admin import Admin
from cordwood.sim.checker import violations
from cordwood.sim.client import Surroundings
from cordwood.sim.clock import SimClock
from cordwood.sim.consumer import Consumer
from cordwood.sim.disk import PowerLost, SimDisk
from cordwood.sim.driver import Driver, Machine, Odds
from cordwood.sim.history import Era, History, LogDump, dump
from cordwood.sim.keeper import TABLE, Keeper
from cordwood.sim.member import Member, Shared
from cordwood.sim.network import Network
from cordwood.sim.producer import Producer
from cordwood.sim.store import SimStore
from cordwood.sim.trace import Trace

STEPS = 1_500
QUIET_STEPS_MAX = 60_000
FAULT_PAUSE_MAX_MS = 800
RESTART_MAX_MS = 500
WALL_SHIFT_MAX_MS = 600_000
DISK_CHANGES_MAX = 20

FAST, SAFE = TopicName("fast"), TopicName("safe")


class SimulationFailed(Exception):
    """A run broke a promise. The text says which one."""


class World:
    """Everything in one run. Equal seeds and steps give equal runs."""

    def __init__(self, seed: int, *, steps: int = STEPS, echo: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.steps = steps
        self._random = random = Random(seed)
        self._clock = SimClock(random)
        self.trace = Trace(self._clock, echo)
        self._network = Network(self._clock, random)
        self._disk = SimDisk(random)
        self._machine = Machine(
            self._clock, self._network, self._disk, SimStore(), random, self.trace, _draw_odds(random)
        )
        self.history = History(safe_topics=frozenset({SAFE}))
        self._static = _draw_settings(random)
        self._topics = _draw_topics(random)
        self._partitions = [
            TopicPartition(name, index) for name, (count, _) in self._topics.items() for index in range(count)
        ]
        self._driver: Driver | None = None
        self._faulty = True
        self._power_is_off = False
        self._around = Surroundings(self._clock, self._network, random, self.trace, self.history)
        self._admin, self._producers, self._consumers = self._draw_clients()
        self._keeper = Keeper(self._around, batches=random.randint(0, 80))
        self._group = Shared(self._around, int(self._static["group.consumer.session.timeout.ms"]))
        self._members = [
            Member(
                self._around,
                self._group,
                f"member-{number}",
                [str(name) for name in self._topics],
                beats=random.randint(10, 60),
            )
            for number in range(random.randint(0, 3))
        ]

    @property
    def command(self) -> str:
        """How to repeat this run."""
        return f"python -m cordwood.sim --seed {self.seed} --steps {self.steps} --verbose"

    @property
    def summary(self) -> str:
        """What happened, in one line."""
        history = self.history
        return (
            f"{len(self.trace.lines)} lines, {len(history.acknowledged)} batches acknowledged, "
            f"{sum(len(reading.seen) for reading in history.readings)} records read, "
            f"{len(history.eras) - 1} losses of power, {sum(era.deaths for era in history.eras)} deaths"
        )

    def _draw_clients(self) -> tuple[Admin, list[Producer], list[Consumer]]:
        random, around = self._random, self._around
        topics = {str(name): plan for name, plan in self._topics.items()}
        topics[TABLE.topic] = 1, _draw_table(random)
        producers = [
            Producer(
                around,
                f"producer-{number}",
                self._partitions,
                batches=random.randint(10, 80),
                version=random.choice((3, 7, 9, 12)),
                acks=random.choice((1, -1)),
                in_flight_max=random.randint(1, 5),
                pause_max_ms=random.choice((8, 60, 150)),
            )
            for number in range(random.randint(1, 3))
        ]
        consumers = [
            Consumer(
                around,
                f"consumer-{number}",
                self._partitions,
                version=random.choice((4, 7, 12, 13, 18)),
                forgetful=random.choice((0.0, 0.1)),
            )
            for number in range(random.randint(1, 3))
        ]
        return Admin(around, topics, random.randint(0, 30)), producers, consumers

    # ------------------------------------------------------------------ the run

    def run(self) -> None:
        """Run everything. Raises ``SimulationFailed``, or any exception that the broker raised."""
        self.trace.line("world", f"seed {self.seed}, {self._describe()}")
        self._start_broker()
        clients: list[Admin | Producer | Consumer | Keeper | Member] = [
            self._admin,
            *self._producers,
            *self._consumers,
            self._keeper,
            *self._members,
        ]
        for client in clients:
            client.start()
        self._plan_fault()
        for _ in range(self.steps):
            self._step()
        self._calm_down()
        self._run_until(self._is_finished, "the clients never finished")
        self._restart_cleanly()
        self._run_until(lambda: not self._leftovers(), "what deleted topics left was never removed")
        self._judge()

    def _describe(self) -> str:
        topics = ", ".join(f"{name}: {count} {config}" for name, (count, config) in self._topics.items())
        return f"{len(self._producers)} producers, {len(self._consumers)} consumers; {topics}; {self._static}"

    def _step(self) -> None:
        what, action = self._clock.step()
        self.trace.line("", what)
        try:
            action()
        except PowerLost:
            self._die(power=self._power_is_off)
        if self._driver is not None and self._driver.failure is not None:
            self.trace.line("broker", f"stops: {self._driver.failure}")
            self._die(power=False)

    def _start_broker(self) -> None:
        try:
            driver = Driver(self._machine, self._static)
        except StorageError as error:
            self.trace.line("broker", f"cannot start: {error}")
            self._disk.kill()
            self._plan_restart()
            return
        self._driver = driver
        self.history.lives += 1
        self._witness_start(driver)
        driver.start()

    def _plan_restart(self) -> None:
        self._clock.after(self._random.randint(0, RESTART_MAX_MS), "the broker starts", self._start_broker)

    # ------------------------------------------------------------------ faults

    def _plan_fault(self) -> None:
        self._clock.after(self._random.randint(1, FAULT_PAUSE_MAX_MS), "fate", self._fault)

    def _fault(self) -> None:
        if not self._faulty:
            return
        fault = self._random.choice(
            (
                self._cut,
                self._cut,
                self._silence,
                self._kill,
                self._lose_power,
                self._lie_in_wait,
                self._fail_disk,
                self._fail_disk,
                self._shift_wall,
            )
        )
        fault()
        self._plan_fault()

    def _cut(self) -> None:
        link = self._network.cut_one()
        if link is not None:
            self.trace.line("world", f"connection {link.number} breaks")

    def _silence(self) -> None:
        link = self._network.silence_one()
        if link is not None:
            self.trace.line("world", f"connection {link.number} falls silent")

    def _kill(self) -> None:
        """Kill the process at once, or in the middle of something that changes the disk."""
        self._end_at_a_change("the process will be killed", power=False)

    def _lose_power(self) -> None:
        self._end_at_a_change("the power will go", power=True)

    def _lie_in_wait(self) -> None:
        """Cut the power when a producer has just been told that its batch is safe."""
        self.trace.line("world", "the power will go at the next acknowledgement")
        self._around.on_acknowledged = self._spring

    def _spring(self) -> None:
        self._around.on_acknowledged = _nothing
        self._clock.after(0, "the power goes", lambda: self._die(power=True) if self._driver is not None else None)

    def _end_at_a_change(self, what: str, *, power: bool) -> None:
        if self._driver is None:
            return
        self._power_is_off = power
        self._disk.power_fails_after = self._random.randint(0, DISK_CHANGES_MAX)
        self.trace.line("world", f"{what} after {self._disk.power_fails_after} changes of the disk")

    def _fail_disk(self) -> None:
        self._disk.fails_after = self._random.randint(0, DISK_CHANGES_MAX)
        self.trace.line("world", f"the disk will fail once, after {self._disk.fails_after} changes")

    def _shift_wall(self) -> None:
        ms = self._random.randint(-WALL_SHIFT_MAX_MS, WALL_SHIFT_MAX_MS)
        self._clock.shift_wall(ms)
        self.trace.line("world", f"the wall's clock is set by {ms} ms")

    def _die(self, *, power: bool) -> None:
        """The process is gone; in a power failure, so is what was not synced."""
        self.trace.line("world", "the power is gone" if power else "the broker is dead")
        if self._driver is not None:
            self._driver.end()
            self._driver = None
        if power:
            self._forget_group()
            self.history.eras[-1].logs = self._dump()
            self.history.eras.append(Era())
            self._disk.crash()
            self._left_over = None
        else:
            self.history.eras[-1].deaths += 1
            self._left_over = self._dump()
            self._disk.kill()
        self._plan_restart()

    def _forget_group(self) -> None:
        """The offsets topic is not synced: what was promised to the group's members may be gone."""
        self._group.told.clear()
        for member in self._members:
            member.begin_anew()

    # ------------------------------------------------------------------ evidence

    def _dump(self) -> dict[TopicPartition, LogDump]:
        return {partition: dump(self._disk, partition) for partition in self._partitions}

    _left_over: dict[TopicPartition, LogDump] | None = None
    """The logs when the process last died; the next one must find them again."""

    def _witness_start(self, driver: Driver) -> None:
        """Recovery is over: is everything there that was there before?"""
        found = self._dump()
        if self._left_over is not None and found != self._left_over:
            self.history.complain("a broker that died without a loss of power came back with other logs")
        era = self.history.eras[-1]
        if self.history.era and not era.kept:
            era.kept = found
        for partition, log in found.items():
            local = driver.broker.replicas.by_name.get(partition.topic, {}).get(partition.partition)
            end = local.log.end_offset if local is not None else 0
            if end != len(log):
                self.history.complain(f"{partition} was opened with end {end}, and its files have {len(log)} records")
        self._check_table(driver)

    def _check_table(self, driver: Driver) -> None:
        table = driver.broker.replicas.by_name.get(TABLE.topic, {}).get(TABLE.partition)
        for text in self._keeper.surprises(table.log if table is not None else None):
            self.history.complain(text)

    # ------------------------------------------------------------------ the end

    def _calm_down(self) -> None:
        """No more faults but one, because some troubles end with a new start: now everything must finish."""
        self.trace.line("world", "all is calm")
        self._faulty = False
        self._around.on_acknowledged = _nothing
        self._disk.power_fails_after = self._disk.fails_after = None
        self._machine.odds = Odds()
        if self._driver is not None:
            self._die(power=False)

    def _run_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        for _ in range(QUIET_STEPS_MAX):
            if condition():
                return
            self._step()
        raise SimulationFailed(otherwise)

    def _is_finished(self) -> bool:
        if self._driver is None or not self._admin.is_done:
            return False
        writers: list[Keeper | Member | Producer] = [self._keeper, *self._members, *self._producers]
        if not all(writer.is_done for writer in writers):
            return False
        replicas = self._driver.broker.replicas
        return all(
            consumer.position(p) == replicas.get(p.topic, p.partition).log.end_offset
            for consumer in self._consumers
            for p in self._partitions
        )

    def _restart_cleanly(self) -> None:
        """A clean stop: the next broker finds everything without reading it."""
        assert self._driver is not None
        self.trace.line("world", "the broker stops in good order")
        self._driver.end()
        self._driver.broker.shut_down(self._clock.now)
        self._left_over = self._dump()
        self._disk.kill()
        self._start_broker()

    def _leftovers(self) -> list[str]:
        """What deleted topics have left on the disk, or in the metadata."""
        assert self._driver is not None
        deleted = [name for name in self._disk.list("") if name.endswith("-delete")]
        return deleted + [str(topic_id) for topic_id in self._driver.broker.image.deleted_topics]

    def _judge(self) -> None:
        driver = self._driver
        assert driver is not None
        self.history.eras[-1].logs = self._dump()
        self._check_directories(driver)
        self._check_table(driver)
        found = violations(self.history) + self._admin.surprises(list(driver.broker.image.topics))
        if found:
            raise SimulationFailed("\n".join(found))
        self.trace.line("world", "a good run")

    def _check_directories(self, driver: Driver) -> None:
        expected = {str(partition.name) for partition in driver.broker.replicas.all()}
        there = {name for name in self._disk.list("") if self._disk.exists(f"{name}/partition.metadata")}
        strays = {name for name in there if name.endswith("-stray")}
        if there - strays != expected:
            self.history.complain(f"the disk has {sorted(there)}, the metadata {sorted(expected)}")


def _nothing() -> None:
    pass


def _draw_odds(random: Random) -> Odds:
    return Odds(
        store_conflict=random.choice((0.0, 0.2)),
        store_failure=random.choice((0.0, 0.1)),
        removal_failure=random.choice((0.0, 0.2)),
    )


def _draw_settings(random: Random) -> dict[str, str]:
    return {
        "connections.max.idle.ms": str(random.choice((1_000, 600_000))),
        "max.incremental.fetch.session.cache.slots": str(random.choice((0, 1, 1_000, 1_000))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((100, 1_000, 60_000))),
        "log.retention.check.interval.ms": str(random.choice((500, 300_000))),
        "log.retention.ms": "-1",
        "offsets.topic.num.partitions": "2",
        "group.consumer.session.timeout.ms": str(random.choice((900, 3_000, 45_000))),
        "group.consumer.min.session.timeout.ms": "900",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.assignment.interval.ms": str(random.choice((0, 500))),
        "log.cleaner.backoff.ms": str(random.choice((150, 1_000))),
        "log.cleaner.dedupe.buffer.size": str(random.choice((500, 128 << 20))),
    }


def _draw_topics(random: Random) -> dict[TopicName, tuple[int, dict[str, str]]]:
    """The numbers of partitions and the settings of the two watched topics."""
    return {
        name: (
            random.randint(1, 2),
            {
                "internal.segment.bytes": str(random.choice((400, 2_000, 1 << 20))),
                "index.interval.bytes": str(random.choice((0, 100, 4096))),
                "flush.messages": flush_messages,
            },
        )
        for name, flush_messages in ((FAST, str(random.choice((5, 1 << 40)))), (SAFE, "1"))
    }


def _draw_table(random: Random) -> dict[str, str]:
    """Settings of the compacted topic. What is acknowledged there is synced."""
    return {
        "cleanup.policy": "compact",
        "flush.messages": "1",
        "internal.segment.bytes": str(random.choice((400, 1_000))),
        "index.interval.bytes": str(random.choice((0, 100, 4096))),
        "min.cleanable.dirty.ratio": str(random.choice((0, 0.4))),
        "delete.retention.ms": str(random.choice((0, 1_000))),
        "file.delete.delay.ms": str(random.choice((0, 2_000))),
    }
