"""The names of a partition's files, as Kafka has them: a base offset of 20 digits and a suffix for each kind."""

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
"""What compaction writes, until it is complete."""
SWAP = ".swap"
"""What compaction has written and is about to take the place of older segments. A crash does not stop that any more."""
LEFTOVERS = (DELETED, CLEANED, SWAP, ".tmp")
"""Endings of files that an interrupted operation may have left behind. When swaps are completed, see ``recovery``, none
of them holds anything that is missed."""
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_DIGITS = 20


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:0{_DIGITS}d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file's name; None if it is not a name of this kind."""
    stem = name.removesuffix(suffix)
    if len(stem) != _DIGITS or len(name) == len(stem) or not (stem.isascii() and stem.isdigit()):
        return None
    return int(stem)
