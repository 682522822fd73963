"""Anything in any order, with the power failing at any point, against a list of batches.

After a crash the log must be a first part of what it was at some moment since the last sync: all of it, if nothing was
lost. What was synced and not truncated since must be there.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cordwood.log import open_log
from cordwood.log.scan import headers
from cordwood.ports import Instant
from cordwood.record.batch import BatchHeader
from cordwood.record.build import Record, build
from cordwood.sim.disk import PowerLost
from log.builders import DIRECTORY, TINY, Bench, batch_of

CONFIG = replace(TINY, segment_bytes=350, index_interval_bytes=100, flush_messages=10**9)
PRODUCERS = (5, 6)


class Stored(NamedTuple):
    """A batch as the model knows it."""

    first: int
    last: int
    epoch: int
    timestamp: int
    producer: tuple[int, int, int] | None


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Stored] = []
        self.pasts: list[list[Stored]] = []
        """What the log was before each truncation since the last sync."""
        self.safe = 0
        """Everything before this offset was synced and not truncated since."""
        self.start = 0
        self.epoch = 0
        self.clock = 1000
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.checkpoint = (0, 0)

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.bench = Bench(CONFIG, seed=seed)

    @property
    def now(self) -> Instant:
        return Instant(self.clock, self.clock)

    @property
    def end(self) -> int:
        return self.bench.log.end_offset

    @rule(count=st.integers(1, 4), late_ms=st.integers(-50, 50), producer=st.sampled_from([None, *PRODUCERS]))
    def append(self, count: int, late_ms: int, producer: int | None) -> None:
        self.clock += 10
        named = None if producer is None else (producer, 0, self.sequences[producer])
        stored = Stored(self.end, self.end + count - 1, self.epoch, self.clock + late_ms, named)
        contents = [Record(n, stored.timestamp, b"k", b"v") for n in range(count)]
        result = self.bench.log.append(batch_of(contents, producer=named), leader_epoch=self.epoch, now=self.now)
        assert (result.first_offset, result.last_offset, result.duplicate) == (stored.first, stored.last, False)
        self.batches.append(stored)
        if producer is not None:
            self.sequences[producer] += count

    @rule(gaps=st.lists(st.integers(0, 3), min_size=1, max_size=6))
    def append_as_follower(self, gaps: list[int]) -> None:
        data = bytearray()
        offset = self.end
        for gap in gaps:
            self.clock += 1
            offset += gap
            data += build([Record(offset, self.clock, b"k", b"v")], leader_epoch=self.epoch)
            self.batches.append(Stored(offset, offset, self.epoch, self.clock, None))
            offset += 1
        self.bench.log.append_as_follower(memoryview(data), now=self.now)

    @rule()
    def elect(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.bench.log.roll(self.now)

    @rule()
    def sync(self) -> None:
        job = self.bench.log.files_to_sync()
        for file in job.files:
            file.sync()
        self.bench.log.synced(job, self.now)
        self.safe = self.end
        self.pasts.clear()
        assert self.bench.log.unflushed_messages == 0

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = (self.bench.log.recovery_checkpoint, self.bench.log.log_start_offset)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.batches) - 1))
        target = self.batches[number].first
        assume(target >= self.bench.log.segments[0].base_offset)
        self.pasts.append(list(self.batches))
        del self.batches[number:]
        self.safe = min([self.safe, *(b.last + 1 for b in self.batches[-1:])]) if self.batches else 0
        self.forget_sequences()
        for path in self.bench.log.truncate(target, self.now):
            self.bench.disk.remove(path)
        assert self.end == max([self.bench.log.segments[-1].base_offset, *(b.last + 1 for b in self.batches[-1:])])
        self.start = min(self.start, self.end)
        self.write_checkpoint()

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def advance_start(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start + 1, self.end))
        self.bench.log.advance_start(self.start, high_watermark=self.end)

    @rule(retention_ms=st.integers(0, 500), retention_bytes=st.sampled_from([-1, 0, 300, 900]))
    def retain(self, retention_ms: int, retention_bytes: int) -> None:
        config = replace(CONFIG, retention_ms=retention_ms, retention_bytes=retention_bytes)
        self.bench.log.update_config(config)
        for path in self.bench.log.delete_old_segments(self.now, high_watermark=self.end):
            self.bench.disk.remove(path)
        self.start = max(self.start, self.bench.log.segments[0].base_offset)
        self.bench.log.update_config(CONFIG)

    @rule()
    def stop_and_start(self) -> None:
        job = self.bench.log.prepare_to_close()
        for file in job.files:
            file.sync()
        self.bench.log.close()
        self.safe = self.end
        self.pasts.clear()
        self.checkpoint = (self.end, self.start)
        self.open(clean=True)
        self.checkpoint = (self.bench.log.recovery_checkpoint, self.start)

    @rule()
    def lose_power(self) -> None:
        self.bench.disk.crash()
        self.come_back()

    @rule(delay=st.integers(0, 12), data=st.data())
    def lose_power_in_the_middle(self, delay: int, data: st.DataObject) -> None:
        actions: list[Callable[[], None]] = [
            lambda: self.append(1, 0, None),
            lambda: self.append_as_follower([0, 1, 0, 0, 0]),
            self.roll,
            self.sync,
            lambda: self.retain(0, -1),
            self.stop_and_start,
        ]
        if self.batches and self.batches[-1].first >= self.bench.log.segments[0].base_offset:
            actions.append(lambda: self.truncate(data))
        action = data.draw(st.sampled_from(actions))
        before = (self.safe, list(self.batches), self.start)
        self.bench.disk.power_fails_after = delay
        try:
            action()
        except PowerLost:
            self.safe = min(self.safe, before[0])
            self.pasts.append(before[1])
            self.bench.disk.crash()
            self.come_back()
        finally:
            self.bench.disk.power_fails_after = None

    @rule(delay=st.integers(0, 12))
    def lose_power_again_while_coming_back(self, delay: int) -> None:
        self.bench.disk.crash()
        self.bench.disk.power_fails_after = delay
        try:
            self.come_back()
        except PowerLost:
            self.bench.disk.crash()
            self.come_back()
        finally:
            self.bench.disk.power_fails_after = None

    def come_back(self) -> None:
        recovery_point, start = self.checkpoint
        self.bench.log = open_log(
            self.bench.disk,
            DIRECTORY,
            CONFIG,
            now=self.now,
            recovery_point=recovery_point,
            log_start_offset=start,
        )
        log = self.bench.log
        log.check()
        self.start = log.log_start_offset
        base_offset = log.segments[0].base_offset
        found = [stored(header) for segment in log.segments for _, header in headers(segment.file, 0, segment.size)]
        self.pasts.append(self.batches)
        matching = [past for past in self.pasts if found == part(past, base_offset, log.end_offset)]
        assert matching, "a first part of what was"
        assert log.end_offset >= self.safe, "what was synced is there"
        self.batches = [batch for batch in matching[-1] if batch.last < log.end_offset]
        if recovery_point > log.end_offset:
            self.write_checkpoint()  # as the log directory does
        self.epoch = max(self.epoch, log.latest_epoch)
        self.forget_sequences()

    def open(self, *, clean: bool) -> None:
        recovery_point, start = self.checkpoint
        self.bench.open(clean=clean, recovery_point=recovery_point, log_start_offset=start)

    def forget_sequences(self) -> None:
        """Go on where the producers' last batches that are still there end."""
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        for batch in self.batches:
            if batch.producer is not None:
                self.sequences[batch.producer[0]] = batch.producer[2] + batch.last - batch.first + 1

    @invariant()
    def everything_agrees(self) -> None:
        log = self.bench.log
        log.check()
        assert log.log_start_offset == self.start
        whole = [batch for batch in self.batches if batch.last >= self.start]
        assert [stored(header) for header in self.bench.headers()] == whole
        epochs = {batch.epoch for batch in whole}
        assert log.latest_epoch in epochs or not whole
        for timestamp in (0, self.clock - 30, self.clock):
            found = log.find_timestamp(timestamp)
            expected = next((b for b in whole if b.timestamp >= timestamp), None)
            assert (None if found is None else found.offset) == (expected and max(expected.first, self.start))


def stored(header: BatchHeader) -> Stored:
    producer = (header.producer_id, header.producer_epoch, header.base_sequence) if header.producer_id >= 0 else None
    return Stored(header.base_offset, header.last_offset, header.leader_epoch, header.max_timestamp, producer)


def part(past: list[Stored], start: int, end: int) -> list[Stored]:
    return [batch for batch in past if start <= batch.last < end]


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
