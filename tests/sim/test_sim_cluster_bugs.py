"""The judge of a simulated cluster can condemn: bugs of replication, planted here, are found by some seed.

Which seed finds a bug depends on everything in a run, so several are tried, beginning with one that found it when it
was last looked at, and soon. Run this file to see what each one says, and how long it takes.
"""

import sys
from collections.abc import Callable
from time import process_time
from typing import NamedTuple

import pytest

from cordwood.broker.fetcher import Fetcher
from cordwood.broker.in_sync import InSync
from cordwood.cluster import election
from cordwood.cluster.image import NO_LEADER
from cordwood.cluster.states import Live, State
from cordwood.ids import NodeId
from cordwood.partition.partition import Partition
from cordwood.sim.cluster.world import ClusterWorld
from cordwood.sim.world import SimulationFailed

Plant = Callable[[pytest.MonkeyPatch], None]

SEEDS = range(1, 25)
STEPS = 6_000


def acknowledged_before_followers_have_it(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Partition, now_ms: int) -> None:
        if self.leader == self.node and self.log.end_offset > self.high_watermark:
            self.commit(self.log.end_offset)

    patch.setattr(Partition, "advance", advance)


def cut_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As Kafka did before leader epochs: what a follower does not know to be committed it gives up."""
    follow = Fetcher.follow

    def cut_and_follow(self: Fetcher, partition: Partition) -> None:
        if partition.log.end_offset > partition.high_watermark:
            partition._cut(partition.high_watermark, self._broker.now)
        follow(self, partition)

    patch.setattr(Fetcher, "follow", cut_and_follow)


def elected_outside_the_in_sync_replicas(patch: pytest.MonkeyPatch) -> None:
    def settled(state: State, replicas: tuple[NodeId, ...], live: Live) -> State:
        isr = election.remaining(state.isr, live)
        if state.leader in isr and state.leader in live.there:
            return State(state.leader, state.leader_epoch, isr)
        leader = next((node for node in replicas if node in live.able), NO_LEADER)
        return election.led_by(state, leader, (leader,) if leader not in (NO_LEADER, *isr) else isr)

    patch.setattr(election, "settled", settled)


def removed_before_it_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    """A follower that is proposed to leave the in-sync replicas does not count from that moment on."""
    in_sync = InSync._in_sync

    def count_at_once(
        self: InSync, partition: Partition, leaving: frozenset[NodeId], joining: dict[NodeId, int]
    ) -> tuple[NodeId, ...] | None:
        isr = in_sync(self, partition, leaving, joining)
        for node in leaving:
            partition.isr = tuple(other for other in partition.isr if other != node)
            partition.followers[node].counts = partition.followers[node].joining = False
        partition.advance(self._broker.now.mono_ms)
        return isr

    patch.setattr(InSync, "_in_sync", count_at_once)


def leader_epochs_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Whoever believes to lead serves whoever asks, and neither looks where their logs part."""
    patch.setattr(Partition, "check_epoch", lambda self, claimed_epoch: None)
    patch.setattr("cordwood.broker.handlers.fetch._divergence", lambda log, entry: None)


class Setting(NamedTuple):
    """Where a bug shows soon."""

    faults: tuple[str, ...]
    settings: dict[str, str]
    pause_max_ms: int = 1_000
    first_seed: int = 1


BUGS: dict[Plant, Setting] = {
    acknowledged_before_followers_have_it: Setting(("kill",), {}),
    cut_at_the_high_watermark: Setting(
        ("fell_two",),
        {
            "replica.fetch.wait.max.ms": "500",
            "replica.lag.time.max.ms": "2000",
            "leader.imbalance.check.interval.seconds": "1",
        },
        2_500,
    ),
    elected_outside_the_in_sync_replicas: Setting(
        ("kill", "isolate"), {"replica.lag.time.max.ms": "250"}, first_seed=14
    ),
    removed_before_it_is_confirmed: Setting(
        ("leave_alone",),
        {"replica.lag.time.max.ms": "250", "zookeeper.session.timeout.ms": "1500"},
        5_000,
        first_seed=14,
    ),
    leader_epochs_are_ignored: Setting(("kill", "leave_alone", "pause"), {}, first_seed=6),
}


def run(seed: int, setting: Setting) -> None:
    ClusterWorld(
        seed, steps=STEPS, faults=setting.faults, settings=setting.settings, pause_max_ms=setting.pause_max_ms
    ).run()


def finding(bug: Plant, seed: int) -> str | None:
    """What is said of a run with a bug, None if it is not seen."""
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        try:
            run(seed, BUGS[bug])
        except (SimulationFailed, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Plant) -> None:
    seeds = sorted(SEEDS, key=lambda seed: seed != BUGS[bug].first_seed)
    found = next((seed for seed in seeds if finding(bug, seed) is not None), None)
    assert found is not None, "no seed has found it"
    run(found, BUGS[bug])  # without the bug it is a good run


if __name__ == "__main__":
    for each in BUGS:
        if len(sys.argv) == 1 or each.__name__ in sys.argv:
            for number in SEEDS:
                start_s = process_time()
                words = (finding(each, number) or "nothing").split("\n")[0][:150]
                print(f"{each.__name__} {number} {process_time() - start_s:.1f} s {words}", flush=True)
