"""One machine of a cluster: its disk, and the broker that runs on it from time to time."""

from collections.abc import Callable, Mapping
from enum import Enum
from uuid import UUID

from cordwood.errors import StorageError
from cordwood.ids import NodeId
from cordwood.sim.disk import SimDisk
from cordwood.sim.driver import Driver, Machine
from cordwood.sim.session import Session
from cordwood.sim.shared_store import HOST, SharedStore

STORE_RETRY_MAX_MS = 300
STOP_POLL_MS = 20
BOOT_MAX_MS = 800


class Way(Enum):
    """How a broker ends when it was not asked to."""

    KILLED = "is killed"
    """The process is gone; what it wrote is still there."""
    DARK = "loses its power"
    """The machine is gone, and so is what was not synced."""
    WIPED = "loses its disk"


class SimNode:
    """A broker's machine: what remains when its process ends."""

    def __init__(
        self,
        node_id: int,
        machine: Machine,
        store: SharedStore,
        static: Mapping[str, str],
        on_start: Callable[["SimNode"], None],
    ) -> None:
        self.id = NodeId(node_id)
        self.machine = machine
        self.driver: Driver | None = None
        self.session: Session | None = None
        self.way: Way = Way.KILLED
        """How it ends when the disk gives the signal."""
        self.is_intact = True
        """Does it have everything that others believe it to have? Not between a loss and its next registration."""
        self.is_starting = False
        self._store = store
        self._static = dict(static)
        self._on_start = on_start
        self._lives = 0

    @property
    def name(self) -> str:
        return self.machine.host

    @property
    def disk(self) -> SimDisk:
        return self.machine.disk

    @property
    def is_running(self) -> bool:
        return self.driver is not None and not self.driver.paused

    # ------------------------------------------------------------------ start

    def start_in(self, delay_max_ms: int) -> None:
        if self.driver is None and not self.is_starting:
            self.is_starting = True
            self._try_in(delay_max_ms)

    def _try_in(self, delay_max_ms: int) -> None:
        delay_ms = self.machine.random.randint(0, delay_max_ms)
        self.machine.clock.after(delay_ms, f"the {self.name} starts", self._start)

    def _start(self) -> None:
        self.light_up()
        if self._store.is_away or not self.machine.network.roads.is_open_both_ways(self.name, HOST):
            self._try_in(STORE_RETRY_MAX_MS)
            return
        session = Session(self._store, self.machine, int(self._static["zookeeper.session.timeout.ms"]))
        try:
            driver = Driver(self.machine, self._static, session)
        except StorageError as error:
            self._say(f"cannot start: {error}")
            self.disk.kill()
            self._try_in(STORE_RETRY_MAX_MS)
            return
        self.is_starting = False
        self.driver, self.session = driver, session
        self._on_start(self)
        driver.start()

    def light_up(self) -> None:
        """The machine has power again, whether the broker runs or not."""
        roads = self.machine.network.roads
        if self.name in roads.dark:
            roads.dark.discard(self.name)
            self.machine.network.heal()

    def _say(self, what: str) -> None:
        self.machine.trace.line(self.name, what)

    # ------------------------------------------------------------------ the end

    def die(self, way: Way) -> None:
        """The process ends, whatever it was doing."""
        self._say(way.value)
        if way is not Way.KILLED:
            self._lose_power()
        if self.driver is not None:
            self.driver.end()
            self.driver = self.session = None
        if way is Way.KILLED:
            self.disk.kill()
        elif way is Way.DARK:
            self.disk.crash()
        else:
            self._replace_disk()

    def _lose_power(self) -> None:
        self.is_intact = False
        self._lives += 1
        self.machine.boot_id = f"boot-{self._lives}"
        self.machine.network.roads.dark.add(self.name)
        delay_ms = self.machine.random.randint(0, BOOT_MAX_MS)
        self.machine.clock.after(delay_ms, f"the machine of the {self.name} is up", self.light_up)

    def _replace_disk(self) -> None:
        self.machine.disk = SimDisk(self.machine.random)
        self.machine.directory_id = UUID(int=self.machine.random.getrandbits(128), version=4)

    def die_at_a_change(self, way: Way, changes: int) -> None:
        """Let it end in the middle of something."""
        self.way = way
        self.disk.power_fails_after = changes

    def stop(self, then: Callable[[], None]) -> None:
        """A clean stop: others lead first."""
        driver = self.driver
        if driver is None or driver.paused:
            return
        self._say("stops in good order")
        driver.act(driver.broker.stop_leading)
        self._poll(driver, lambda: driver.broker.membership.may_stop, lambda: self._leave(driver, then))

    def _poll(self, driver: Driver, condition: Callable[[], bool], then: Callable[[], None]) -> None:
        def look() -> None:
            if condition():
                then()
            else:
                self._poll(driver, condition, then)

        driver.later(STOP_POLL_MS, f"the {self.name} looks whether it may go on stopping", look)

    def _leave(self, driver: Driver, then: Callable[[], None]) -> None:
        driver.act(driver.broker.leave)
        self._poll(driver, lambda: driver.broker.membership.has_left, lambda: self._close(driver, then))

    def _close(self, driver: Driver, then: Callable[[], None]) -> None:
        session = self.session
        driver.end()
        self.driver = self.session = None
        try:
            driver.broker.shut_down(self.machine.clock.now)
        except StorageError as error:
            self._say(f"could not stop in good order: {error}")
        if session is not None:
            session.close()
        self.disk.kill()
        self._say("has stopped")
        then()
