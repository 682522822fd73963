"""The states of a classic group, and which may follow which.

- *Empty*: no members. The group is kept as long as it has offsets; groups that only commit are always in this state.
- *PreparingRebalance*: a new generation is forming. Joins are parked until all members have joined, or time is up.
- *CompletingRebalance*: the generation is known, and its leader works out the assignments. Syncs are parked.
- *Stable*: all members can get their assignments.
- *Dead*: deleted, or coordinated elsewhere.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """The values are the names that Kafka's tools show."""

    __hash__ = object.__hash__  # there is one object for each; the default hashes its name, in Python

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


FOLLOWING: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset(),
}
