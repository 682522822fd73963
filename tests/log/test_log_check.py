"""A log that was found right is looked at again as soon as anything in it is another thing."""

from collections.abc import Callable

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.log.segment import Segment
from log.builders import DIRECTORY, Bench

LOG = f"{DIRECTORY}/{0:020}.log"


def other_bytes(bench: Bench, segment: Segment) -> None:
    """The second batch has the first one's offset, in as many bytes."""
    data = bytearray(bench.disk.read(LOG))
    data[len(data) // 3 + 7] = 0
    file = bench.disk.open(LOG)
    file.truncate(0)
    file.append(data)


def another_index_entry(bench: Bench, segment: Segment) -> None:
    """Not the last one, and it still grows: to the index by itself it looks right."""
    segment._offsets._tail[-1 - segment._offsets._size] += 1


def another_remembered_position(bench: Bench, segment: Segment) -> None:
    segment._recent_positions[-1] += 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (other_bytes, "offsets grow"),
        (another_index_entry, "an index entry is a batch's"),
        (another_remembered_position, "a remembered position is a batch's"),
    ],
)
def test_what_changes_after_it_was_found_right_is_found_wrong(
    change: Callable[[Bench, Segment], None], complaint: str
) -> None:
    bench = Bench(TopicConfig(index_interval_bytes=0))
    for _ in range(3):
        bench.append()
    bench.log.check()
    bench.log.check()
    change(bench, bench.log._segments[0])
    with pytest.raises(AssertionError, match=complaint):
        bench.log.check()


def test_a_segment_that_should_end_sooner_is_found_wrong() -> None:
    bench = Bench(TopicConfig())
    for _ in range(3):
        bench.append()
    segment = bench.log._segments[0]
    segment.check(3)
    with pytest.raises(AssertionError, match="before the next one"):
        segment.check(2)
