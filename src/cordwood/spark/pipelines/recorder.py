"""Writes the progress that Spark reports of its streams into a journal."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from . import journal
from .journal import Entry, Journal, Offsets

_DEFAULT_PREFIX: Final = "spark_catalog.default."


class Recorder(StreamingQueryListener):
    """Writes the progress of all streams into the journal, and remembers how far they are."""

    def __init__(self, log: Journal, tables: Path) -> None:
        self._journal = log
        self._tables = f"FileStreamSource[{tables.as_uri().replace('file://', 'file:')}/"
        self.ends: dict[str, Offsets] = {}
        self.has_others = False
        """Is there a source that is neither a topic nor a table of the pipeline?"""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        flow = short_name(progress.name or str(progress.id))
        begin, end, latest = (
            _topics(progress.sources, which) for which in ("startOffset", "endOffset", "latestOffset")
        )
        self.ends[flow] = end
        self.has_others |= any(
            not topic_offsets(source.endOffset) and not source.description.startswith(self._tables)
            for source in progress.sources
        )
        self._journal.write(
            Entry(
                journal.BATCH,
                now_ms(),
                flow=flow,
                batch=progress.batchId,
                rows=progress.numInputRows,
                rows_per_s=round(progress.processedRowsPerSecond, 1),
                took_ms=progress.durationMs.get("triggerExecution", 0),
                begin=begin,
                end=end,
                latest=latest,
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def short_name(flow: str) -> str:
    """The usual name of a flow.

    >>> short_name("spark_catalog.default.orders"), short_name("spark_catalog.sales.orders")
    ('orders', 'spark_catalog.sales.orders')
    """
    return flow.replace("`", "").removeprefix(_DEFAULT_PREFIX)


def topic_offsets(text: str | None) -> Offsets:
    """The offsets of topics in a source's report; nothing if it has none.

    >>> topic_offsets('{"orders": {"0": 7}}'), topic_offsets('{"logOffset": 3}'), topic_offsets("null")
    ({'orders': {'0': 7}}, {}, {})
    """
    try:
        found = json.loads(text or "null")
    except ValueError:
        return {}
    if not isinstance(found, dict) or not all(isinstance(numbers, dict) for numbers in found.values()):
        return {}
    return found


def _topics(sources: Iterable[SourceProgress], which: str) -> Offsets:
    merged: Offsets = {}
    for source in sources:
        for topic, numbers in topic_offsets(getattr(source, which)).items():
            merged.setdefault(topic, {}).update(numbers)
    return merged


def now_ms() -> int:
    return time.time_ns() // 1_000_000
