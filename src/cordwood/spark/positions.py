"""Where partitions begin and end now, and which there are: the driver asks the cluster for that before it plans.

Right after a change of leaders, a broker may not know a topic yet, or report a latest offset that is too small. So an
impossible answer is asked for again a few times (``fetchOffset.numRetries``) before it is believed.
"""

import logging
from collections.abc import Collection, Mapping
from threading import Event
from typing import NamedTuple

from cordwood.client.raw import RawClient, UnknownTopic
from cordwood.errors import ConfigError

from . import loss
from .offsets import EARLIEST, LATEST, AtOffsets, AtTimes, Everywhere, Limit, Offsets, Partition
from .options import SourceOptions
from .ranges import Range
from .subscription import check_found


class Begin(NamedTuple):
    """Where a stream begins."""

    offsets: Offsets
    at_latest: frozenset[Partition]
    """Those of the partitions that begin at their ends: if asked for again, they would begin later."""


class Positions:
    """Asks one cluster for the partitions of one query."""

    def __init__(self, client: RawClient, options: SourceOptions, log: logging.Logger) -> None:
        self._client = client
        self._options = options
        self._log = log
        self._pause = Event()

    # Streams

    def begin(self) -> Begin:
        """Where a new stream begins."""
        chosen = self._chosen(self._options.starting, self._subscribed())
        at_latest = frozenset(partition for partition, offset in chosen.items() if offset == LATEST)
        return Begin(self._known(chosen), at_latest)

    def latest(self, known: Mapping[Partition, int]) -> Offsets:
        """Where the partitions end; *known* is where they ended before."""
        for _ in range(self._options.offset_attempts - 1):
            try:
                found = self._latest_once()
            except UnknownTopic as reason:  # just deleted
                self._log.info("%s; asking again", reason)
            else:
                wrong = [p for p, offset in known.items() if found.get(p, -1) < offset]
                if not wrong:
                    return found
                self._log.warning("%s ended later before; asking again", loss.names(wrong))
            self._pause.wait(self._options.offset_interval_ms / 1000)
        return self._latest_once()

    def _latest_once(self) -> Offsets:
        topics = self._client.topics(self._options.subscription.topics)
        return self._at(dict.fromkeys(sorted(self._options.subscription.select(topics)), LATEST))

    def earliest(self, partitions: Collection[Partition]) -> Offsets:
        """Where these begin; those that no longer exist are left out."""
        if not partitions:
            return {}
        topics = self._client.topics(sorted({topic for topic, _ in partitions}))
        existing = {p for p in partitions if p[0] in topics and p[1] in topics[p[0]].partitions}
        return self._at(dict.fromkeys(sorted(existing), EARLIEST))

    # Batches

    def batch(self) -> list[Range]:
        """What a batch reads: a range for each partition, none of them beyond what exists."""
        options = self._options
        partitions = self._subscribed()
        start, end = self._resolved(options.starting, partitions), self._resolved(options.ending, partitions)
        _check_order(options.starting, start, options.ending, end)
        ranges = [Range(*p, start[p], end[p]) for p in partitions if start[p] < end[p]]
        explicit = isinstance(options.starting, AtOffsets) or isinstance(options.ending, AtOffsets)
        return self._existing(ranges) if explicit else ranges

    def _existing(self, ranges: list[Range]) -> list[Range]:
        """Ranges given by the user, cut to what exists."""
        first = self._at({range_[:2]: EARLIEST for range_ in ranges})
        last = self._at({range_[:2]: LATEST for range_ in ranges})
        found = []
        for topic, number, start, end in ranges:
            lowest, highest = first[topic, number], last[topic, number]
            if start < lowest:
                self._report(loss.skipped(topic, number, start, min(lowest, end)))
            if end > highest:
                beyond = f"offsets {max(start, highest)} to {end - 1} of {topic}-{number}"
                self._report(f"{beyond} are not there: the partition ends at offset {highest}")
            found.append(Range(topic, number, max(start, lowest), min(end, highest)))
        return [range_ for range_ in found if range_.start < range_.end]

    def _report(self, what: str) -> None:
        loss.report(what, fail=self._options.fail_on_data_loss, log=self._log, advice=loss.PLAN_ADVICE)

    # Both

    def at_time(self, time_ms: int, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The first offsets with a record that is not older than that; -1 where there is none."""
        return self._at(dict.fromkeys(sorted(partitions), time_ms))

    def _subscribed(self) -> list[Partition]:
        """The partitions to read, in order.

        Raises:
            MissingTopic: a topic that was named does not exist.
        """
        subscription = self._options.subscription
        topics = self._client.topics(subscription.topics)
        if len(topics) < len(subscription.topics or ()):
            self._pause.wait(self._options.offset_interval_ms / 1000)  # it may be about to be created
            topics = self._client.topics(subscription.topics)
        if len(topics) < len(subscription.topics or ()):
            check_found(subscription, topics, self._client.topics().keys())
        return sorted(subscription.select(topics))

    def _at(self, wanted: Mapping[Partition, int]) -> Offsets:
        if not wanted:
            return {}
        return {partition: found.offset for partition, found in self._client.offsets(wanted).items()}

    def _resolved(self, limit: Limit, partitions: list[Partition]) -> Offsets:
        return self._known(self._chosen(limit, partitions))

    def _known(self, chosen: Offsets) -> Offsets:
        """With LATEST and EARLIEST replaced by offsets."""
        return {**chosen, **self._at({p: offset for p, offset in chosen.items() if offset < 0})}

    def _chosen(self, limit: Limit, partitions: list[Partition]) -> Offsets:
        """What an option says for each partition: an offset, LATEST or EARLIEST."""
        match limit:
            case Everywhere(offset):
                return dict.fromkeys(partitions, offset)
            case AtOffsets(option, offsets):
                _check_same(option, offsets, partitions, "-1 stands for the latest offset, -2 for the earliest")
                return offsets
            case AtTimes():
                return self._at_times(limit, partitions)

    def _at_times(self, limit: AtTimes, partitions: list[Partition]) -> Offsets:
        """LATEST for partitions without such a recent record."""
        if not isinstance(limit.times_ms, int):
            hint = "give it a time in ms since 1970; 0 is before all records"
            _check_same(limit.option, limit.times_ms, partitions, hint)
        found = self._at({p: limit.time_ms(p) for p in partitions})
        none = [p for p, offset in found.items() if offset < 0]
        if none and not limit.latest_if_none:
            (topic, number), *_ = none
            raise ConfigError(
                f"option {limit.option}: {topic}-{number} has no record as young as {limit.time_ms(none[0])}; to begin "
                "at the end of such partitions, set startingOffsetsByTimestampStrategy to latest"
            )
        return {**found, **dict.fromkeys(none, LATEST)}


def _check_same(option: str, named: Mapping[Partition, int], partitions: Collection[Partition], hint: str) -> None:
    missing, unread = set(partitions) - named.keys(), named.keys() - set(partitions)
    if missing:
        raise ConfigError(
            f"option {option} must have every partition that is read, and {loss.names(missing)} is not in it; {hint}"
        )
    if unread:
        raise ConfigError(f"option {option} has {loss.names(unread)}, which is not read, or does not exist")


def _check_order(starting: Limit, start: Offsets, ending: Limit, end: Offsets) -> None:
    """A batch that is asked to begin after its end is a mistake; one that begins at the earliest offset is empty."""
    for (topic, number), offset in sorted(start.items()):
        last = end[topic, number]
        if offset <= last or not _is_chosen(starting, (topic, number)):
            continue
        if _is_chosen(ending, (topic, number)):
            raise ConfigError(
                f"{topic}-{number} would begin at offset {offset} and end before it, at {last}: look at the options "
                "for the starting and the ending offsets"
            )
        assert not isinstance(starting, Everywhere), "nothing was chosen"
        raise ConfigError(
            f"option {starting.option}: {topic}-{number} would begin at offset {offset}, after its end, which is "
            f"{last}; was the topic deleted and made anew?"
        )


def _is_chosen(limit: Limit, partition: Partition) -> bool:
    match limit:
        case Everywhere():
            return False
        case AtOffsets(_, offsets):
            return offsets[partition] >= 0
        case AtTimes():
            return True
