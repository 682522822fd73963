"""What a task does: the records of some offset ranges, as Arrow.

Readers are sent to tasks by processes that read nothing themselves, so what only a task needs is imported there.
Stateless: a task is given all that it needs, and everything is created anew in its process. Records that were deleted
between planning and reading are noticed here, and reported as ``failOnDataLoss`` says.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from cordwood.client.raw_errors import OffsetOutOfRange
from cordwood.client.raw_settings import RawSettings

from . import loss
from .offsets import Partition
from .ranges import Chunk, Range
from .schema import Columns
from .worker import Arrival

if TYPE_CHECKING:
    from cordwood.client.raw import RawClient

    from .hints import DirectHint
    from .options import SourceOptions
    from .values import ValueDecoder


class Task(InputPartition):
    """The ranges that one task reads, and where their files may be."""

    def __init__(
        self,
        ranges: Sequence[Range],
        hints: "Mapping[Partition, DirectHint] | None" = None,
        commits: Mapping[Partition, int] | None = None,
    ) -> None:
        super().__init__(None)
        self.ranges = list(ranges)
        self.hints = {range_[:2]: hints[range_[:2]] for range_ in ranges if hints and range_[:2] in hints}
        self.commits = dict(commits or {})
        """What to commit for the group when everything has been read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How all tasks of a query read."""

    settings: RawSettings
    columns: Columns
    fail_on_data_loss: bool
    group: str | None = None
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("cordwood.spark"))
    values: "ValueDecoder | None" = None
    arrival: Arrival = field(default_factory=Arrival)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task. A task that is not ours has none: Spark makes one up if there are no tasks."""
        if not isinstance(partition, Task):
            return
        from cordwood.client.raw import RawClient

        with RawClient(self.settings) as client:
            for wanted in partition.ranges:
                yield from self._range(client, wanted, partition.hints.get(wanted[:2]))
            if self.group is not None and partition.commits:
                client.commit(self.group, partition.commits)

    def _range(self, client: "RawClient", wanted: Range, hint: "DirectHint | None") -> Iterator[pa.RecordBatch]:
        from .road import roads  # only tasks need it

        isolation = self.settings.isolation
        while wanted.start < wanted.end:
            try:
                yield from self._records(roads(client, wanted, isolation=isolation, direct=hint), wanted)
                return
            except OffsetOutOfRange as missing:
                wanted = self._after_loss(client, wanted, missing)

    def _records(self, chunks: Iterator[Chunk], wanted: Range) -> Iterator[pa.RecordBatch]:
        from .decode import decode  # only tasks need it

        if self.values is None:
            return decode(chunks, wanted, self.columns)
        batches = decode(chunks, wanted, self.values.needed(self.columns))
        return self.values.rows(batches, self.columns, self.settings)

    def _after_loss(self, client: "RawClient", wanted: Range, missing: OffsetOutOfRange) -> Range:
        """What is left of a range when the records at its beginning, or in its middle, are gone."""
        from cordwood.client.raw import EARLIEST, LATEST

        partition = (wanted.topic, wanted.partition)
        earliest = client.offsets({partition: EARLIEST})[partition].offset
        position = max(missing.offset, wanted.start)
        if earliest <= position:
            end = client.offsets({partition: LATEST})[partition].offset
            what = f"{wanted} are not there, it has {earliest} to {end}; was the topic deleted and made anew?"
            loss.report(what, fail=self.fail_on_data_loss, log=self.log)
            return wanted._replace(start=wanted.end)
        gone_end = min(earliest, wanted.end)
        loss.report(
            loss.skipped(*partition, position, gone_end),
            fail=self.fail_on_data_loss,
            log=self.log,
        )
        return wanted._replace(start=gone_end)


def reading_of(options: "SourceOptions") -> Reading:
    """How the tasks of this query read."""
    settings = options.settings
    if options.task_timeout_ms is not None:
        settings = replace(settings, timeout_ms=options.task_timeout_ms)
    return Reading(settings, options.columns, options.fail_on_data_loss, options.group, values=options.values)
