"""Records that are gone before a query has read them: stop, or log it and go on, depending on ``failOnDataLoss``."""

import logging
from collections.abc import Iterable
from typing import Final

from cordwood.errors import CordwoodError

from .offsets import Partition


class DataLossError(CordwoodError):
    """Records were deleted before the query read them."""


ADVICE: Final = (
    'To go on with what is there, start it with option("failOnDataLoss", "false"), a stream from the same checkpoint; '
    "so that it does not happen again, raise the topic's retention.ms or retention.bytes, or let the query run more "
    "often"
)
PLAN_ADVICE: Final = (
    'Ask for offsets that are there; or, to read what is there of them, set option("failOnDataLoss", "false")'
)


def report(what: str, *, fail: bool, log: logging.Logger, advice: str = ADVICE) -> None:
    """
    Args:
        advice: what to do about it, for the person who reads the error.

    Raises:
        DataLossError: if the query should stop because of it.
    """
    if fail:
        raise DataLossError(f"{what}. The query stops here because failOnDataLoss is true. {advice}")
    log.warning("%s. The query goes on, since failOnDataLoss is false", what)


def skipped(topic: str, partition: int, start: int, end: int) -> str:
    """What was lost from one partition, in words.

    >>> skipped("orders", 3, 5, 9)
    'offsets 5 to 8 of orders-3 (4 offsets) are gone: they were deleted, by retention or by hand, before they were read'
    """
    count = end - start
    return (
        f"offsets {start} to {end - 1} of {topic}-{partition} ({count} offset{'s' * (count != 1)}) are gone: they were "
        "deleted, by retention or by hand, before they were read"
    )


def names(partitions: Iterable[Partition]) -> str:
    """
    >>> names({("b", 1), ("a", 0)})
    'a-0, b-1'
    """
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
