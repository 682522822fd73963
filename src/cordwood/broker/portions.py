"""Large wishes, a portion at a time: a metadata store that others share takes only so much at once.

A broker on its own has no such limit, and does everything in one write.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cordwood.broker.proposals import PATIENCE_MS, Patience, Plan
from cordwood.cluster.controller import PARTITIONS_MAX
from cordwood.cluster.states import STATES_MAX
from cordwood.errors import Refused, StoreConflict

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

T = TypeVar("T")

NODES_OF_TOPIC = 3
"""Beside those of its partitions."""


def states_max(broker: "Broker") -> int:
    """How many partitions of a new topic are made at once. The controller makes the rest."""
    return STATES_MAX if broker.clustered else PARTITIONS_MAX


def portions(broker: "Broker", topics: Iterable[T], partitions: Callable[[T], int]) -> list[list[T]]:
    """Topics that are changed together, given how many partitions of each are changed; at least one portion."""
    if not broker.clustered:
        return [list(topics)]
    groups: list[list[T]] = [[]]
    size = 0
    for topic in topics:
        nodes = min(partitions(topic), STATES_MAX) + NODES_OF_TOPIC
        if groups[-1] and size + nodes > STATES_MAX:
            groups.append([])
            size = 0
        groups[-1].append(topic)
        size += nodes
    return groups


def next_portion(size: int, refusal: Refused | None) -> int:
    """How many partitions to change at once, after *size* of them were, or were not.

    What others change meanwhile is known after a few attempts. If it fails even then something else is in the way of
    one of them, perhaps a node that a person has deleted: by and by it is alone.
    """
    if refusal is None:
        return min(2 * size, STATES_MAX)
    return max(size // 2, 1) if isinstance(refusal.__cause__, StoreConflict) else size


def patient_until(broker: "Broker", timeout_ms: int) -> int:
    """How long a request waits for a metadata store that is away.

    Not longer than its client does; one that names no time at all does not mean that it will not wait.
    """
    return broker.now.mono_ms + (min(timeout_ms, PATIENCE_MS) if timeout_ms > 0 else PATIENCE_MS)


def propose_in_turn(
    broker: "Broker",
    plans: Sequence[Plan],
    done: Callable[[list[Refused | None]], None],
    *,
    until_ms: int = 0,
    in_doubt: Callable[[int], None] = lambda number: None,
) -> None:
    """Propose one after the other, each planned when those before it are in the image; *done* gets all outcomes.

    Args:
        until_ms: how long to wait for a store that is away.
        in_doubt: called with the number of a plan of which nobody knows what became, before it is made again.
    """
    patience = [Patience(until_ms, partial(in_doubt, number)) for number in range(len(plans))]
    _InTurn(broker, plans, patience, done).propose()


class _InTurn:
    """Proposals of which one is under way. Not inner functions: these would refer to each other for ever."""

    __slots__ = ("_broker", "_done", "_outcomes", "_patience", "_plans")

    def __init__(
        self,
        broker: "Broker",
        plans: Sequence[Plan],
        patience: Sequence[Patience],
        done: Callable[[list[Refused | None]], None],
    ) -> None:
        self._broker = broker
        self._plans = plans
        self._patience = patience
        self._done = done
        self._outcomes: list[Refused | None] = []

    def propose(self) -> None:
        if len(self._outcomes) == len(self._plans):
            self._done(self._outcomes)
        else:
            number = len(self._outcomes)
            self._broker.propose(self._plans[number], self._proceed, self._patience[number])

    def _proceed(self, outcome: Refused | None) -> None:
        self._outcomes.append(outcome)
        self.propose()
