"""Which brokers shall have the replicas of a topic's partitions. Pure.

As little as possible is moved: a replica stays where it may stay, unless its broker would have more than its share.
Whoever leads most gives the first place of a partition to another of its replicas, so that leaders are spread too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

Brokers = tuple[int, ...]


def plan(current: Mapping[int, Sequence[int]], brokers: Sequence[int], replicas: int) -> dict[int, Brokers]:
    """New replicas for each partition, so many of each, on these brokers alone; the preferred leader comes first.

    >>> plan({0: (1, 2), 1: (2, 1)}, [2, 3], 2)
    {0: (3, 2), 1: (2, 3)}
    """
    assert 0 < replicas <= len(set(brokers)), "a broker can not have two replicas of a partition"
    found = {p: [broker for broker in old if broker in brokers][:replicas] for p, old in sorted(current.items())}
    load = Counter(dict.fromkeys(brokers, 0))
    load.update(broker for mine in found.values() for broker in mine)
    for mine in found.values():
        while len(mine) < replicas:
            mine.append(min((b for b in brokers if b not in mine), key=lambda broker: load[broker]))
            load[mine[-1]] += 1
    while _evened(found, load):
        pass
    _spread_leaders(found, brokers)
    return {partition: tuple(mine) for partition, mine in found.items()}


def _evened(found: Mapping[int, list[int]], load: Counter[int]) -> bool:
    """Take one replica from the broker that has most to the one that has least; False if they are even."""
    most, least = max(load, key=lambda broker: load[broker]), min(load, key=lambda broker: load[broker])
    if load[most] - load[least] < 2:
        return False
    mine = next(mine for mine in found.values() if most in mine and least not in mine)
    mine[mine.index(most)] = least
    load[most] -= 1
    load[least] += 1
    return True


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
