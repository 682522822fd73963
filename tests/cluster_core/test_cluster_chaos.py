"""Whatever happens to the brokers: no epoch goes back, nobody leads who was not in sync, nothing acknowledged is lost,
and when the trouble is over everything is whole again. (``cluster_chaos`` has the story and what is checked.)
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_core.cluster_chaos import run


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32))
def test_a_cluster_in_trouble(seed: int) -> None:
    run(seed, steps=250)


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        (95, 400),  # a leader without its records served followers before it had registered again
        (333, 400),  # a broker that was just gone was left as the only one in sync, for another that was about to stop
        (582, 400),  # a move ended on a broker that was just gone
        (126312794, 250),  # a broker that was just gone came into sync, and was all that was left
    ],
)
def test_seeds_that_once_failed(seed: int, steps: int) -> None:
    run(seed, steps=steps)


def test_the_story_is_not_empty() -> None:
    """Records are acknowledged, leaders change, moves end: else the tests above say nothing."""
    stories = [run(seed, steps=400) for seed in range(20)]
    assert sum(len(records) for story in stories for records in story.acknowledged.values()) > 100
    assert sum(state.leader_epoch for story in stories for state in story.before.values()) > 100
    assert sum(len(story.rig.store.changes) for story in stories) > 1000
