"""Sharing among members that all subscribe to the same topics: loads differ by at most one, with the fewest moves.

Each member's share is the quotient, and the remainder is given out one partition per member. No assignment moves fewer
partitions than this one: a member keeps all it has up to its share, and those that have more than the quotient come
first for the remainder. Free partitions are dealt in order of topic and partition, so that in a new group, members get
runs of them.
"""

from collections.abc import Mapping
from uuid import UUID

from .claims import Owned, claim
from .spec import Assignment, GroupSpec, in_order


def share_equally(spec: GroupSpec, subscribed: Mapping[str, frozenset[UUID]]) -> Assignment:
    """Shares for the members of ``subscribed``, whose subscriptions are equal."""
    if not subscribed:
        return {}
    owned, free = claim(spec, subscribed)
    loads = {member_id: sum(map(len, mine.values())) for member_id, mine in owned.items()}
    shares = _shares(loads, sum(spec.partitions[topic] for topic in free))
    for member_id, load in loads.items():
        if load > shares[member_id]:
            _give_up(owned[member_id], free, load - shares[member_id])
    deck = _Deck(free)
    for member_id, load in loads.items():
        if load < shares[member_id]:
            deck.deal(owned[member_id], shares[member_id] - load)
    deck.check_empty()
    return {member_id: {topic: mine[topic] for topic in in_order(mine)} for member_id, mine in owned.items()}


def _shares(loads: Mapping[str, int], partitions: int) -> dict[str, int]:
    """How many partitions each member should have."""
    share, remainder = divmod(partitions, len(loads))
    # False sorts before True, and sorting is stable.
    first = sorted(loads, key=lambda member_id: loads[member_id] <= share)[:remainder]
    return dict.fromkeys(loads, share) | dict.fromkeys(first, share + 1)


def _give_up(mine: Owned, free: dict[UUID, set[int]], surplus: int) -> None:
    """Free the member's last partitions."""
    for topic in reversed(in_order(mine)):
        partitions = sorted(mine[topic])
        kept, given = partitions[: max(0, len(partitions) - surplus)], partitions[-surplus:]
        free[topic].update(given)
        if kept:
            mine[topic] = frozenset(kept)
        else:
            del mine[topic]
        surplus -= len(given)
        if not surplus:
            return
    assert not surplus, "a member can give up what it has"


class _Deck:
    """Free partitions in order of topic and partition, to be dealt from the start."""

    __slots__ = ("_position", "_runs")

    def __init__(self, free: dict[UUID, set[int]]) -> None:
        # The next run is at the end, and slices are taken from _position on: nothing is ever shifted.
        self._runs = [(topic, sorted(free[topic])) for topic in reversed(in_order(free)) if free[topic]]
        self._position = 0

    def deal(self, mine: Owned, missing: int) -> None:
        """Give the member as many partitions as it lacks."""
        while missing:
            topic, partitions = self._runs[-1]
            dealt = partitions[self._position : self._position + missing]
            mine[topic] = mine.get(topic, frozenset()).union(dealt)
            missing -= len(dealt)
            self._position += len(dealt)
            if self._position == len(partitions):
                self._runs.pop()
                self._position = 0

    def check_empty(self) -> None:
        """Assert that everything was dealt."""
        assert not self._runs, "shares add up to all partitions"
