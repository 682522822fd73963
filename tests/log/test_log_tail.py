"""What stands behind the last batch of a log that is appended to is its end, and not damage."""

from struct import unpack

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.log.tail import TAIL_BYTES_MAX, TAIL_MARK, is_tail
from log.builders import DIRECTORY, TINY, Bench

ACTIVE = f"{DIRECTORY}/{0:020d}.log"

TAILS = [
    TAIL_MARK,
    TAIL_MARK[:5],
    TAIL_MARK + bytes(1_000),
    TAIL_MARK[:9] + bytes(1_000),
    bytes(1),
    bytes(TAIL_BYTES_MAX),
    TAIL_MARK.ljust(TAIL_BYTES_MAX, b"\0"),
]
DAMAGE = [
    bytes(TAIL_BYTES_MAX + 1),
    TAIL_MARK + bytes(100) + b"x",
    TAIL_MARK + b"x",
    b"\xfe" + TAIL_MARK[1:],
    bytes(100) + TAIL_MARK,
    TAIL_MARK + TAIL_MARK,
]


def test_a_mark_claims_more_bytes_than_any_file_has() -> None:
    _, size, _, magic = unpack(">qiib", TAIL_MARK)
    assert size > (1 << 31) - 2
    assert magic == 2


@pytest.mark.parametrize("tail", [b"", *TAILS])
def test_a_tail_is_told_from_damage(tail: bytes) -> None:
    assert is_tail(tail)
    assert is_tail(memoryview(tail))


@pytest.mark.parametrize("data", DAMAGE)
def test_damage_is_no_tail(data: bytes) -> None:
    assert not is_tail(data)


@pytest.mark.parametrize("tail", TAILS)
def test_a_log_that_ends_in_a_tail_lacks_nothing(tail: bytes) -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    size = bench.log.segments[-1].size
    bench.disk.open(ACTIVE).append(tail)
    bench.crash(power=False)
    assert bench.log.end_offset == 10
    assert not bench.log.was_cut
    assert not bench.said
    assert bench.disk.open(ACTIVE).size == size
    assert bench.append().first_offset == 10


@pytest.mark.parametrize("data", DAMAGE)
def test_a_log_that_ends_in_something_else_was_cut(data: bytes) -> None:
    bench = Bench(TopicConfig())
    bench.fill(10)
    bench.disk.open(ACTIVE).append(data)
    bench.crash(power=False)
    assert bench.log.end_offset == 10
    assert bench.log.was_cut
    assert "the log is cut at offset 10" in bench.said[0]


def test_a_tail_of_a_segment_that_is_not_the_last_is_cut_off_alone() -> None:
    bench = Bench(TINY)
    bench.fill(20)
    assert len(bench.log.segments) > 2
    first = bench.log.segments[0]
    size = first.size
    bench.disk.open(first.path(".log")).append(TAIL_MARK)
    bench.crash(power=False)
    assert bench.log.end_offset == 20
    assert not bench.log.was_cut
    assert bench.disk.open(first.path(".log")).size == size


def test_a_process_that_is_killed_leaves_a_tail_and_one_that_stops_does_not() -> None:
    bench = Bench(TopicConfig())
    for number in range(30):
        bench.append()
        size = bench.log.segments[-1].size
        bench.disk.kill()
        assert bench.disk.open(ACTIVE).size >= size
        bench.crash(power=False)
        assert (bench.log.end_offset, bench.log.was_cut) == (number + 1, False)
    bench.append()
    size = bench.log.segments[-1].size
    bench.log.prepare_to_close()
    bench.disk.kill()
    assert bench.disk.open(ACTIVE).size == size
    assert not bench.said


@pytest.mark.parametrize("tail", TAILS)
def test_after_a_stop_in_good_order_nothing_is_a_tail(tail: bytes) -> None:
    """Nobody leaves one then. A file that has one was copied while somebody wrote to it, and lacks what came later."""
    bench = Bench(TopicConfig())
    bench.fill(10)
    bench.log.prepare_to_close()
    bench.disk.open(ACTIVE).append(tail)
    bench.open(clean=True, recovery_point=10)
    assert bench.log.end_offset == 10
    assert bench.log.was_cut
    assert any(".damaged" in text for text in bench.said)
