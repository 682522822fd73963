"""Minutes of faults, one after the other, chosen by a seed; then the checker. A program of its own.

    python tests/cluster/torture.py --minutes 5 [--seed N] [--faults kill-leader,freeze-leader,…] [--data DIR]

Three brokers whose wires can be cut, three ZooKeeper servers, two writers, an idempotent one among them, and a group of
readers. Every fault that leaves a majority alone must leave the writers their progress; after every fault all replicas
must come back in sync. The same seed chooses the same faults; what they meet is up to the machine.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from cluster import checker  # noqa: E402
from cluster.cordwood_nodes import cordwood_nodes  # noqa: E402
from cluster.harness import Cluster, Topic  # noqa: E402
from cluster.network import KEEPER, Network  # noqa: E402
from cluster.recorder import Recorder  # noqa: E402
from cluster.workload import Workload  # noqa: E402
from cordwood.run.zookeeper_server import Ensemble  # noqa: E402

PARTITIONS: Final = 4
PROGRESS_S: Final = 60.0
FAULT_S: Final = (0.2, 4.0)
REST_S: Final = (0.0, 2.0)


@dataclass(slots=True)
class Stage:
    """All that faults can be done to."""

    cluster: Cluster
    network: Network
    ensemble: Ensemble
    topic: Topic
    chance: random.Random

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


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}, commit {_commit()}", flush=True)
    with ExitStack() as stack:
        directory = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cordwood-torture-")))
        directory.mkdir(parents=True, exist_ok=True)
        recorder = Recorder(directory / "history.jsonl")
        stack.callback(recorder.close)
        stage = stack.enter_context(_stage(directory, random.Random(seed)))
        try:
            history = _torture(stage, recorder, options.faults, options.minutes * 60)
        except BaseException:
            _explain(stage, directory)
            raise
    print(f"{checker.summary(history)}: nothing is wrong")
    return 0


@contextmanager
def _stage(directory: Path, chance: random.Random) -> Iterator[Stage]:
    with ExitStack() as stack:
        ensemble = stack.enter_context(Ensemble(directory / "zookeeper"))
        network = Network()
        stack.callback(network.close)
        keepers = [server.port for server in ensemble.servers]
        cluster = Cluster(cordwood_nodes(directory, keepers=keepers, chroot="/torture", network=network))
        stack.callback(cluster.end)
        cluster.start()
        yield Stage(cluster, network, ensemble, cluster.create("torture", PARTITIONS), chance)


def _torture(stage: Stage, recorder: Recorder, names: Sequence[str], duration_s: float) -> checker.History:
    topic, cluster = stage.topic, stage.cluster
    done: Counter[str] = Counter()
    start_s = time.monotonic()
    pause = threading.Event()
    with Workload(recorder, cluster.bootstrap, topic.name, topic.partitions, readers=3, timeout_s=300.0) as workload:
        workload.progress()
        while time.monotonic() < start_s + duration_s:
            name = stage.chance.choice(names)
            begin_s, before = time.monotonic(), workload.acknowledged
            print(f"{begin_s - start_s:6.1f} s  {name}", end="", flush=True)
            fault = FAULTS[name](stage)
            next(fault)
            pause.wait(stage.chance.uniform(*FAULT_S))
            if name not in WITHOUT_PROGRESS:
                workload.progress(within_s=PROGRESS_S)
            next(fault, None)
            cluster.wait_in_sync(topic)
            workload.progress(within_s=PROGRESS_S)
            pause.wait(stage.chance.uniform(*REST_S))
            done[name] += 1
            took_s, gained = time.monotonic() - begin_s, workload.acknowledged - before
            print(f": {gained} records in {took_s:.1f} s", flush=True)
            assert not workload.idempotent.errors, workload.idempotent.errors[:5]
        print(f"faults: {dict(sorted(done.items()))}", flush=True)
        cluster.settle(workload, topic)
        return cluster.judge(recorder, topic)


def _explain(stage: Stage, directory: Path) -> None:
    """What every broker thinks, and all that it wrote."""
    print("\nit went wrong; what the brokers know:")
    for number, node in stage.cluster.nodes.items():
        found = stage.cluster.view(number, stage.topic) if number in stage.cluster.awake() else None
        if found is None:
            print(f"broker {number} says nothing")
        else:
            known = [broker.node_id for broker in found.brokers]
            print(f"broker {number}: controller {found.controller_id}, brokers {known}")
            for state in found.topics[0].partitions:
                print(f"  {state.partition_index}: {state.leader_id} ({state.leader_epoch}), ISR {state.isr_nodes}")
        (directory / f"broker-{number}.log").write_text(node.all_words())
    print(f"what they wrote is in {directory}", flush=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Minutes of faults on a cluster, then the checker.")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--seed", type=int, default=None, help="which faults; default: any")
    parser.add_argument("--faults", type=_names, default=list(FAULTS), help=f"some of: {','.join(FAULTS)}")
    parser.add_argument("--data", type=Path, default=None, help="where data and history stay; default: nowhere")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    if unknown := [name for name in text.split(",") if name not in FAULTS]:
        raise argparse.ArgumentTypeError(f"no such fault: {', '.join(unknown)}")
    return text.split(",")


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
