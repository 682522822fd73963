"""What the seed lets go wrong in a cluster, and when it must not.

Whatever was acknowledged is on all in-sync replicas, in their page caches. So a machine may lose its power, or its
disk, only while each of its partitions has another in-sync replica. And until it is back, and has said what it may have
lost, nothing may happen to the others that makes them look dead: otherwise no cluster of this kind can keep its
promises, and neither can Kafka's. Such a loss waits until it can be tolerated, and in the meantime only gentle faults
happen. Everything else may happen at any time.
"""

from collections.abc import Callable, Collection, Sequence
from random import Random

from cordwood.cluster.image import MetadataImage
from cordwood.ids import NodeId
from cordwood.sim.client import Surroundings
from cordwood.sim.cluster.node import SimNode, Way
from cordwood.sim.cluster.witness import Witness
from cordwood.sim.shared_store import HOST, SharedStore

PAUSES_MAX_MS = 400, 1_000, 2_500
DISK_CHANGES_MAX = 20
WALL_SHIFT_MAX_MS = 600_000
RESTART_MAX_MS = 2_500
TROUBLE_MAX_MS = 4_000
REIGN_MAX_MS = 60
WAIT_MAX_MS = 200
GIVING_UP_ODDS = 0.02


Kind = Callable[[], None]


class Faults:
    """Faults, one after the other, as long as they last."""

    def __init__(
        self,
        around: Surroundings,
        nodes: Sequence[SimNode],
        store: SharedStore,
        witness: Witness,
        only: Collection[str] = (),
        pause_max_ms: int | None = None,
    ) -> None:
        """*only*: the names of the faults that may happen, if not all of them."""
        self._around = around
        self._witness = witness
        self._nodes = nodes
        self._store = store
        self._random: Random = around.random
        self._pause_max_ms = pause_max_ms or self._random.choice(PAUSES_MAX_MS)
        """Between two faults. Some troubles last long: with short pauses there are always several at once."""
        self._is_on = True
        self._loss: tuple[SimNode, Way] | None = None
        """The loss that waits until it can be tolerated."""
        self._gentle = [kind for kind in self._gentle_kinds() if not only or kind.__name__.strip("_") in only]
        self._rough = [kind for kind in self._rough_kinds() if not only or kind.__name__.strip("_") in only]

    def _gentle_kinds(self) -> list[Kind]:
        return [
            self._cut,
            self._cut,
            self._silence,
            self._part,
            self._part,
            self._part_one_way,
            self._isolate,
            self._fall_behind,
            self._shift_wall,
        ]

    def _rough_kinds(self) -> list[Kind]:
        return [
            self._kill,
            self._kill,
            self._kill_controller,
            self._lie_in_wait,
            self._wait_for_election,
            self._fell_two,
            self._lose_power,
            self._lose_power,
            self._lose_disk,
            self._pause,
            self._pause,
            self._stop,
            self._cut_off_from_store,
            self._cut_off_from_store,
            self._cut_off_one_way,
            self._leave_alone,
            self._leave_alone,
            self._take_store_away,
            self._fail_disk,
        ]

    def start(self) -> None:
        self._plan()

    def end(self) -> None:
        """Repair whatever is broken, and let nothing break any more."""
        self._is_on = False
        self._around.on_acknowledged = _nothing
        self._witness.on_election = _ignore
        self._store.is_away = False
        roads = self._around.network.roads
        roads.blocked.clear()
        roads.dark.clear()
        self._around.network.heal()
        for node in self._nodes:
            node.disk.power_fails_after = node.disk.fails_after = None
            if node.driver is not None:
                node.driver.resume()
            else:
                node.start_in(RESTART_MAX_MS)

    def _plan(self) -> None:
        pause_max_ms = self._pause_max_ms if self._loss is None else WAIT_MAX_MS
        self._around.clock.after(self._random.randint(1, pause_max_ms), "fate", self._strike)

    def _strike(self) -> None:
        if not self._is_on:
            return
        self._plan()
        if self._loss is not None:
            self._lose(*self._loss)
            return
        is_safe = all(node.is_intact for node in self._nodes)
        kinds = self._gentle + self._rough if is_safe else self._gentle
        if kinds:
            self._random.choice(kinds)()

    def _lose(self, node: SimNode, way: Way) -> None:
        """Carry out a loss if it can be tolerated now. Some are given up: the others might never be healthy enough."""
        if self._is_bearable(node):
            self.die(node, way)
            self._loss = None
        elif self._random.random() < GIVING_UP_ODDS:
            self._loss = None

    def _say(self, what: str) -> None:
        self._around.trace.line("world", what)

    def _later(self, what: str, action: Callable[[], None], delay_max_ms: int = TROUBLE_MAX_MS) -> None:
        """Let something end after a while."""
        self._around.clock.after(self._random.randint(1, delay_max_ms), what, lambda: action() if self._is_on else None)

    # ------------------------------------------------------------------ connections

    def _cut(self) -> None:
        link = self._around.network.cut_one()
        if link is not None:
            self._say(f"connection {link.number} from {link.host} to {link.address[0]} breaks")

    def _silence(self) -> None:
        link = self._around.network.silence_one()
        if link is not None:
            self._say(f"connection {link.number} from {link.host} to {link.address[0]} falls silent")

    # ------------------------------------------------------------------ processes and machines

    def _any_running(self) -> SimNode | None:
        running = [node for node in self._nodes if node.is_running]
        return self._random.choice(running) if running else None

    def _kill(self) -> None:
        node = self._any_running()
        if node is not None:
            self._strike_down(node, Way.KILLED)

    def _kill_controller(self) -> None:
        controller = self.image().controller
        node = next((node for node in self._nodes if node.id == controller and node.is_running), None)
        if node is not None:
            self._strike_down(node, Way.KILLED)

    def _lose_power(self) -> None:
        self._loss = self._random.choice(self._nodes), Way.DARK

    def _lose_disk(self) -> None:
        self._loss = self._random.choice(self._nodes), Way.WIPED

    def _strike_down(self, node: SimNode, way: Way) -> None:
        """Kill it at once, or in the middle of something that changes the disk."""
        if self._random.random() < 0.5:
            self.die(node, way)
            return
        changes = self._random.randint(0, DISK_CHANGES_MAX)
        self._say(f"the {node.name} will end after {changes} changes of its disk")
        node.die_at_a_change(way, changes)

    def die(self, node: SimNode, way: Way) -> None:
        node.die(way)
        if self._is_on:
            self._later(f"the {node.name} is to start again", lambda: node.start_in(0), RESTART_MAX_MS)
        else:
            node.start_in(RESTART_MAX_MS)

    def _lie_in_wait(self) -> None:
        """Strike when a producer has just been told that its batch is safe."""
        self._say("a broker will fall at the next acknowledgement")
        self._around.on_acknowledged = self._spring

    def _spring(self) -> None:
        self._around.on_acknowledged = _nothing
        self._around.clock.after(0, "the trap springs", self._strike_any)

    def _strike_any(self) -> None:
        node = self._any_running()
        if node is None or not self._is_on:
            return
        if all(other.is_intact for other in self._nodes):
            self.die(node, Way.DARK if self._is_bearable(node) else Way.KILLED)

    def _wait_for_election(self) -> None:
        """Strike the next leader to be elected, before others have followed it for long."""
        self._say("the next leader will fall")
        self._witness.on_election = self._doom

    def _fell_two(self) -> None:
        """Strike a leader, and then its successor."""
        leaders = {partition.leader for topic in self.image().topics.values() for partition in topic.partitions}
        running = [node for node in self._nodes if node.id in leaders and node.is_running]
        if running:
            self._wait_for_election()
            self.die(self._random.choice(running), Way.KILLED)

    def _doom(self, leader: NodeId) -> None:
        self._witness.on_election = _ignore
        node = next(node for node in self._nodes if node.id == leader)
        self._later(f"the {node.name} has led for long enough", lambda: self._strike_leader(node), REIGN_MAX_MS)

    def _strike_leader(self, node: SimNode) -> None:
        if node.is_running and all(other.is_intact for other in self._nodes):
            self.die(node, Way.KILLED)

    def image(self) -> MetadataImage:
        """What the store holds."""
        image = MetadataImage()
        image.apply(self._store.load())
        return image

    def _is_bearable(self, lost: SimNode) -> bool:
        """Can what is on this machine be lost? Not while another may be taken for dead."""
        image = self.image()
        if self._store.is_away or any(HOST in road for road in self._around.network.roads.blocked):
            return False
        if not lost.is_running or not all(_is_well(node, image) for node in self._nodes if node is not lost):
            return False
        return all(
            lost.id not in partition.isr or len(partition.isr) > 1
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def _pause(self) -> None:
        node = self._any_running()
        if node is None:
            return
        assert node.driver is not None
        self._say(f"the {node.name} is paused")
        node.driver.pause()
        self._later(f"the {node.name} goes on", node.driver.resume)

    def _stop(self) -> None:
        node = self._any_running()
        if node is not None:
            node.stop(lambda: node.start_in(RESTART_MAX_MS))

    # ------------------------------------------------------------------ blocked roads

    def _block(self, what: str, *roads: tuple[str, str], delay_max_ms: int = TROUBLE_MAX_MS) -> None:
        blocked = self._around.network.roads.blocked
        self._say(what)
        blocked.update(roads)

        def unblock() -> None:
            blocked.difference_update(roads)
            self._around.network.heal()

        self._later(f"it is over: {what}", unblock, delay_max_ms)

    def _part(self) -> None:
        one, other = self._random.sample([node.name for node in self._nodes], 2)
        self._block(f"{one} and {other} are parted", (one, other), (other, one))

    def _part_one_way(self) -> None:
        one, other = self._random.sample([node.name for node in self._nodes], 2)
        self._block(f"nothing comes from {one} to {other}", (one, other))

    def _cut_off_one_way(self) -> None:
        road = self._random.choice(self._nodes).name, HOST
        source, target = road if self._random.random() < 0.5 else road[::-1]
        self._block(f"nothing comes from {source} to {target}", (source, target))

    def _isolate(self) -> None:
        one = self._random.choice(self._nodes).name
        others = [node.name for node in self._nodes if node.name != one]
        self._block(f"{one} is cut off from all", *((one, o) for o in others), *((o, one) for o in others))

    def _leave_alone(self) -> None:
        """Only clients can reach it."""
        one = self._random.choice(self._nodes).name
        others = [HOST, *(node.name for node in self._nodes if node.name != one)]
        roads = [*((one, other) for other in others), *((other, one) for other in others)]
        self._block(f"{one} has only clients", *roads, delay_max_ms=2 * TROUBLE_MAX_MS)

    def _cut_off_from_store(self) -> None:
        one = self._random.choice(self._nodes).name
        self._block(f"{one} is cut off from the store", (one, HOST), (HOST, one))

    def _take_store_away(self) -> None:
        self._say("the store is away")
        self._store.is_away = True
        self._later("the store is back", self._bring_store_back)

    def _bring_store_back(self) -> None:
        self._store.is_away = False

    def _fall_behind(self) -> None:
        node = self._any_running()
        if node is not None and node.session is not None:
            self._say(f"the {node.name} misses changes of the metadata")
            node.session.fall_behind()

    # ------------------------------------------------------------------ other faults

    def _fail_disk(self) -> None:
        node = self._random.choice(self._nodes)
        node.disk.fails_after = self._random.randint(0, DISK_CHANGES_MAX)
        self._say(f"the disk of the {node.name} will fail once, after {node.disk.fails_after} changes")

    def _shift_wall(self) -> None:
        ms = self._random.randint(-WALL_SHIFT_MAX_MS, WALL_SHIFT_MAX_MS)
        self._around.clock.shift_wall(ms)
        self._say(f"the wall's clock is set by {ms} ms")


def _is_well(node: SimNode, image: MetadataImage) -> bool:
    """Is it alive, with nothing pending that would change that?"""
    driver, disk = node.driver, node.disk
    if driver is None or driver.paused or not node.is_intact or node.id not in image.brokers:
        return False
    if disk.power_fails_after is not None or disk.fails_after is not None:
        return False
    if node.session is None or not node.session.is_fresh:
        return False
    return not driver.broker.membership.fenced and not driver.broker.membership.stopping


def _nothing() -> None:
    pass


def _ignore(_: NodeId) -> None:
    pass
