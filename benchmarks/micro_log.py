"""What appends and tail reads of a log cost in Python, beside the write itself and the checksum.

Run: ``python benchmarks/micro_log.py``. Times are the best of several rounds, in microseconds per call.
"""

import os
import tempfile
from collections.abc import Callable
from time import perf_counter_ns

from crc32c import crc32c

from cordwood.config.topic import TopicConfig
from cordwood.log import Log, open_log
from cordwood.ports import Instant
from cordwood.record.build import build_values
from cordwood.run.disk import RealDisk

CALLS = 5_000
ROUNDS = 5
NOW = Instant(1_700_000_000_000, 0)


def best_us(call: Callable[[], object]) -> float:
    def one_round() -> float:
        start = perf_counter_ns()
        for _ in range(CALLS):
            call()
        return (perf_counter_ns() - start) / CALLS / 1000

    return min(one_round() for _ in range(ROUNDS))


def batch_of(size: int) -> bytearray:
    return build_values([bytes(100)] * (size // 110), timestamp=NOW.wall_ms)


def measure_append(log: Log, size: int) -> None:
    batch = batch_of(size)
    view = memoryview(batch)

    def append() -> None:
        batch[:8] = bytes(8)
        log.append(view, leader_epoch=0, now=NOW)

    with tempfile.TemporaryFile() as file:
        descriptor = file.fileno()
        position = 0

        def write() -> None:
            nonlocal position
            os.pwrite(descriptor, view, position)
            position += len(view)

        whole, written, summed = best_us(append), best_us(write), best_us(lambda: crc32c(view[21:]))
    rest = whole - written - summed
    print(f"append {len(batch):>7} B: {whole:6.1f} µs = write {written:.1f} + crc {summed:.1f} + the rest {rest:.1f}")


def measure_read(log: Log) -> None:
    end = log.end_offset
    print(f"read at the tail: {best_us(lambda: log.read(end - 1, 1 << 20, up_to_offset=end)):.1f} µs")
    middle = end // 2
    print(f"read in the middle: {best_us(lambda: log.read(middle, 1 << 20, up_to_offset=end)):.1f} µs")
    print(f"nothing to read: {best_us(lambda: log.read(end, 1 << 20, up_to_offset=end)):.1f} µs")


def measure_open(directory: str) -> None:
    disk = RealDisk(directory)
    config = TopicConfig()
    start = perf_counter_ns()
    logs = [open_log(disk, f"many-{number}", config, now=NOW, clean=True) for number in range(1000)]
    created = perf_counter_ns()
    for log in logs:
        log.close()
    closed = perf_counter_ns()
    logs = [open_log(disk, f"many-{number}", config, now=NOW, clean=True) for number in range(1000)]
    opened = perf_counter_ns()
    print(f"1000 empty logs: created in {(created - start) / 1e9:.2f} s, opened in {(opened - closed) / 1e9:.2f} s")
    for log in logs:
        log.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        for size in (200, 8_000, 64_000):
            log = open_log(RealDisk(directory), f"append-{size}", TopicConfig(), now=NOW)
            measure_append(log, size)
            if size == 8_000:
                measure_read(log)
            log.close()
        measure_open(directory)


if __name__ == "__main__":
    main()
