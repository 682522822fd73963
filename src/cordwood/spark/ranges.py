"""What the parts of the source pass to each other: which offsets are wanted, and the bytes that hold them."""

from collections.abc import Sequence
from typing import NamedTuple

from cordwood.ports import Buffer


class Range(NamedTuple):
    """Offsets of one partition, from ``start`` up to, but not including, ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}, offsets {self.start} to {self.end}"


class Chunk(NamedTuple):
    """Whole record batches, one after the other, valid until the next chunk is asked for.

    They may hold more than was wanted, before and after. ``aborted`` names the aborted transactions that the batches
    may belong to, each as (producer id, first offset); it is empty if aborted records are wanted too.
    """

    data: Buffer
    aborted: Sequence[tuple[int, int]] = ()
