"""``python -m cordwood.sim --seed N``: live through one seed again, or through several."""

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from cordwood.sim.world import STEPS, SimulationFailed, World

_LINES_SHOWN = 25

MakeWorld = Callable[[int, int, Callable[[str], None] | None], World]


def _world(seed: int, steps: int, echo: Callable[[str], None] | None) -> World:
    return World(seed, steps=steps, echo=echo)


def main(arguments: Sequence[str] | None = None, make: MakeWorld = _world) -> int:
    parser = argparse.ArgumentParser(prog="python -m cordwood.sim", description="Run the broker under a seed.")
    parser.add_argument("--seed", type=int, required=True, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--steps", type=int, default=STEPS, help="events before the faults end")
    parser.add_argument("--verbose", action="store_true", help="print a line for each event")
    options = parser.parse_args(arguments)
    echo = print if options.verbose else None
    seeds = range(options.seed, options.seed + options.count)
    failed = [seed for seed in seeds if not _live(make(seed, options.steps, echo), verbose=options.verbose)]
    return 1 if failed else 0


def _live(world: World, *, verbose: bool) -> bool:
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
    history = world.history
    if not verbose:
        print(
            f"seed {world.seed}: {len(world.trace.lines)} lines, {len(history.acknowledged)} batches acknowledged, "
            f"{sum(len(reading.seen) for reading in history.readings)} records read, "
            f"{len(history.eras) - 1} losses of power, {sum(era.deaths for era in history.eras)} deaths"
        )
    return True


if __name__ == "__main__":
    sys.exit(main())
