"""Large changes, a portion at a time: a metadata store that brokers share takes only so much at once.

A broker on its own has no such limit, and does everything in one write.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from cordwood.broker.connection import Call
from cordwood.broker.proposals import IMPATIENT, PATIENCE_MS, Patience
from cordwood.cluster.controller import PARTITIONS_MAX
from cordwood.cluster.states import STATES_MAX
from cordwood.errors import Error, PerhapsDone, Refused, StoreConflict
from cordwood.ports import StoreOp

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

T = TypeVar("T")

NODES_OF_TOPIC = 3
"""In addition to those of its partitions."""


def states_max(broker: "Broker") -> int:
    """How many partitions of a new topic are created at once. The controller creates the rest."""
    return STATES_MAX if broker.clustered else PARTITIONS_MAX


def portions(broker: "Broker", topics: Iterable[T], partitions: Callable[[T], int]) -> list[list[T]]:
    """Topics that are changed together, given how many of their partitions are changed; at least one portion."""
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
    """How many partitions to change at once, after the change of *size* of them succeeded or failed.

    Conflicts with other changes are resolved in a few attempts. If it still fails, something else is wrong with one of
    them, perhaps a node that a person has deleted: halving the portion isolates that one in the end.
    """
    if refusal is None:
        return min(2 * size, STATES_MAX)
    return max(size // 2, 1) if isinstance(refusal.__cause__, StoreConflict) else size


def patience_of(broker: "Broker", call: Call, timeout_ms: int = 0) -> Patience:
    """How long a request waits for a metadata store that is away, and for one that is slow to answer.

    Not longer than its client does; but a client that gives no timeout does not mean that it will not wait.
    """
    now_ms = broker.now.mono_ms
    wait_ms = min(timeout_ms, PATIENCE_MS) if timeout_ms > 0 else PATIENCE_MS
    return Patience(now_ms + wait_ms, call.connection, answer_until_ms=now_ms + timeout_ms)


def propose_in_turn(
    broker: "Broker",
    divide: Callable[[], Sequence[T]],
    plan: Callable[[T], Sequence[StoreOp]],
    done: Callable[[list[tuple[T, Refused | None]]], None],
    patience: Patience = IMPATIENT,
) -> None:
    """Propose one portion after the other, each planned when those before it are in the image.

    Args:
        divide: called once there is metadata to plan with; returns the portions.
        plan: not called for a portion if the patience has run out by then.
        done: gets all portions with their outcomes.
    """
    _InTurn(broker, divide, plan, done, patience).begin()


class _InTurn(Generic[T]):
    """Portions, one of them in flight. This is a class, since inner functions would keep each other alive for ever."""

    def __init__(
        self,
        broker: "Broker",
        divide: Callable[[], Sequence[T]],
        plan: Callable[[T], Sequence[StoreOp]],
        done: Callable[[list[tuple[T, Refused | None]]], None],
        patience: Patience,
    ) -> None:
        self._broker = broker
        self._divide = divide
        self._plan = plan
        self._done = done
        self._patience = patience
        self._portions: Sequence[T] = ()
        self._outcomes: list[Refused | None] = []
        self._changes = False
        """Did the last plan contain any operation?"""
        self._touched = False
        """Has something been changed, or may it have been?"""
        self._under_way = self._proposing = False

    def begin(self) -> None:
        """Even dividing needs metadata that is up to date: proposing nothing is a way to wait for that."""
        self._broker.propose(tuple, self._begun, self._patience)

    def _begun(self, refusal: Refused | None) -> None:
        self._portions = self._divide()
        if refusal is not None:
            self._outcomes = [refusal] * len(self._portions)
        self._propose()

    def _propose(self) -> None:
        if self._proposing:
            return  # a portion with nothing to do was done at once, below
        self._proposing = True
        while not self._under_way and len(self._outcomes) < len(self._portions):
            self._under_way = True
            self._broker.propose(self._plan_next, self._proceed, self._patience)
        self._proposing = False
        if not self._under_way:
            self._finish()

    def _plan_next(self) -> Sequence[StoreOp]:
        operations = self._plan(self._portions[len(self._outcomes)])
        self._changes = bool(operations)
        return operations

    def _proceed(self, outcome: Refused | None) -> None:
        self._touched |= (outcome is None and self._changes) or is_in_doubt(outcome)
        self._outcomes.append(outcome)
        self._under_way = False
        self._propose()

    def _finish(self) -> None:
        outcomes = [_after_others(outcome) if self._touched else outcome for outcome in self._outcomes]
        self._done(list(zip(self._portions, outcomes, strict=True)))


def is_in_doubt(outcome: Refused | None) -> bool:
    return outcome is not None and isinstance(outcome.__cause__, PerhapsDone)


def _after_others(outcome: Refused | None) -> Refused | None:
    """What a portion's outcome becomes in an answer about others that were done, or may have been.

    If Java's client finds a single NOT_CONTROLLER in the answer, it sends the whole request again, and would be told
    that a topic exists which it has just created. This code it leaves to the application.
    """
    if outcome is None or outcome.error is not Error.NOT_CONTROLLER:
        return outcome
    refusal = Refused(
        Error.NETWORK_EXCEPTION, f"This was not done, while others of the request may have been. {outcome.message}"
    )
    refusal.__cause__ = outcome.__cause__
    return refusal
