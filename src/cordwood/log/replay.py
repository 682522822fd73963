"""Recover from stored batches what was learned when they were written: producers and leader epochs."""

from collections.abc import Sequence

from cordwood.ids import NO_LEADER_EPOCH
from cordwood.record.batch import BatchHeader
from cordwood.record.control import end_marker

from .epochs import EpochStart, LeaderEpochs
from .producers import Producers
from .scan import headers, read_batch
from .segment import Segment
from .snapshot import SnapshotFiles


def replay_batch(producers: Producers, header: BatchHeader, batch: bytes | memoryview | None) -> None:
    """Note one stored batch. Only a control batch must be given whole."""
    if header.producer_id >= 0:
        if not header.is_control:
            producers.append(header, header.base_offset)
        elif batch is not None and (marker := end_marker(batch, header)) is not None:
            producers.end_transaction(header, marker, header.base_offset)
    producers.end_offset = header.next_offset


def replay_producers(producers: Producers, segments: Sequence[Segment], end_offset: int) -> None:
    """Advance *producers* from the offset they have reached to *end_offset*."""
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        if producers.end_offset < next_base and segment.base_offset < end_offset:
            _replay_segment(producers, segment, end_offset)
            if number + 1 < len(segments):
                segment.release_file()
    producers.end_offset = end_offset


def _replay_segment(producers: Producers, segment: Segment, end_offset: int) -> None:
    found = segment.locate(max(producers.end_offset, segment.base_offset))
    if found is None:
        return
    for position, header in headers(segment.file, found.position, segment.size):
        if header.base_offset >= end_offset:
            return
        whole = header.is_control and header.producer_id >= 0
        replay_batch(producers, header, read_batch(segment.file, position, header) if whole else None)


def reload_producers(
    producers: Producers, snapshots: SnapshotFiles, segments: Sequence[Segment], *, start_offset: int, end_offset: int
) -> None:
    """Restore the producers as of *end_offset* from the newest snapshot up to there and the batches after it."""
    snapshots.keep_between(segments[0].base_offset, end_offset)
    latest = snapshots.load_latest()
    if latest is None:
        producers.clear(start_offset)
    else:
        offset, entries = latest
        producers.restore(entries, offset)
    replay_producers(producers, segments, end_offset)


def fill_epochs(epochs: LeaderEpochs, segments: Sequence[Segment], *, start_offset: int, end_offset: int) -> None:
    """Learn the unknown epochs between *start_offset* and *end_offset* from the batches' headers."""
    earliest = epochs.earliest
    known_from = min(end_offset, earliest.start_offset) if earliest else end_offset
    found: list[EpochStart] = []
    for number, segment in enumerate(segments):
        next_base = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        if next_base > start_offset and segment.base_offset < known_from:
            _find_epochs(found, segment, start_offset, known_from)
            if number + 1 < len(segments):
                segment.release_file()
    epochs.fill(found)


def _find_epochs(found: list[EpochStart], segment: Segment, start_offset: int, known_from: int) -> None:
    for _, header in headers(segment.file, 0, segment.size):
        if header.base_offset >= known_from:
            return
        is_new = header.leader_epoch > (found[-1].epoch if found else NO_LEADER_EPOCH)
        if is_new and header.last_offset >= start_offset:
            found.append(EpochStart(header.leader_epoch, max(header.base_offset, start_offset)))
