"""Where brokers keep partitions: the planner asks for that, and tasks may be able to see the files."""

from typing import NamedTuple
from uuid import UUID

from cordwood.client.raw import RawClient


class DirectHint(NamedTuple):
    """Where the files of a partition should be, and whose they must be to be trusted."""

    log_dir: str
    node_id: int
    cluster_id: str
    topic_id: UUID


def direct_hints(client: RawClient, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], DirectHint]:
    """Where the leaders of these partitions keep them. For the planner; each task finds out whether it can see them."""
    cluster_id = client.cluster_id
    topics = client.topics(sorted({topic for topic, _ in partitions}))
    places = client.log_dirs([p for p in partitions if p[0] in topics and p[1] in topics[p[0]].partitions])
    return {
        (topic, number): DirectHint(place.path, place.node_id, cluster_id, topics[topic].id)
        for (topic, number), place in places.items()
    }
