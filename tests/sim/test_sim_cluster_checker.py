"""The judge of a cluster can condemn: one broken history for each promise, and for each thing that a witness sees."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from cordwood.ids import NodeId, TopicName, TopicPartition
from cordwood.record.build import Record, build
from cordwood.sim.cluster.checker import Replica, violations
from cordwood.sim.cluster.witness import Committed
from cordwood.sim.history import Acknowledged, History, Reading, Seen, Stored

T = TopicPartition(TopicName("t"), 0)
A, B, C = b"p/0", b"p/1", b"p/2"
ONE, TWO = NodeId(1), NodeId(2)


def batch(offset: int, epoch: int, *values: bytes) -> bytes:
    return bytes(build([Record(offset + n, 0, None, value) for n, value in enumerate(values)], leader_epoch=epoch))


def replica() -> Replica:
    """A and B of epoch 0, C of epoch 3."""
    records = [Stored(offset, value) for offset, value in enumerate((A, B, C))]
    return Replica(records, batch(0, 0, A, B) + batch(2, 3, C), {0: 0, 3: 2})


@dataclass
class Run:
    history: History = field(default_factory=History)
    committed: list[Committed] = field(default_factory=list)
    replicas: dict[NodeId, Replica] = field(default_factory=dict)

    def violations(self) -> list[str]:
        return violations(self.history, {T: self.committed}, {T: self.replicas})


def good() -> Run:
    run = Run(replicas={ONE: replica(), TWO: replica()})
    run.history.sent = {("producer", T): [A, B, C]}
    run.history.acknowledged = [Acknowledged("producer", T, 0, (A, B), 0), Acknowledged("producer", T, 2, (C,), 0)]
    run.history.readings = [Reading("consumer", T, 0, [Seen(0, A, 0), Seen(1, B, 0)])]
    run.committed = [Committed(0, 0, A), Committed(1, 0, B), Committed(2, 3, C)]
    return run


def test_a_good_run_has_no_violations() -> None:
    assert good().violations() == []


def lost_everywhere(run: Run) -> None:
    for node in run.replicas:
        run.replicas[node] = Replica(replica().records[:2], batch(0, 0, A, B), {0: 0})


def lost_by_one(run: Run) -> None:
    run.replicas[TWO] = Replica(replica().records[:2], batch(0, 0, A, B), {0: 0})


def other_record(run: Run) -> None:
    run.replicas[TWO].records[1] = Stored(1, C)


def other_bytes(run: Run) -> None:
    run.replicas[TWO] = replace(replica(), data=batch(0, 0, A, B) + batch(2, 2, C), epochs={0: 0, 2: 2})


def epoch_not_noted(run: Run) -> None:
    run.replicas[TWO].epochs = {0: 0}


def duplicate(run: Run) -> None:
    for found in run.replicas.values():
        found.records.append(Stored(3, A))


def reordered(run: Run) -> None:
    run.history.sent = {("producer", T): [B, A, C]}


def acknowledged_elsewhere(run: Run) -> None:
    run.history.acknowledged[1] = Acknowledged("producer", T, 1, (C,), 0)


def acknowledged_nowhere(run: Run) -> None:
    run.history.acknowledged[1] = Acknowledged("producer", T, -1, (C,), 0)


def seen_and_gone(run: Run) -> None:
    run.history.readings[0].seen[1] = Seen(1, C, 0)


def seen_beyond_the_end(run: Run) -> None:
    run.history.readings[0].seen += [Seen(2, C, 0), Seen(3, A, 0)]


def skipped(run: Run) -> None:
    del run.history.readings[0].seen[0]


def committed_otherwise(run: Run) -> None:
    run.committed[1] = Committed(1, 0, C)


@pytest.mark.parametrize(
    ("breaking", "text"),
    [
        (lost_everywhere, "was committed at offset 2, and is lost"),
        (lost_everywhere, "is at offset 2, and it is not"),
        (lost_by_one, "have other records: they have 3 and 2"),
        (other_record, "have other records: record 1 is"),
        (other_bytes, "the same records in other bytes"),
        (epoch_not_noted, "epoch 3 begins at 2, and 2 has noted None"),
        (duplicate, "is in the log 2 times"),
        (reordered, "and the log has them after"),
        (acknowledged_elsewhere, "is at offset 1, and it is not"),
        (acknowledged_nowhere, "is at offset -1, and it is not"),
        (seen_and_gone, "and the log has something else there"),
        (seen_beyond_the_end, "and the log has something else there"),
        (skipped, "saw offset 1 where 0 was next"),
        (committed_otherwise, "was committed at offset 1, and is lost"),
    ],
)
def test_a_broken_promise_is_seen(breaking: Callable[[Run], None], text: str) -> None:
    run = good()
    breaking(run)
    found = run.violations()
    assert any(text in violation for violation in found), found
