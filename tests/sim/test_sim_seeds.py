"""The broker under many seeds. A seed that fails prints how to live through it again."""

import re

import pytest

from cordwood.sim.world import World

SEEDS = range(1, 41)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_keeps_every_promise(seed: int) -> None:
    world = World(seed)
    try:
        world.run()
    except Exception as error:
        pytest.fail(f"seed {seed}: {error!r}\nreplay: {world.command}")


def test_the_seeds_meet_every_fault() -> None:
    lines: list[str] = []
    acknowledged = losses = deaths = 0
    for seed in range(1, 25):
        world = World(seed)
        world.run()
        lines += world.trace.lines
        acknowledged += len(world.history.acknowledged)
        losses += world.history.era
        deaths += sum(era.deaths for era in world.history.eras)
    assert acknowledged > 300
    assert losses > 3
    assert deaths > 3
    for text in (
        "breaks",
        "falls silent",
        "the log is cut at offset",
        "the wall's clock is set",
        "KAFKA_STORAGE_ERROR",
        "refuses change",
        "OUT_OF_ORDER_SEQUENCE_NUMBER, begins anew",
        "loses its session",
        "from 0 again",
        "no answer in time",
        "nothing happened for 1000 ms",
        "deletes churn.*: NONE",
        "grows churn.*: NONE",
        "alters churn.*: NONE",
        "writes to churn.*: NONE",
        "a produce request with acks=0 failed",
        "table-0 is compacted",
        "partitions of its group",
        "must join again",
    ):
        assert any(re.search(text, line) for line in lines), text
