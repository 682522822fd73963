"""The names of a partition's files, as Kafka has them: a base offset of 20 digits and a suffix for each kind."""

from typing import Final

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
"""A segment that compaction is still writing."""
SWAP: Final = ".swap"
"""A complete segment of compaction's, about to replace older ones: a crash delays the swap but does not undo it."""
LEFTOVERS: Final = (DELETED, CLEANED, SWAP, ".tmp")
"""Endings of files that an interrupted operation may have left behind. Once swaps are completed (see ``recovery``),
none of these files holds anything that is still needed."""
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

_DIGITS: Final = 20


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:0{_DIGITS}d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file's name; None if it is not a name of this kind."""
    stem = name.removesuffix(suffix)
    if len(stem) != _DIGITS or len(name) == len(stem) or not (stem.isascii() and stem.isdigit()):
        return None
    return int(stem)
