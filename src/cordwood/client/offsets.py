"""Where partitions begin and end, and the offset for a given time."""

from collections.abc import Iterable

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from .connect import ANSWER_TIMEOUT_S, error_of

Partition = tuple[str, int]
"""A topic's name and the partition's number."""


def list_offsets(admin: AdminClient, partitions: Iterable[Partition], spec: OffsetSpec) -> dict[Partition, int]:
    """The wanted offsets of those partitions that have a leader to ask; -1 for a time after the last record."""
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    if not asked:
        return {}
    futures = admin.list_offsets(asked, request_timeout=ANSWER_TIMEOUT_S)
    return {(tp.topic, tp.partition): f.result().offset for tp, f in futures.items() if error_of(f) is None}
