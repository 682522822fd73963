"""Which brokers hold which partition: each gets an equal share, and with several racks none gets all replicas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cordwood.cluster.image import MetadataImage
from cordwood.cluster.states import Live
from cordwood.ids import NodeId

N = TypeVar("N", bound=int)


@dataclass(frozen=True, slots=True)
class Sites:
    """Where replicas can be."""

    brokers: Sequence[NodeId]
    """The brokers that may lead."""
    spare: Sequence[NodeId] = ()
    """Those that are not there now, or not for long. They get a replica only if there are not enough others."""
    racks: Mapping[NodeId, str] = field(default_factory=dict)
    """Brokers without a rack together count as one rack, as in Kafka."""

    @classmethod
    def of(cls, image: MetadataImage) -> "Sites":
        able = Live.of(image).able
        racks = {node: r.rack for node, r in sorted(image.brokers.items()) if r.rack is not None}
        return cls(sorted(able), sorted(image.incarnations.keys() - able), racks)

    def __len__(self) -> int:
        return len(self.brokers) + len(self.spare)


def place(sites: Sites, *, partitions: int, replicas: int, start: int) -> list[tuple[NodeId, ...]]:
    """Spread *partitions* evenly, beginning at broker number *start*.

    First replicas go round the brokers; the followers of each partition start at a distance that grows by one with
    every full round, so that a lost broker's leaderships are not all taken over by the same neighbour. As followers,
    brokers in the rack with the fewest of the partition's replicas come first.

    >>> place(Sites([1, 2, 3]), partitions=4, replicas=2, start=0)
    [(1, 2), (2, 3), (3, 1), (1, 3)]
    >>> place(Sites([1, 2, 3, 4], racks={1: "a", 2: "a", 3: "b", 4: "b"}), partitions=2, replicas=2, start=0)
    [(1, 3), (3, 2)]
    """
    assert 0 < replicas <= len(sites)
    ring = _interleaved(sites)
    count, racks = len(ring), len({sites.racks.get(node) for node in ring})
    placed = []
    for partition in range(partitions):
        first = start + partition
        gap = partition // count
        others = [ring[(first + 1 + (gap + follower) % (count - 1)) % count] for follower in range(count - 1)]
        chosen = [ring[first % count]]
        add_replicas(chosen, others, sites.racks if racks > 1 else {}, replicas)
        chosen += (sites.spare[(partition + n) % len(sites.spare)] for n in range(replicas - len(chosen)))
        placed.append(tuple(chosen))
    return placed


def _interleaved(sites: Sites) -> list[NodeId]:
    """The brokers, each followed by one of another rack as long as there is one."""
    racks: dict[str | None, list[NodeId]] = {}
    for node in sites.brokers:
        racks.setdefault(sites.racks.get(node), []).append(node)
    ring = []
    for turn in range(max(map(len, racks.values()))):
        ring += [nodes[turn] for nodes in racks.values() if turn < len(nodes)]
    return ring


def add_replicas(chosen: list[N], others: list[N], racks: Mapping[N, str], replicas: int) -> None:
    """Add to the chosen replicas, until there are enough or no broker is left.

    Brokers in the rack with the fewest chosen replicas come first, and of these the first in order.
    """
    if not racks:
        chosen += others[: max(replicas - len(chosen), 0)]
        return
    used = Counter(racks.get(node) for node in chosen)
    while others and len(chosen) < replicas:
        node = min(others, key=lambda other: used[racks.get(other)])
        others.remove(node)
        chosen.append(node)
        used[racks.get(node)] += 1
