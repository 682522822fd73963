"""``python -m cordwood.sim --seed N``: live through one seed again, or through several."""

import argparse
import sys
import traceback

from cordwood.sim.world import STEPS, SimulationFailed, World

_LINES_SHOWN = 25


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cordwood.sim", description="Run the broker under a seed.")
    parser.add_argument("--seed", type=int, required=True, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--steps", type=int, default=STEPS, help="events before the faults end")
    parser.add_argument("--verbose", action="store_true", help="print a line for each event")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    failures = [seed for seed in seeds if not _live(seed, options.steps, options.verbose)]
    return 1 if failures else 0


def _live(seed: int, steps: int, verbose: bool) -> bool:
    world = World(seed, steps=steps, echo=print if verbose else None)
    try:
        world.run()
    except Exception as error:
        if not verbose:
            print("\n".join(world.trace.lines[-_LINES_SHOWN:]))
        if not isinstance(error, SimulationFailed):
            traceback.print_exc()
        print(f"seed {seed} failed: {error}", file=sys.stderr)
        print(f"replay: python -m cordwood.sim --seed {seed} --steps {steps} --verbose", file=sys.stderr)
        return False
    history = world.history
    if not verbose:
        print(
            f"seed {seed}: {len(world.trace.lines)} lines, {len(history.acknowledged)} batches acknowledged, "
            f"{sum(len(reading.seen) for reading in history.readings)} records read, "
            f"{len(history.eras) - 1} losses of power, {sum(era.deaths for era in history.eras)} deaths"
        )
    return True


if __name__ == "__main__":
    sys.exit(main())
