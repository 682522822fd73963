"""A seed is the whole story: equal seeds, equal traces, in any process."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from cordwood.sim.__main__ import main
from cordwood.sim.world import SimulationFailed, World


def trace(seed: int, steps: int) -> str:
    world = World(seed, steps=steps)
    world.run()
    return "\n".join(world.trace.lines)


def test_one_seed_gives_one_trace() -> None:
    assert trace(3, 800) == trace(3, 800)


def test_other_seeds_give_other_traces() -> None:
    assert len({trace(seed, 100) for seed in range(100, 106)}) == 6


def test_the_order_of_sets_does_not_show() -> None:
    """Another process hashes strings otherwise: whatever depends on that would differ."""
    outputs = [
        subprocess.run(
            [sys.executable, "-m", "cordwood.sim", "--seed", "7", "--steps", "600", "--verbose"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") > 600


def test_a_good_seed_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--steps", "200", "--count", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("seed 5: ")
    assert second.startswith("seed 6: ")
    assert "batches acknowledged" in first


def test_verbose_prints_a_line_for_each_event(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--steps", "50", "--verbose"]) == 0
    assert capsys.readouterr().out == trace(5, 50) + "\n"


class Failing(World):
    """A run that ends badly."""

    error: Exception = SimulationFailed("a promise was broken")

    def run(self) -> None:
        self.trace.line("world", "what happened last")
        raise self.error


class Tripping(Failing):
    error = AssertionError("an invariant")


@pytest.mark.parametrize(("kind", "text"), [(Failing, "a promise was broken"), (Tripping, "an invariant")])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_failed_seed_says_how_to_replay_it(
    capsys: pytest.CaptureFixture[str], kind: type[Failing], text: str, verbose: bool
) -> None:
    def make(seed: int, brokers: int, steps: int | None, echo: Callable[[str], None] | None) -> World:
        assert (brokers, steps) == (1, 70)
        return kind(seed, steps=70, echo=echo)

    assert main(["--seed", "9", "--steps", "70", *(["--verbose"] if verbose else [])], make) == 1
    printed = capsys.readouterr()
    assert printed.out.count("what happened last") == 1
    assert f"seed 9 failed: {text}" in printed.err
    assert "replay: python -m cordwood.sim --seed 9 --steps 70 --verbose" in printed.err
    assert ("Traceback" in printed.err) == (kind is Tripping)
