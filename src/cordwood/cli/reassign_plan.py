"""Which brokers should have the replicas of a topic's partitions. Pure.

No rack has more replicas of a partition than it must. Apart from that, as little as possible is moved: a replica stays
where it can, unless its broker would have more than its share. A broker that leads the most partitions gives first
places to other replicas, so that leaders are spread, too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from cordwood.cluster.placement import add_replicas

Brokers = tuple[int, ...]


def plan(
    current: Mapping[int, Sequence[int]], brokers: Sequence[int], replicas: int, racks: Mapping[int, str] | None = None
) -> dict[int, Brokers]:
    """New replicas for each partition, *replicas* of each, on these brokers alone; the preferred leader comes first.

    Brokers without a rack together count as one rack, as they do for new topics.

    >>> plan({0: (1, 2), 1: (2, 1)}, [2, 3], 2)
    {0: (3, 2), 1: (2, 3)}
    >>> plan({0: (1, 2)}, [1, 2, 3], 2, {1: "a", 2: "a", 3: "b"})
    {0: (1, 3)}
    """
    assert 0 < replicas <= len(set(brokers)), "a broker cannot have two replicas of a partition"
    there = {broker: racks[broker] for broker in brokers if racks and broker in racks}
    several = len({there.get(broker) for broker in brokers}) > 1
    return _Plan(brokers, there if several else {}).make(current, replicas)


class _Plan:
    """Replicas while they are being chosen: how many each broker has, and which rack it is in."""

    def __init__(self, brokers: Sequence[int], racks: Mapping[int, str]) -> None:
        self._brokers = brokers
        self._racks = racks
        self._load = Counter(dict.fromkeys(brokers, 0))

    def make(self, current: Mapping[int, Sequence[int]], replicas: int) -> dict[int, Brokers]:
        found = {p: self._kept(old, replicas) for p, old in sorted(current.items())}
        self._load.update(broker for mine in found.values() for broker in mine)
        for mine in found.values():
            kept = len(mine)
            add_replicas(mine, self._others(mine), self._racks, replicas)
            self._load.update(mine[kept:])
            while self._spread_over_racks(mine):
                pass
        while self._evened(found):
            pass
        _spread_leaders(found, self._brokers)
        return {partition: tuple(mine) for partition, mine in found.items()}

    def _kept(self, old: Sequence[int], replicas: int) -> list[int]:
        """The replicas that may stay; if there are too many, the last ones in the fullest rack go first."""
        mine = [broker for broker in old if broker in self._brokers]
        while len(mine) > replicas:
            used = self._used(mine)
            most = max(used.values())
            mine.remove(next(broker for broker in reversed(mine) if used[self._racks.get(broker)] == most))
        return mine

    def _used(self, mine: Sequence[int]) -> Counter[str | None]:
        """How many replicas each rack has."""
        return Counter(self._racks.get(broker) for broker in mine)

    def _others(self, mine: Sequence[int]) -> list[int]:
        """The brokers that do not have the partition, those with the fewest replicas first."""
        return sorted((b for b in self._brokers if b not in mine), key=lambda broker: self._load[broker])

    def _move(self, mine: list[int], old: int, new: int) -> None:
        mine[mine.index(old)] = new
        self._load[old] -= 1
        self._load[new] += 1

    def _spread_over_racks(self, mine: list[int]) -> bool:
        """Move one replica from the fullest rack to another; False if they are as even as they can be."""
        used = self._used(mine)
        new = min(self._others(mine), key=lambda broker: used[self._racks.get(broker)], default=None)
        if new is None or max(used.values()) - used[self._racks.get(new)] < 2:
            return False
        old = next(broker for broker in reversed(mine) if used[self._racks.get(broker)] == max(used.values()))
        self._move(mine, old, new)
        return True

    def _evened(self, found: Mapping[int, list[int]]) -> bool:
        """Move one replica from a broker that has many to one that has fewer; False if they are even.

        If racks have different numbers of brokers, that is reached sooner than if there were no racks.
        """
        least_first = sorted(self._load, key=lambda broker: self._load[broker])
        for most, least in product(reversed(least_first), least_first):
            if self._load[most] - self._load[least] < 2:
                continue
            for mine in found.values():
                if most in mine and least not in mine and self._is_as_even(mine, most, least):
                    self._move(mine, most, least)
                    return True
        return False

    def _is_as_even(self, mine: Sequence[int], old: int, new: int) -> bool:
        """Would a partition's racks be as even with *new* in place of *old*?"""
        before, after = self._racks.get(old), self._racks.get(new)
        used = self._used(mine)
        return before == after or used[after] < used[before]


def _spread_leaders(found: Mapping[int, list[int]], brokers: Sequence[int]) -> None:
    leads = Counter(dict.fromkeys(brokers, 0))
    leads.update(mine[0] for mine in found.values())
    for mine in found.values():
        idlest = min(mine, key=lambda broker: (leads[broker], mine.index(broker)))
        if leads[idlest] + 1 < leads[mine[0]]:
            leads[mine[0]] -= 1
            leads[idlest] += 1
            mine.remove(idlest)
            mine.insert(0, idlest)
