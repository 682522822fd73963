"""A streaming query on the driver: where the next micro-batch ends, and which tasks read it.

Spark asks for the offset where the next micro-batch ends, writes it down, and then asks for the tasks between two
offsets; after a crash it asks for the same tasks again. When it asks for the next end, the micro-batch before it is
done, and the group, if there is one, follows.

A partition that begins at its latest offset has nothing in the first micro-batch: its end, which Spark writes down, is
its beginning, and a restarted query knows the beginning only from that. The other partitions are read at once. For the
same reason, a partition that was added after the beginning is left for the second micro-batch: by then it is known to
be new, and is read from its own beginning.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from cordwood.client.raw import RawClient

from . import driver, loss, planning
from .group import Follower
from .hints import DirectHint
from .offsets import LATEST, AtOffsets, Everywhere, Offsets, Partition, to_json
from .options import SourceOptions
from .positions import Positions
from .ranges import Range
from .reading import Task
from .warm import warm

HINTS_KEPT_S: Final = 60.0


class StreamQuery:
    """What the driver knows about a running query."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        driver.prepare(options)
        self._client = RawClient(options.settings)
        self._positions = Positions(self._client, options, driver.LOG)
        self._follower = Follower(options.group, driver.LOG) if options.group is not None else None
        self._initial: Offsets | None = None
        self._at_latest: frozenset[Partition] = frozenset()
        self._begun = False
        self._target: Offsets | None = None
        self._last_trigger_s: float | None = None
        self._planned: tuple[Offsets, Offsets, list[Task]] | None = None
        self._hints: dict[Partition, DirectHint] = {}
        self._hints_since_s = 0.0
        self._is_warm = False
        self.available_now = False
        self.latest: Offsets = {}

    def check(self) -> None:
        assert self._target is None or self.available_now, "only a query that ends by itself has a target"

    def close(self) -> None:
        self._client.close()

    def initial(self) -> Offsets:
        """Where a query without a checkpoint begins: the same, however often it is asked."""
        if self._initial is None:
            self._initial, self._at_latest = self._positions.begin()
            driver.LOG.info("the stream begins at %s", to_json(self._initial))
        return self._initial

    # Where a micro-batch ends

    def end(self, start: Offsets, limit: ReadLimit) -> Offsets:
        is_first = start == self._initial and not self._begun and _may_be_latest(self._options)
        self._begun = True
        if is_first and self._at_latest >= start.keys():
            self.latest = self.latest or start
            self._follow(start, start)
            return start
        self.latest = self._ends(start)
        self._follow(start, self.latest)
        reachable = self._first_ends(start) if is_first else self.latest
        if isinstance(limit, ReadAllAvailable):
            return reachable
        if self._is_too_early(start):
            return start
        return self._limited(start, reachable, limit.max_rows) if isinstance(limit, ReadMaxRows) else reachable

    def _first_ends(self, start: Offsets) -> Offsets:
        """How far the first micro-batch may go, if its beginning cannot be asked for again."""
        ends = {partition: offset for partition, offset in self.latest.items() if partition in start}
        return {**ends, **{partition: start[partition] for partition in self._at_latest}}

    def _ends(self, start: Offsets) -> Offsets:
        if not self.available_now:
            return self._positions.latest(start)
        if self._target is None:
            self._target = self._positions.latest(start)
        return self._target

    def _follow(self, start: Offsets, existing: Mapping[Partition, int]) -> None:
        if self._follower is not None:
            self._follower.follow(self._client, {p: offset for p, offset in start.items() if p in existing})

    def _is_too_early(self, start: Offsets) -> bool:
        """Should more records accumulate first? Not for ever, and not if no more are waited for."""
        least = self._options.min_offsets_per_trigger
        if least is None or self.available_now:
            return False
        now = self._clock()
        waited_ms = (now - self._last_trigger_s) * 1000 if self._last_trigger_s is not None else float("inf")
        if waited_ms < self._options.max_trigger_delay_ms and planning.too_few(least, start, self.latest):
            return True
        self._last_trigger_s = now
        return False

    def _limited(self, start: Offsets, reachable: Offsets, limit: int) -> Offsets:
        begins = {**self._positions.earliest(reachable.keys() - start.keys()), **start}
        ends = {partition: offset for partition, offset in reachable.items() if partition in begins}
        return planning.rate_limited(limit, begins, ends)

    # The tasks of a micro-batch

    def tasks(self, start: Offsets, end: Offsets) -> list[Task]:
        """The same tasks for the same offsets: Spark asks more than once."""
        if self._planned is None or self._planned[:2] != (start, end):
            ranges = self._ranges(start, end)
            planned = driver.plan(ranges, self._options)
            hints = self._hints_of(ranges)
            self._planned = start, end, [Task(task, hints) for task in planned]
            self._warm_up(self._planned[2])
        return self._planned[2]

    def _warm_up(self, tasks: Sequence[Task]) -> None:
        """Compile the kernels, so that they are in the cache before any task needs them."""
        if tasks and not self._is_warm:
            warm()
            self._is_warm = True

    def _ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        found = planning.between(start, end, self._positions.earliest(end.keys() - start.keys()))
        for what in self._losses(found, first=start == self._initial):
            loss.report(what, fail=self._options.fail_on_data_loss, log=driver.LOG)
        return found.ranges

    def _losses(self, found: planning.Between, *, first: bool) -> Iterator[str]:
        if found.unknown:
            yield f"{loss.names(found.unknown)} were new, and are gone again: their records were not read"
        for (topic, number), offset in found.late.items():
            yield f"{topic}-{number} is new, and begins at offset {offset}: {loss.skipped(topic, number, 0, offset)}"
        # If the first micro-batch is repeated, its beginning is asked for again: there may be new partitions since
        # then, and the latest offset is later than it was. What counts is the end that was written down.
        if not first and found.gone:
            yield f"{loss.names(found.gone)} do not exist any more: they were deleted, with what was not read"
        for (topic, number), (begin, end) in found.fell_back.items():
            if not (first and _may_have_been_latest(self._options, (topic, number))):
                yield (
                    f"{topic}-{number} ends at offset {end}, but was read up to {begin} before: the topic was deleted "
                    "and made anew, or the query was started beyond its end"
                )

    def _hints_of(self, ranges: Sequence[Range]) -> Mapping[Partition, DirectHint]:
        if self._clock() - self._hints_since_s > HINTS_KEPT_S:
            self._hints, self._hints_since_s = {}, self._clock()
        unknown = [range_ for range_ in ranges if range_[:2] not in self._hints]
        self._hints.update(driver.hints(self._client, unknown, self._options))
        return self._hints


def _may_be_latest(options: SourceOptions) -> bool:
    """May the stream begin at the end of some partition?"""
    match options.starting:
        case Everywhere(offset):
            return offset == LATEST
        case AtOffsets(_, offsets):
            return LATEST in offsets.values()
        case limit:
            return limit.latest_if_none


def _may_have_been_latest(options: SourceOptions, partition: Partition) -> bool:
    """May this partition have begun at its end? If it had no recent records then, that is possible."""
    match options.starting:
        case AtOffsets(_, offsets):
            return offsets.get(partition) == LATEST
        case _:
            return _may_be_latest(options)
