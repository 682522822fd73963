"""A log on a simulated disk, with short words for what tests do to it."""

from collections.abc import Sequence
from random import Random

import pytest

from cordwood.config.topic import TopicConfig
from cordwood.errors import Error, Refused
from cordwood.log import AppendResult, Log, open_log
from cordwood.log.producers import CompletedTransaction
from cordwood.ports import Instant
from cordwood.record.batch import BatchHeader, batches
from cordwood.record.build import Record, build, records
from cordwood.sim.disk import SimDisk

DIRECTORY = "topic-0"
START_MS = 1_000_000

TINY = TopicConfig(segment_bytes=400, index_interval_bytes=150, retention_ms=-1)
"""About five small batches to a segment, every second one of them indexed."""


def instant(ms: int = START_MS) -> Instant:
    return Instant(ms, ms)


def outcome(result: AppendResult | None) -> tuple[int, int, int, int, bool, CompletedTransaction | None]:
    """All that an append tells."""
    assert result is not None
    return (
        result.first_offset,
        result.last_offset,
        result.log_append_time_ms,
        result.log_start_offset,
        result.duplicate,
        result.completed,
    )


class Bench:
    """A disk, the log on it, and the time."""

    def __init__(self, config: TopicConfig = TINY, *, seed: int = 1) -> None:
        self.disk = SimDisk(Random(seed))
        self.config = config
        self.now = instant()
        self.said: list[str] = []
        """Warnings of the log."""
        self.log = self.open()

    def open(
        self, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0, check: bool = True
    ) -> Log:
        self.log = open_log(
            self.disk,
            DIRECTORY,
            self.config,
            now=self.now,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            logger=self,
        )
        if check:
            self.log.check()
        return self.log

    def warning(self, msg: str, /, *args: object) -> None:
        self.said.append(msg % args)

    debug = info = error = warning

    def append(
        self,
        count: int = 1,
        *,
        timestamp: int | None = None,
        epoch: int = 0,
        producer: tuple[int, int, int] | None = None,
        value: bytes = b"value",
        key: bytes | None = b"key",
        transactional: bool = False,
    ) -> AppendResult:
        """Append one batch of *count* records; *producer* is its id, epoch and first sequence number."""
        time = self.now.wall_ms if timestamp is None else timestamp
        batch = batch_of(
            [Record(n, time, key, value) for n in range(count)], producer=producer, transactional=transactional
        )
        return self.log.append(batch, leader_epoch=epoch, now=self.now, transaction_verified=transactional)

    def fill(self, batch_count: int, *, each: int = 1, epoch: int = 0) -> None:
        for _ in range(batch_count):
            self.append(each, epoch=epoch)

    def sync(self) -> None:
        job = self.log.files_to_sync()
        for file in job.files:
            file.sync()
        self.log.synced(job, self.now)

    def restart(self) -> Log:
        """Close in good order and open again."""
        job = self.log.prepare_to_close()
        for file in job.files:
            file.sync()
        self.log.close()
        return self.open(clean=True, recovery_point=self.log.end_offset, log_start_offset=self.log.log_start_offset)

    def crash(self, *, power: bool = True) -> Log:
        """Lose the power, or only the process, and open again with what the last checkpoint said."""
        checkpoint, start = self.log.recovery_checkpoint, self.log.log_start_offset
        if power:
            self.disk.crash()
        return self.open(recovery_point=checkpoint, log_start_offset=start)

    def headers(self) -> list[BatchHeader]:
        """Of all batches that a reader gets who reads from start to end."""
        found: list[BatchHeader] = []
        offset = self.log.log_start_offset
        while (piece := self.log.read(offset, 10_000, up_to_offset=self.log.end_offset)) is not None:
            read = [header for _, header in batches(memoryview(piece.read()))]
            found += [header for header in read if header.last_offset >= offset]
            offset = read[-1].next_offset
        return found

    def offsets(self) -> list[int]:
        return [o for header in self.headers() for o in range(header.base_offset, header.next_offset)]

    def names(self, suffix: str) -> list[int]:
        """The offsets in the names of the files with this suffix."""
        return [int(name.split(".")[0]) for name in self.disk.list(DIRECTORY) if name.endswith(suffix)]


def batch_of(
    contents: Sequence[Record], *, producer: tuple[int, int, int] | None = None, transactional: bool = False
) -> memoryview:
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    return memoryview(
        build(
            contents,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def read_values(log: Log, offset: int) -> list[bytes | None]:
    """The values of the batch that has *offset*."""
    piece = log.read(offset, 0, up_to_offset=log.end_offset)
    assert piece is not None
    ((batch, header),) = batches(memoryview(piece.read()))
    return [record.value for record in records(batch, header, limit=1 << 20)]


class refused:
    """``with refused(Error.X):`` the block is refused with that error."""

    def __init__(self, error: Error) -> None:
        self._error = error
        self._raises = pytest.raises(Refused)

    def __enter__(self) -> None:
        self._caught = self._raises.__enter__()

    def __exit__(self, *exception: object) -> bool:
        swallowed = bool(self._raises.__exit__(*exception))  # type: ignore[arg-type]
        assert self._caught.value.error is self._error
        return swallowed
