"""Complete at the start what compaction had begun when the broker died.

A segment whose log file ends in ``.swap`` was complete, on the disk, and about to take the place of the segments with
the same offsets: some of those may be gone already, so it must. One that still has a file ending in ``.cleaned`` was
not complete, and goes, with those after it: Kafka leaves such files when it dies while it splits a segment.

Everything here may be interrupted and done again. The log file gets its name last: until then it says what to do.
"""

from cordwood.errors import CorruptData
from cordwood.ports import Disk

from .names import CLEANED, LOG, SEGMENT_SUFFIXES, SWAP, file_name, offset_of
from .scan import headers


def complete_swaps(disk: Disk, directory: str) -> list[int]:
    """Put compacted segments into their place; their base offsets."""
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
    except CorruptData:  # damaged since; that is found when somebody reads it
        pass
    return end


def _offsets(names: list[str], suffixes: tuple[str, ...], ending: str) -> set[int]:
    found = (offset_of(name, suffix + ending) for name in names for suffix in suffixes)
    return {offset for offset in found if offset is not None}
