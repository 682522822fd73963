"""A consumer group that follows a query: the query's progress is committed, so that every Kafka tool shows its lag.

The group is only for show. A query begins where its checkpoint says, whatever the group has committed, and the group
has no members. So a refusal of the first commit stops the query, since somebody wants to see this group; later failures
are only logged, since the query's records matter more.
"""

import logging
from collections.abc import Mapping

from cordwood.client.raw import RawClient, RawError, RequestRefused
from cordwood.errors import ConfigError

from .offsets import Offsets, Partition


class Follower:
    """Commits what has changed since the last commit."""

    def __init__(self, group: str, log: logging.Logger) -> None:
        self._group = group
        self._log = log
        self._committed: Offsets | None = None

    def follow(self, client: RawClient, offsets: Mapping[Partition, int]) -> None:
        """The query has processed everything up to these offsets."""
        committed = self._committed or {}
        changed = {partition: offset for partition, offset in offsets.items() if committed.get(partition) != offset}
        if not changed:
            return
        try:
            client.commit(self._group, changed)
        except RequestRefused as refusal:
            if self._committed is None:
                raise ConfigError(f"option group: {refusal}") from refusal
            self._log.warning("%s; the query goes on without", refusal)
        except RawError as error:
            self._log.warning("%s; the query goes on without", error)
        else:
            self._committed = {**committed, **changed}
