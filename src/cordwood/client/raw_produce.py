"""Record batches to partitions by Produce: sent to all leaders at once, and again if a retry may help.

A batch with a producer id and a sequence number is stored once, however often it is sent. The caller assigns sequence
numbers, and must send a partition's batches one after the other.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress

from cordwood.errors import Error, ProtocolError
from cordwood.ports import Buffer
from cordwood.record.batch import ATTRIBUTES_AT, CRC_AT, checksum
from cordwood.wire.messages.produce_fetch import (
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
    ProduceResponsePartition,
)
from cordwood.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

from .raw_cluster import Cluster, raise_for
from .raw_connection import Connection
from .raw_errors import ConnectionLost, RequestRefused, Retry, UnknownTopic, error_of

BY_NAME_MAX = 12
_PRODUCER_AT, _SEQUENCE_END = 43, 57
ALREADY_THERE = -1
"""The base offset of a batch that was stored so long ago that the broker has forgotten where."""


def producer_id(cluster: Cluster) -> tuple[int, int]:
    """A new producer id and its epoch. Not retried."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answer = cluster.any_connection().ask(request, InitProducerIdResponse)
    raise_for("no producer id was given", answer.error_code)
    return answer.producer_id, answer.producer_epoch


class Producing:
    """The batches of one call: those that have been stored, and those that have not yet."""

    def __init__(
        self, cluster: Cluster, topic: str, batches: Mapping[int, Buffer], *, acks: int, timeout_ms: int
    ) -> None:
        assert acks in (-1, 1), "a batch that nobody confirms cannot be retried"
        self._cluster = cluster
        self._topic = topic
        self._left = dict(batches)
        self._acks = acks
        self._timeout_ms = timeout_ms
        self.base_offsets: dict[int, int] = {}

    def attempt(self) -> dict[int, int]:
        """Send what is not stored yet. Raises like ``raise_for`` if some of it still is not."""
        if not self._left:
            return self.base_offsets
        topic = self._cluster.topic(self._topic)
        at_most = None if topic.id.int else BY_NAME_MAX
        answers = self._cluster.ask_each(self.requests(), ProduceResponse, at_most=at_most)
        self.take(answers.values())
        return self.base_offsets

    def requests(self) -> dict[int, object]:
        """The request to send to each leader for what is not stored yet."""
        leaders = self._cluster.by_leader([(self._topic, partition) for partition in self._left])
        return {node: self._request([partition for _, partition in here]) for node, here in leaders.items()}

    def _request(self, partitions: list[int]) -> ProduceRequest:
        topic = self._cluster.topic(self._topic)
        entries = [ProduceRequestPartition(index=number, records=self._left[number]) for number in partitions]
        return ProduceRequest(
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[ProduceRequestTopic(name=topic.name, topic_id=topic.id, partition_data=entries)],
        )

    def take(self, answers: Iterable[ProduceResponse]) -> None:
        """Note what has been stored, answer by answer. Raises like ``raise_for`` if some of it has not."""
        parts = (part for answer in answers for topic in answer.responses for part in topic.partition_responses)
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

    def forget_producers(self) -> None:
        """Remove the producer id from the remaining batches, so that they are stored whatever came before them."""
        for partition, data in self._left.items():
            batch = bytearray(data)
            batch[_PRODUCER_AT:_SEQUENCE_END] = b"\xff" * (_SEQUENCE_END - _PRODUCER_AT)
            batch[CRC_AT:ATTRIBUTES_AT] = checksum(batch).to_bytes(4, "big")
            self._left[partition] = batch

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


class Publisher:
    """Sends many batches with several requests in flight, so that neither side waits for the other.

    When something goes wrong, everything not known to be stored is sent again, in order and one by one. Batches with
    sequence numbers are still stored only once: brokers remember the last five of each partition, hence the limit on
    requests in flight.
    """

    UNDER_WAY_MAX = 5

    def __init__(self, cluster: Cluster, topic: str, *, acks: int, timeout_ms: int, under_way: int) -> None:
        assert 1 <= under_way <= self.UNDER_WAY_MAX
        self._cluster = cluster
        self._topic = topic
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._under_way_max = under_way
        self._rounds: deque[tuple[Producing, deque[Connection]]] = deque()
        """Each with the connections on which its answers are still to come."""

    def check(self) -> None:
        assert len(self._rounds) <= self._under_way_max, "no more is under way than is allowed"

    def send(self, batches: Mapping[int, Buffer]) -> None:
        """Send one batch to each of several partitions. They must not change until ``flush`` returns."""
        while len(self._rounds) >= self._under_way_max:
            self._settle_oldest()
        producing = Producing(self._cluster, self._topic, batches, acks=self._acks, timeout_ms=self._timeout_ms)
        connections: deque[Connection] = deque()
        self._rounds.append((producing, connections))
        try:
            self._send(producing, connections)
        except (ConnectionLost, Retry, UnknownTopic):
            self._start_over()

    def flush(self) -> None:
        """Return when everything has been stored.

        Raises:
            RawError: something could not be stored.
        """
        while self._rounds:
            self._settle_oldest()

    def _send(self, producing: Producing, connections: deque[Connection]) -> None:
        at_most = None if self._cluster.topic(self._topic).id.int else BY_NAME_MAX
        for node, request in producing.requests().items():
            connection = self._cluster.connection(node, shared=True)
            connection.send(request, version=connection.version(ProduceRequest, at_most=at_most))
            connections.append(connection)

    def _settle_oldest(self) -> None:
        producing, connections = self._rounds[0]
        try:
            producing.take(connections.popleft().receive(ProduceResponse) for _ in range(len(connections)))
            self._rounds.popleft()
        except (ConnectionLost, Retry, UnknownTopic):
            self._start_over()
        except RequestRefused as refusal:
            # This batch was stored by a leader that is gone, or an earlier batch was not stored: the error does not
            # tell which.
            if refusal.error is not Error.OUT_OF_ORDER_SEQUENCE_NUMBER or len(self._rounds) == 1:
                raise
            self._start_over()

    def _start_over(self) -> None:
        """Receive the answers that are still to come, then send again what has none, and wait for each.

        Each answer is received exactly once: otherwise a round would take the next round's answer for its own.
        """
        used = {connection for _, connections in self._rounds for connection in connections}
        for producing, connections in self._rounds:
            while connections:
                with suppress(ConnectionLost, Retry, UnknownTopic, RequestRefused):
                    producing.take([connections.popleft().receive(ProduceResponse)])
        for connection in used:
            connection.close()
        while self._rounds:
            self._send_again(self._rounds[0][0])
            self._rounds.popleft()

    def _send_again(self, producing: Producing) -> None:
        what = f"{self._topic} cannot be written to"
        try:
            self._cluster.retrying(what, producing.attempt)
        except RequestRefused as refusal:
            if refusal.error is not Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            # A restarted broker remembers only a producer's last batch. This one was either stored before that, or
            # lost; nobody can tell. Storing it twice is better than not at all.
            producing.forget_producers()
            self._cluster.retrying(what, producing.attempt)
