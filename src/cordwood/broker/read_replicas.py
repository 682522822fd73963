"""Where a consumer reads best: a replica in its own rack saves traffic between racks (KIP-392)."""

from typing import TYPE_CHECKING

from cordwood.ids import NodeId
from cordwood.partition.partition import Partition

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def nearest_replica(broker: "Broker", partition: Partition, offset: int, rack: str) -> NodeId | None:
    """The furthest follower in this rack that has *offset*; None if the leader should serve the reader itself.

    Only in-sync replicas are considered: one that lags would hold its readers back.
    """
    if broker.config.replica_selector_class is None or partition.leader != broker.node:
        return None
    brokers = broker.image.brokers
    own = brokers.get(broker.node)
    if own is not None and own.rack == rack:
        return None
    best: tuple[int, int] | None = None
    for node, follower in partition.followers.items():
        registration = brokers.get(node)
        if registration is None or registration.rack != rack or node not in partition.isr:
            continue
        if follower.start_offset <= offset <= follower.end_offset:
            best = max(best or (-1, -1), (follower.end_offset, -node))
    return NodeId(-best[1]) if best is not None else None
