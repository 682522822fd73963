"""The faults of the torture: each does something to a cluster, waits, and undoes it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from cluster.harness import Cluster, Topic
from cluster.network import KEEPER, Network
from cordwood.run.zookeeper_server import Ensemble


@dataclass(slots=True)
class Stage:
    """All that faults can be done to."""

    cluster: Cluster
    network: Network
    ensemble: Ensemble
    topic: Topic
    chance: random.Random
    busy: set[int] = field(default_factory=set)
    """Brokers that suffer already."""

    def idle(self) -> int:
        """Any broker that does not suffer yet."""
        return self.chance.choice(sorted(set(self.cluster.nodes) - self.busy))

    def leader(self) -> int:
        return self.cluster.leader(self.topic, self.chance.randrange(self.topic.partitions))

    def follower(self) -> int:
        return self.chance.choice(self.cluster.followers(self.topic, self.chance.randrange(self.topic.partitions)))

    def others(self, node: int) -> list[int]:
        return [number for number in self.cluster.nodes if number != node]


Fault = Callable[[Stage], Iterator[None]]
"""Does it, waits at its only yield for as long as the fault shall last, and undoes it."""


def _killed(choose: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage) -> Iterator[None]:
        node = choose(stage)
        stage.cluster.kill(node)
        yield
        stage.cluster.restart(node)

    return fault


def _stopped(choose: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage) -> Iterator[None]:
        node = choose(stage)
        status = stage.cluster.nodes[node].stop()
        assert status == 0, f"broker {node} ended with {status}"
        yield
        stage.cluster.restart(node)

    return fault


def _frozen(choose: Callable[[Stage], int]) -> Fault:
    def fault(stage: Stage) -> Iterator[None]:
        node = choose(stage)
        stage.cluster.freeze(node)
        yield
        stage.cluster.thaw(node)

    return fault


def _wiped(stage: Stage) -> Iterator[None]:
    node = stage.leader()
    stage.cluster.kill(node)
    stage.cluster.wipe(node)
    yield
    stage.cluster.restart(node)


def _all_killed(stage: Stage) -> Iterator[None]:
    for node in stage.cluster.nodes:
        stage.cluster.kill(node)
    yield
    for node in stage.cluster.nodes:
        stage.cluster.restart(node)


def _two_killed(stage: Stage) -> Iterator[None]:
    nodes = stage.chance.sample(sorted(stage.cluster.nodes), 2)
    for node in nodes:
        stage.cluster.kill(node)
    yield
    for node in nodes:
        stage.cluster.restart(node)


def _rolling(stage: Stage) -> Iterator[None]:
    for node in sorted(stage.cluster.nodes):
        assert stage.cluster.nodes[node].stop() == 0
        stage.cluster.restart(node)
        stage.cluster.wait_in_sync(stage.topic)
    yield


def _brokers_cut(stage: Stage) -> Iterator[None]:
    one, other = stage.chance.sample(sorted(stage.cluster.nodes), 2)
    if stage.chance.random() < 0.4:
        stage.network.cut(one, other)
    else:
        stage.network.cut_one_way(one, other)
    yield
    stage.network.mend()


def _keeper_cut(stage: Stage) -> Iterator[None]:
    node = stage.leader()
    which = stage.chance.randrange(3)
    if which != 1:
        stage.network.cut_one_way(node, KEEPER)
    if which != 2:
        stage.network.cut_one_way(KEEPER, node)
    yield
    stage.network.mend()


def _isolated(stage: Stage) -> Iterator[None]:
    """Clients reach it, nobody else does."""
    node = stage.leader()
    stage.network.isolate(node, [KEEPER, *stage.others(node)])
    yield
    stage.network.mend()


def _slow(stage: Stage) -> Iterator[None]:
    one, other = stage.chance.sample(sorted(stage.cluster.nodes), 2)
    stage.network.slow(one, other, stage.chance.uniform(0.01, 0.5))
    yield
    stage.network.mend()


def _keepers_killed(count: int) -> Fault:
    def fault(stage: Stage) -> Iterator[None]:
        servers = stage.chance.sample(stage.ensemble.servers, count)
        for server in servers:
            server.kill()
        yield
        for server in servers:
            server.launch()
        for server in servers:
            server.wait_until_serving()

    return fault


def _keeper_leader_killed(stage: Stage) -> Iterator[None]:
    server = stage.ensemble.leader()
    if server is not None:
        server.kill()
    yield
    if server is not None:
        server.start()


FAULTS: Final[dict[str, Fault]] = {
    "kill-leader": _killed(Stage.leader),
    "kill-follower": _killed(Stage.follower),
    "kill-controller": _killed(lambda stage: stage.cluster.controller()),
    "stop-leader": _stopped(Stage.leader),
    "freeze-leader": _frozen(Stage.leader),
    "freeze-follower": _frozen(Stage.follower),
    "freeze-controller": _frozen(lambda stage: stage.cluster.controller()),
    "empty-disk": _wiped,
    "kill-two": _two_killed,
    "kill-all": _all_killed,
    "rolling-restart": _rolling,
    "cut-brokers": _brokers_cut,
    "cut-zookeeper": _keeper_cut,
    "isolate-leader": _isolated,
    "slow-wire": _slow,
    "kill-one-zookeeper": _keepers_killed(1),
    "kill-zookeepers-leader": _keeper_leader_killed,
    "kill-two-zookeepers": _keepers_killed(2),
}
WITHOUT_PROGRESS: Final = ("kill-two", "kill-all", "kill-two-zookeepers")


def _wild(harm: Callable[[Stage, int], None], mend: Callable[[Stage, int], None]) -> Fault:
    def fault(stage: Stage) -> Iterator[None]:
        node = stage.idle()
        stage.busy.add(node)
        harm(stage, node)
        yield
        mend(stage, node)
        stage.busy.discard(node)

    return fault


def _cut_off(stage: Stage, node: int) -> None:
    stage.network.isolate(node, [KEEPER, *stage.others(node)])


def _deaf(stage: Stage, node: int) -> None:
    """It can speak, and hears nothing."""
    for other in (KEEPER, *stage.others(node)):
        stage.network.cut_one_way(other, node)


def _mute(stage: Stage, node: int) -> None:
    for other in (KEEPER, *stage.others(node)):
        stage.network.cut_one_way(node, other)


def _join(stage: Stage, node: int) -> None:
    for other in (KEEPER, *stage.others(node)):
        stage.network.join(node, other)


TOGETHER: Final[dict[str, Fault]] = {
    "kill": _wild(lambda stage, node: stage.cluster.kill(node), lambda stage, node: stage.cluster.restart(node)),
    "freeze": _wild(lambda stage, node: stage.cluster.freeze(node), lambda stage, node: stage.cluster.thaw(node)),
    "isolate": _wild(_cut_off, _join),
    "deafen": _wild(_deaf, _join),
    "mute": _wild(_mute, _join),
    "lose-zookeeper": _wild(lambda stage, node: stage.network.cut(node, KEEPER), _join),
}
"""Faults of single brokers that may happen at the same time. Nobody promises progress meanwhile."""
