"""Lag for jobs on Spark's own Kafka connector: a listener that commits the progress of each micro-batch.

::

    spark.streams.addListener(OffsetCommitter("127.0.0.1:9092", "orders-job"))

It takes the offsets from the progress that Spark reports, so the job itself needs no change. It never disturbs the
query: failed commits are logged.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from cordwood.client.raw import RawClient, RawError, RawSettings
from cordwood.errors import ConfigError, ProtocolError

from .offsets import Offsets, parse_offsets

TIMEOUT_MS = 15_000
"""Spark's listeners wait for each other."""


class OffsetCommitter(StreamingQueryListener):
    """Commits the offsets of streaming queries to a consumer group.

    Args:
        bootstrap: The cluster's address.
        group: The consumer group. ``{query}`` in it stands for the query's name, or its id if it has none.
        queries: The names of the queries to follow; None is all of them.
        properties: Further settings of a Java client, such as those for TLS and SASL.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        *,
        queries: Collection[str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if not group:
            raise ConfigError("the group's name is empty")
        given = {"client.id": "cordwood-lag", "default.api.timeout.ms": str(TIMEOUT_MS), **(properties or {})}
        self._settings = RawSettings.of_properties({**given, "bootstrap.servers": bootstrap})
        self._group = group
        self._queries = None if queries is None else frozenset(queries)
        self._log = logging.getLogger("cordwood.spark")

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if self._queries is not None and progress.name not in self._queries:
            return
        offsets = offsets_of(source.endOffset for source in progress.sources)
        if offsets:
            self._commit(self._group.replace("{query}", progress.name or str(progress.id)), offsets)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def _commit(self, group: str, offsets: Offsets) -> None:
        try:
            with RawClient(self._settings) as client:
                topics = client.topics(sorted({topic for topic, _ in offsets}))
                existing = {p: o for p, o in offsets.items() if p[0] in topics and p[1] in topics[p[0]].partitions}
                client.commit(group, existing)
        except (RawError, ProtocolError) as error:
            self._log.warning("the progress of the query cannot be committed: %s", error)


def offsets_of(texts: Iterable[str | None]) -> Offsets:
    """The offsets in the reports of a query's sources; sources that are not Kafka sources are left out."""
    found: Offsets = {}
    for text in texts:
        try:
            found.update(parse_offsets("endOffset", text or "null"))
        except ConfigError:
            continue
    return {partition: offset for partition, offset in found.items() if offset >= 0}
