"""Is there anything for another run of a pipeline to do? ``watch`` asks that between two runs.

Streams report how far they have read their topics, and the cluster says where these end now. But nothing reports a new
topic that matches a pattern, a topic that is read as a batch, or a source that is not a topic. And a cluster may not
answer. So a pipeline is run now and then in any case, which also shows what is wrong with the cluster.
"""

import time
from collections.abc import Callable, Collection
from typing import Final

from cordwood.client.raw import RawError, RawSettings
from cordwood.errors import ProtocolError

from .journal import Offsets, distance
from .status import latest_offsets

RESTLESS_S: Final = 10.0
"""How often to run a pipeline if it cannot be known whether there is anything new."""
IDLE_RATIO: Final = 10
"""If everything that is known of is done, a run that is probably in vain may take a tenth of the time."""


class News:
    """What is known of the last run, and how to find out what has arrived since."""

    def __init__(self, settings: RawSettings | None, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            settings: of the cluster; None if its address is not known.
        """
        self._settings = settings
        self._clock = clock
        self._began_s = self._ended_s = clock()

    def run_begins(self) -> None:
        self._began_s = self._clock()

    def run_ended(self) -> None:
        self._ended_s = self._clock()

    def has_come(self, ends: Collection[Offsets], *, has_others: bool) -> bool:
        """
        Args:
            ends: up to which offsets each stream has read its topics.
            has_others: is there a source that is neither a topic nor a table of the pipeline?
        """
        idle_s = self._clock() - self._ended_s
        if idle_s >= max(RESTLESS_S, IDLE_RATIO * (self._ended_s - self._began_s)):
            return True
        if has_others or self._settings is None or not any(ends):
            return idle_s >= RESTLESS_S
        try:
            latest = latest_offsets(ends, self._settings)
        except (RawError, ProtocolError):
            return idle_s >= RESTLESS_S
        return any(distance(end, {topic: latest[topic] for topic in end if topic in latest}) for end in ends)
