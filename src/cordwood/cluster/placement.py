"""Which brokers hold which partition."""

from collections.abc import Sequence

from cordwood.ids import NodeId


def place(brokers: Sequence[NodeId], *, partitions: int, replicas: int, start: int) -> list[tuple[NodeId, ...]]:
    """Spread *partitions* evenly, beginning at broker number *start*.

    First replicas go round the brokers; the followers of each partition start at a distance that grows by one with
    every full round, so that a lost broker's leaders are not all taken over by the same neighbour.

    >>> place([1, 2, 3], partitions=4, replicas=2, start=0)
    [(1, 2), (2, 3), (3, 1), (1, 3)]
    """
    count = len(brokers)
    assert 0 < replicas <= count
    placed = []
    for partition in range(partitions):
        first = start + partition
        gap = partition // count
        others = (first + 1 + (gap + follower) % (count - 1) for follower in range(replicas - 1))
        placed.append(tuple(brokers[number % count] for number in (first, *others)))
    return placed
