"""Record batches to partitions by Produce: sent to all leaders at once, sent again where that may help.

A batch that carries a producer id and a sequence number is stored once however often it is sent. Sequence numbers are
the caller's; so is the rule that a partition's batches go one after the other.
"""

from collections.abc import Mapping

from cordwood.errors import Error, ProtocolError
from cordwood.ports import Buffer
from cordwood.wire.messages import (
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
)

from .raw_cluster import Cluster, raise_for
from .raw_errors import Retry, error_of

BY_NAME_MAX = 12
ALREADY_THERE = -1
"""The base offset of a batch that was stored before, so long ago that the broker has forgotten where."""


class Producing:
    """One call's batches: those that are stored, and those that are not yet."""

    def __init__(
        self, cluster: Cluster, topic: str, batches: Mapping[int, Buffer], *, acks: int, timeout_ms: int
    ) -> None:
        assert acks in (-1, 1), "a batch that nobody confirms can not be retried"
        self._cluster = cluster
        self._topic = topic
        self._left = dict(batches)
        self._acks = acks
        self._timeout_ms = timeout_ms
        self.base_offsets: dict[int, int] = {}

    def attempt(self) -> dict[int, int]:
        """Send what is not stored yet. Raises as ``raise_for`` does if some of it still is not."""
        leaders = self._cluster.by_leader([(self._topic, partition) for partition in self._left])
        topic = self._cluster.topic(self._topic)
        requests: dict[int, object] = {
            node: ProduceRequest(
                acks=self._acks,
                timeout_ms=self._timeout_ms,
                topic_data=[
                    ProduceRequestTopic(
                        name=topic.name,
                        topic_id=topic.id,
                        partition_data=[
                            ProduceRequestPartition(index=partition, records=self._left[partition])
                            for _, partition in partitions
                        ],
                    )
                ],
            )
            for node, partitions in leaders.items()
        }
        answers = self._cluster.ask_each(requests, ProduceResponse, at_most=None if topic.id.int else BY_NAME_MAX)
        parts = [
            part for answer in answers.values() for entry in answer.responses for part in entry.partition_responses
        ]
        self._take(parts)
        return self.base_offsets

    def _take(self, parts: list[ProduceResponsePartition]) -> None:
        trouble: Exception | None = None
        for part in parts:
            if part.index not in self._left:
                raise ProtocolError(f"{self._topic}-{part.index} was answered for, and not asked about")
            try:
                self._take_one(part)
            except Retry as reason:
                trouble = trouble or reason
        if trouble is not None:
            raise trouble
        if self._left:
            raise Retry(f"{self._topic}: some partitions were not answered for", Error.NETWORK_EXCEPTION)

    def _take_one(self, part: ProduceResponsePartition) -> None:
        what = f"{self._topic}-{part.index} did not take a batch of {len(self._left[part.index])} bytes"
        if error_of(part.error_code) is Error.DUPLICATE_SEQUENCE_NUMBER:
            part.base_offset = ALREADY_THERE
        elif error_of(part.error_code) is Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise Retry(what, Error.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            raise_for(what, part.error_code, part.error_message)
        del self._left[part.index]
        self.base_offsets[part.index] = part.base_offset
