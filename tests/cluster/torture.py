"""Minutes of faults, one after the other, chosen by a seed; then the checker. A program of its own.

    python tests/cluster/torture.py --minutes 5 [--seed N] [--faults kill-leader,freeze-leader,…] [--together]
        [--data DIR]

Three brokers whose wires can be cut, three ZooKeeper servers, two writers, an idempotent one among them, and a group of
readers. Every fault that leaves a majority alone must leave the writers their progress; after every fault all replicas
must come back in sync. With --together, several brokers suffer at the same time, and progress is asked for only after
all is mended. The same seed chooses the same faults; what they meet is up to the machine.
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
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from cluster import checker  # noqa: E402
from cluster.cordwood_nodes import cordwood_nodes  # noqa: E402
from cluster.harness import Cluster  # noqa: E402
from cluster.network import Network  # noqa: E402
from cluster.recorder import Recorder  # noqa: E402
from cluster.torments import FAULTS, TOGETHER, WITHOUT_PROGRESS, Stage  # noqa: E402
from cluster.workload import Workload  # noqa: E402
from cordwood.run.zookeeper_server import Ensemble  # noqa: E402

PARTITIONS: Final = 4
PROGRESS_S: Final = 60.0
FAULT_S: Final = (0.2, 4.0)
REST_S: Final = (0.0, 2.0)
PAUSE: Final = threading.Event()


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
            turn = _together if options.together else _one_after_the_other(options.faults)
            history = _torture(stage, recorder, turn, options.minutes * 60)
        except BaseException:
            _explain(stage, directory)
            raise
    print(f"{checker.summary(history)}: nothing is wrong")
    return 0


@contextmanager
def _stage(directory: Path, chance: random.Random) -> Iterator[Stage]:
    with ExitStack() as stack:
        words = stack.enter_context((directory / "zookeeper.log").open("w"))
        ensemble = stack.enter_context(
            Ensemble(directory / "zookeeper", on_line=lambda number, line: print(number, line, file=words))
        )
        network = Network()
        stack.callback(network.close)
        keepers = [server.port for server in ensemble.servers]
        cluster = Cluster(cordwood_nodes(directory, keepers=keepers, chroot="/torture", network=network))
        stack.callback(cluster.end)
        cluster.start()
        yield Stage(cluster, network, ensemble, cluster.create("torture", PARTITIONS), chance)


def _torture(stage: Stage, recorder: Recorder, turn: "Turn", duration_s: float) -> checker.History:
    topic, cluster = stage.topic, stage.cluster
    done: Counter[str] = Counter()
    start_s = time.monotonic()
    with Workload(recorder, cluster.bootstrap, topic.name, topic.partitions, readers=3, timeout_s=300.0) as workload:
        workload.progress()
        while time.monotonic() < start_s + duration_s:
            begin_s, before = time.monotonic(), workload.acknowledged
            print(f"{begin_s - start_s:6.1f} s ", end="", flush=True)
            done.update(turn(stage, workload))
            cluster.wait_in_sync(topic)
            workload.progress(within_s=PROGRESS_S)
            PAUSE.wait(stage.chance.uniform(*REST_S))
            took_s, gained = time.monotonic() - begin_s, workload.acknowledged - before
            print(f": {gained} records in {took_s:.1f} s", flush=True)
            assert not workload.idempotent.errors, workload.idempotent.errors[:5]
        print(f"faults: {dict(sorted(done.items()))}", flush=True)
        cluster.settle(workload, topic)
        return cluster.judge(recorder, topic)


Turn = Callable[[Stage, Workload], list[str]]
"""One or more faults, mended at its end; their names."""


def _one_after_the_other(names: Sequence[str]) -> Turn:
    def turn(stage: Stage, workload: Workload) -> list[str]:
        name = stage.chance.choice(names)
        print(f" {name}", end="", flush=True)
        fault = FAULTS[name](stage)
        next(fault)
        PAUSE.wait(stage.chance.uniform(*FAULT_S))
        if name not in WITHOUT_PROGRESS:
            workload.progress(within_s=PROGRESS_S)
        next(fault, None)
        return [name]

    return turn


def _together(stage: Stage, workload: Workload) -> list[str]:
    """Begin and end faults in any order, so that some of them overlap."""
    names = [stage.chance.choice(sorted(TOGETHER)) for _ in range(stage.chance.randint(2, 5))]
    under_way: list[Iterator[None]] = []
    for name in names:
        print(f" {name}", end="", flush=True)
        if len(stage.busy) == len(stage.cluster.nodes) or (under_way and stage.chance.random() < 0.3):
            next(under_way.pop(stage.chance.randrange(len(under_way))), None)
        fault = TOGETHER[name](stage)
        next(fault)
        under_way.append(fault)
        PAUSE.wait(stage.chance.uniform(*FAULT_S))
    stage.chance.shuffle(under_way)
    for fault in under_way:
        next(fault, None)
        PAUSE.wait(stage.chance.uniform(0.0, 1.0))
    return names


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
    parser.add_argument("--together", action="store_true", help="several brokers suffer at the same time")
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
