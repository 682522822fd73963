"""Where leaders store their partitions, by DescribeLogDirs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cordwood.wire.messages.topics import DescribeLogDirsRequest, DescribeLogDirsRequestTopic, DescribeLogDirsResponse

from .raw_cluster import Cluster

Partition = tuple[str, int]


class LogDir(NamedTuple):
    """Where a partition's leader stores it: ``path`` is one of that broker's log directories, on its machine."""

    node_id: int
    path: str


def log_dirs(cluster: Cluster, wanted: Sequence[Partition]) -> dict[Partition, LogDir]:
    """The log directories of these partitions, as far as brokers tell them. Not retried."""
    leaders = cluster.by_leader(wanted)
    requests: dict[int, object] = {node: _request(here) for node, here in leaders.items()}
    answers = cluster.ask_each(requests, DescribeLogDirsResponse)
    found: dict[Partition, LogDir] = {}
    for node, answer in answers.items():
        found.update(_places(node, answer))
    return {partition: found[partition] for partition in wanted if partition in found}


def _request(partitions: Iterable[Partition]) -> DescribeLogDirsRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return DescribeLogDirsRequest(
        topics=[DescribeLogDirsRequestTopic(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
    )


def _places(node: int, answer: DescribeLogDirsResponse) -> dict[Partition, LogDir]:
    return {
        (topic.name, part.partition_index): LogDir(node, directory.log_dir)
        for directory in answer.results
        if not directory.error_code and directory.log_dir
        for topic in directory.topics
        for part in topic.partitions
        if not part.is_future_key
    }
