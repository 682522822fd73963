"""When the broker starts, complete the swaps that compaction had begun when it died.

A segment whose log file ends in ``.swap`` was complete, on the disk, and about to replace the segments with the same
offsets. Some of those may be gone already, so the swap must be completed. A segment that still has a file ending in
``.cleaned`` was not complete: it is dropped, with those after it. Kafka leaves such files when it dies while it splits
a segment.

All of this may be interrupted and repeated. The log file gets its final name last: until then, its name says what is
left to do.
"""

from cordwood.errors import CorruptData
from cordwood.ports import Disk

from .names import CLEANED, LOG, SEGMENT_SUFFIXES, SWAP, file_name, offset_of
from .scan import headers


def complete_swaps(disk: Disk, directory: str) -> list[int]:
    """Put compacted segments into their place; return their base offsets."""
    names = disk.list(directory)
    swapping = sorted(_offsets(names, (LOG,), SWAP))
    incomplete = min(_offsets(names, SEGMENT_SUFFIXES, CLEANED), default=None)
    completed = [base_offset for base_offset in swapping if incomplete is None or base_offset < incomplete]
    for base_offset in completed:
        _complete(disk, directory, base_offset)
    return completed


def _complete(disk: Disk, directory: str, base_offset: int) -> None:
    swap = f"{directory}/{file_name(base_offset, LOG)}{SWAP}"
    end_offset = max(_end_offset(disk, swap), base_offset + 1)
    for name in disk.list(directory):
        if any(base_offset <= offset < end_offset for offset in _offsets([name], SEGMENT_SUFFIXES, "")):
            disk.remove(f"{directory}/{name}")
    for suffix in reversed(SEGMENT_SUFFIXES):
        path = f"{directory}/{file_name(base_offset, suffix)}"
        if disk.exists(path + SWAP):
            disk.rename(path + SWAP, path)


def _end_offset(disk: Disk, path: str) -> int:
    file = disk.open(path)
    end = 0
    try:
        for _, header in headers(file, 0, file.size):
            end = header.next_offset
    except CorruptData:  # damaged since then; whoever reads it will find out
        pass
    return end


def _offsets(names: list[str], suffixes: tuple[str, ...], ending: str) -> set[int]:
    found = (offset_of(name, suffix + ending) for name in names for suffix in suffixes)
    return {offset for offset in found if offset is not None}
