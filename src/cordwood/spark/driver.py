"""What batch and stream readers share on the driver: ranges become tasks, which are told where files may be."""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Final

from cordwood.client.raw import RawClient, RawError

from . import planning
from .hints import DirectHint, direct_hints
from .offsets import Partition
from .options import SourceOptions
from .ranges import Range

DIRECT_OFFSETS_MIN: Final = 20_000
"""Fewer records than this usually arrive with the broker's first answer."""

LOG: Final = logging.getLogger("cordwood.spark")


def prepare(options: SourceOptions) -> None:
    """Called once for a query, before anything else.

    Raises:
        ConfigError: it would fail later on.
    """
    if options.values is not None:
        options.values.prepare(options.columns, options.settings)


def plan(ranges: Sequence[Range], options: SourceOptions) -> list[list[Range]]:
    """The ranges of each task."""
    return planning.tasks(
        ranges,
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
        cores=os.cpu_count() or 1,
    )


def hints(client: RawClient, ranges: Sequence[Range], options: SourceOptions) -> Mapping[Partition, DirectHint]:
    """Where the files of these partitions are; nothing if it would not be worthwhile, or if no broker tells."""
    large = sorted({range_[:2] for range_ in ranges if range_.end - range_.start >= DIRECT_OFFSETS_MIN})
    if not options.direct or not large:
        return {}
    try:
        return direct_hints(client, large)
    except RawError as error:
        LOG.info("reading over the network: %s", error)
        return {}
