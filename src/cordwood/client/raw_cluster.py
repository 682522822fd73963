"""A cluster as the raw client sees it: its brokers, who leads what, one connection to each broker, and retries.

Whatever fails for a reason that may go away is tried again, with new metadata, until it works or the time is up. The
error then names the last reason.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

from cordwood.errors import Error, ProtocolError
from cordwood.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

from .raw_connection import Address, Connection
from .raw_errors import (
    ConnectionLost,
    RawError,
    RequestRefused,
    Retry,
    Unavailable,
    UnknownTopic,
    error_of,
)
from .raw_settings import RawSettings, Security, addresses

if TYPE_CHECKING:
    from ssl import SSLContext

T = TypeVar("T")

NO_LEADER = -1
_BACKOFF_MAX_S = 1.0
_GONE_CODES = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)


class PartitionMeta(NamedTuple):
    """A partition's leader: a broker id, or -1 while there is none."""

    leader: int
    leader_epoch: int


class TopicMeta(NamedTuple):
    """A topic. Its id is all zeros if the broker is too old for ids."""

    name: str
    id: UUID
    partitions: dict[int, PartitionMeta]


class Patience:
    """How long to keep trying one operation."""

    def __init__(self, settings: RawSettings) -> None:
        self._settings = settings
        self._pause = Event()
        self.reset()

    def reset(self) -> None:
        """There was progress: the time starts again."""
        self._started_s = time.monotonic()
        self._backoff_s = self._settings.retry_backoff_ms / 1000

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self._started_s

    def wait(self, what: str, reason: RawError) -> None:
        """Wait a moment before the next try.

        Raises:
            Unavailable: the time is up.
        """
        if isinstance(reason, UnknownTopic) and self.spent_s * 1000 > self._settings.unknown_topic_timeout_ms:
            raise reason
        left_s = self._settings.timeout_ms / 1000 - self.spent_s
        if left_s <= 0:
            raise Unavailable(
                f"{what}, tried for {self._settings.timeout_ms / 1000:g} s at {self._settings.bootstrap}; the last "
                f"reason: {reason}. Is the broker running, and reachable at the address it advertises?"
            ) from reason
        self._pause.wait(min(self._backoff_s, left_s))
        self._backoff_s = min(self._backoff_s * 2, _BACKOFF_MAX_S)


class Cluster:
    """The brokers of one cluster and the connections to them."""

    def __init__(self, settings: RawSettings) -> None:
        self.settings = settings
        self._tls = _tls_context(settings.security)
        self._bootstrap: Sequence[Address] = addresses(settings.bootstrap)
        self._brokers: dict[int, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._topics: dict[str, TopicMeta] = {}
        self._cluster_id: str | None = None

    def check(self) -> None:
        assert all(not c.closed or not c.pending for c in self._connections.values()), "closed ones are forgotten"
        assert all(name == topic.name for name, topic in self._topics.items()), "topics go by their names"

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # Trying

    def retrying(self, what: str, attempt: Callable[[], T]) -> T:
        """Call *attempt* until it succeeds, and return its result. Between attempts, topic metadata is forgotten."""
        patience = Patience(self.settings)
        while True:
            try:
                return attempt()
            except (ConnectionLost, Retry, UnknownTopic) as reason:
                self.forget_topics()
                patience.wait(what, reason)

    def forget_topics(self) -> None:
        self._topics.clear()

    # Brokers

    def connection(self, node_id: int, *, shared: bool = False) -> Connection:
        """The connection to a broker, made if there is none; only a *shared* one may have requests in flight."""
        if node_id not in self._brokers:
            self.read_metadata([])
        if node_id not in self._brokers:
            raise ConnectionLost(f"the cluster's metadata has no address for broker {node_id}")
        return self._connect(self._brokers[node_id], shared=shared)

    def any_connection(self) -> Connection:
        """A connection to any broker that answers."""
        for connection in self._connections.values():
            if not (connection.closed or connection.broken or connection.pending):
                return connection
        reasons = []
        for address in dict.fromkeys([*self._bootstrap, *self._brokers.values()]):
            try:
                return self._connect(address)
            except ConnectionLost as reason:
                reasons.append(str(reason))
        raise ConnectionLost(f"no broker answers ({'; '.join(reasons[:3])})")

    def node_ids(self) -> list[int]:
        self.read_metadata([])
        return sorted(self._brokers)

    def _connect(self, address: Address, *, shared: bool = False) -> Connection:
        connection = self._connections.get(address)
        if connection is not None and (connection.broken or (connection.pending and not shared)):
            connection.close()  # an answer was not waited for: it must not be taken for that of another request
        if connection is None or connection.closed:
            self._connections.pop(address, None)
            connection = self._connections[address] = Connection(address, self.settings, tls=self._tls)
        return connection

    # Metadata

    @property
    def cluster_id(self) -> str:
        if self._cluster_id is None:
            self.read_metadata([])
        assert self._cluster_id is not None
        return self._cluster_id

    def read_metadata(self, names: Sequence[str] | None, *, create: bool = False) -> dict[str, TopicMeta]:
        """The topics with these names (None: all) that exist, freshly read. Not retried.

        Raises:
            RequestRefused: one of *names* may not be read, or is not a valid name.
            Retry: a topic is just being created.
        """
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        answer = self.any_connection().ask(request, MetadataResponse)
        if answer.error_code:
            raise Retry("the cluster's metadata cannot be read", error_of(answer.error_code))
        self._learn_brokers(answer)
        found = {}
        for topic in answer.topics:
            if topic.name and _exists(topic, by_name=names is not None):
                found[topic.name] = _topic(topic.name, topic)
        self._topics.update(found)
        return found

    def _learn_brokers(self, answer: MetadataResponse) -> None:
        for broker in answer.brokers:
            if not broker.host or not 0 < broker.port < 65536:
                raise ProtocolError(f"broker {broker.node_id} is said to be at {broker.host[:100]!r}, {broker.port}")
        self._brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self._cluster_id = answer.cluster_id or ""

    def topic(self, name: str, *, create: bool = False) -> TopicMeta:
        """A topic, as of the last time its metadata was read. Not retried."""
        if name not in self._topics and name not in self.read_metadata([name], create=create):
            raise (
                Retry(f"topic {name} is being made", Error.UNKNOWN_TOPIC_OR_PARTITION) if create else UnknownTopic(name)
            )
        return self._topics[name]

    def leader(self, topic: str, partition: int) -> tuple[int, int]:
        """The id of the broker that leads a partition, and its leader epoch. Not retried."""
        partitions = self.topic(topic).partitions
        if partition not in partitions:
            raise UnknownTopic(topic, partition)
        leader, epoch = partitions[partition]
        if leader == NO_LEADER:
            raise Retry(f"{topic}-{partition} has no leader now", Error.LEADER_NOT_AVAILABLE)
        return leader, epoch

    def by_leader(self, partitions: Iterable[tuple[str, int]]) -> dict[int, list[tuple[str, int]]]:
        """The partitions that each broker leads, with the brokers in order. Not retried."""
        wanted = list(partitions)
        missing = sorted({topic for topic, _ in wanted} - self._topics.keys())
        if missing:
            self.read_metadata(missing)
        found: dict[int, list[tuple[str, int]]] = {}
        for topic, partition in wanted:
            found.setdefault(self.leader(topic, partition)[0], []).append((topic, partition))
        return dict(sorted(found.items()))

    def ask_each(self, requests: dict[int, object], answer: type[T], *, at_most: int | None = None) -> dict[int, T]:
        """Ask several brokers at once, so that all of them work while we wait for the first. Not retried.

        What an answer refers to in a connection's buffer is valid only until that connection is used again.
        """
        connections = {node: self.connection(node) for node in requests}
        assert len(set(connections.values())) == len(connections), "each broker has an address of its own"
        try:
            for node, request in requests.items():
                version = connections[node].version(type(request), at_most=at_most)
                connections[node].send(request, version=version)
            return {node: connections[node].receive(answer) for node in requests}
        except BaseException:
            for connection in connections.values():
                if connection.pending:
                    connection.close()
            raise


def _tls_context(security: Security) -> "SSLContext | None":
    if not security.uses_tls:
        return None
    from .raw_tls import tls_context

    return tls_context(security)


def raise_for(what: str, code: int, message: str | None = None, *, topic: tuple[str, int] | None = None) -> None:
    """Raise ``Retry``, ``UnknownTopic`` or ``RequestRefused`` for an error code; do nothing if it means success."""
    if not code:
        return
    error = error_of(code)
    if error in _GONE_CODES and topic is not None:
        raise UnknownTopic(*topic)
    if error.retriable or error is Error.BROKER_NOT_AVAILABLE:
        raise Retry(what, error, message and message[:500])
    raise RequestRefused(what, error, message and message[:500])


def _exists(topic: MetadataResponseTopic, *, by_name: bool) -> bool:
    error = error_of(topic.error_code)
    if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    if error in (Error.NONE, Error.REPLICA_NOT_AVAILABLE, Error.LISTENER_NOT_FOUND):
        return True
    if by_name:
        raise_for(f"topic {topic.name}", topic.error_code)
    return False


def _topic(name: str, topic: MetadataResponseTopic) -> TopicMeta:
    partitions = {p.partition_index: PartitionMeta(p.leader_id, p.leader_epoch) for p in topic.partitions}
    return TopicMeta(name, topic.topic_id, dict(sorted(partitions.items())))
