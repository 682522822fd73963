"""``python -m cordwood.sim --seed N`` runs one seed again; ``--seeds 1-500 --brokers 3`` looks for failures."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from cordwood.sim.cluster.world import STEPS as CLUSTER_STEPS
from cordwood.sim.cluster.world import ClusterWorld
from cordwood.sim.world import STEPS, SimulationFailed, World

_LINES_SHOWN = 25

MakeWorld = Callable[[int, int, int | None, Callable[[str], None] | None], World | ClusterWorld]
"""Takes a seed, a number of brokers, of steps if it is given, and a function that prints lines."""


def _world(seed: int, brokers: int, steps: int | None, echo: Callable[[str], None] | None) -> World | ClusterWorld:
    if brokers > 1:
        return ClusterWorld(seed, brokers=brokers, steps=steps or CLUSTER_STEPS, echo=echo)
    return World(seed, steps=steps or STEPS, echo=echo)


def main(arguments: Sequence[str] | None = None, make: MakeWorld = _world) -> int:
    parser = argparse.ArgumentParser(prog="python -m cordwood.sim", description="Run brokers under a seed.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="the first seed")
    which.add_argument("--seeds", type=_seeds, metavar="FROM-TO", help="all seeds from one to another")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--brokers", type=int, default=1, help="more than one: a cluster with a shared store")
    parser.add_argument("--steps", type=int, help="events before the faults end")
    parser.add_argument("--verbose", action="store_true", help="print a line for each event")
    options = parser.parse_args(arguments)
    echo = print if options.verbose else None
    seeds = options.seeds or range(options.seed, options.seed + options.count)
    failed = [
        seed for seed in seeds if not _live(make(seed, options.brokers, options.steps, echo), verbose=options.verbose)
    ]
    if len(seeds) > 1 and failed:
        print(f"{len(failed)} of {len(seeds)} seeds failed: {', '.join(map(str, failed))}", file=sys.stderr)
    return 1 if failed else 0


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _live(world: World | ClusterWorld, *, verbose: bool) -> bool:
    try:
        world.run()
    except Exception as error:
        if not verbose:
            print("\n".join(world.trace.lines[-_LINES_SHOWN:]))
        if not isinstance(error, SimulationFailed):
            traceback.print_exc()
        print(f"seed {world.seed} failed: {error}", file=sys.stderr)
        print(f"replay: {world.command}", file=sys.stderr)
        return False
    if not verbose:
        print(f"seed {world.seed}: {world.summary}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
