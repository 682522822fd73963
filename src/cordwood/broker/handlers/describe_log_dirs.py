"""DescribeLogDirs (35), versions 1-5: how much disk space each partition takes, and how full the disk is.

- 3: a top-level error code; 4: the size of the volume and its free space; 5: whether the directory is cordoned.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.errors import Error, StorageError
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDir,
    DescribeLogDirsResponsePartition,
    DescribeLogDirsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = _wanted(broker, request)
    try:
        total, free = broker.replicas.directory.usage()
    except StorageError as error:
        broker.logger.error("the data directory cannot be looked at: %s", error)
        failed = DescribeLogDirsResponseDir(
            log_dir=broker.replicas.directory_name, error_code=Error.KAFKA_STORAGE_ERROR
        )
        return DescribeLogDirsResponse(results=[failed])
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResponseDir(
                log_dir=broker.replicas.directory_name,
                topics=[_topic(broker, name, indexes) for name, indexes in sorted(wanted.items())],
                total_bytes=total,
                usable_bytes=free,
            )
        ]
    )


def _wanted(broker: "Broker", request: DescribeLogDirsRequest) -> dict[TopicName, list[int]]:
    """The requested partitions that are here; null asks for all."""
    here = broker.replicas.by_name
    if request.topics is None:
        return {name: sorted(partitions) for name, partitions in here.items()}
    asked: dict[TopicName, set[int]] = {}
    for topic in request.topics:  # a topic may be named twice
        asked.setdefault(TopicName(topic.topic), set()).update(topic.partitions)
    return {name: sorted(here[name].keys() & indexes) for name, indexes in asked.items() if name in here}


def _topic(broker: "Broker", name: TopicName, indexes: list[int]) -> DescribeLogDirsResponseTopic:
    partitions = broker.replicas.by_name[name]
    return DescribeLogDirsResponseTopic(
        name=name,
        partitions=[
            DescribeLogDirsResponsePartition(partition_index=index, partition_size=partitions[index].log.size)
            for index in indexes
        ],
    )
