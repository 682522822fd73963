"""A log that is compacted, with short words for what tests do to it."""

from collections.abc import Sequence
from dataclasses import replace

from cordwood.config.topic import TopicConfig
from cordwood.log.compaction import Compaction, Limits
from cordwood.log.compaction_plan import Cleanable, cleanable, first_dirty_offset
from cordwood.ports import Instant
from cordwood.record.batch import BatchHeader, Codec, batches
from cordwood.record.build import Record, build, records
from cordwood.record.control import ControlType, EndMarker
from log.builders import TINY, Bench

COMPACT = replace(TINY, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000)

Write = tuple[bytes | None, bytes | None]


class Table(Bench):
    """A log of keys and values. Every call of ``put`` is one batch."""

    def __init__(self, config: TopicConfig = COMPACT, *, seed: int = 1) -> None:
        super().__init__(config, seed=seed)

    def put(
        self,
        *writes: Write,
        codec: Codec = Codec.NONE,
        producer: tuple[int, int, int] = (-1, -1, -1),
        transactional: bool = False,
        timestamps: Sequence[int] | None = None,
        log_append_time: bool = False,
    ) -> int:
        """Append one batch; its first offset."""
        times = timestamps or [self.now.wall_ms] * len(writes)
        contents = [Record(n, times[n], key, value) for n, (key, value) in enumerate(writes)]
        producer_id, producer_epoch, sequence = producer
        batch = build(
            contents,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        config = self.log.config
        if any(key is None for key, _ in writes) or log_append_time:
            kind = "LogAppendTime" if log_append_time else "CreateTime"
            self.log.update_config(replace(config, cleanup_policy=("delete",), message_timestamp_type=kind))
        result = self.log.append(memoryview(batch), leader_epoch=0, now=self.now, transaction_verified=transactional)
        self.log.update_config(config)
        return result.first_offset

    def end(self, kind: ControlType, producer_id: int, epoch: int = 0) -> int:
        marker = EndMarker(kind, 0, self.now.wall_ms)
        return self.log.append_marker(
            marker, producer_id=producer_id, producer_epoch=epoch, leader_epoch=0, now=self.now
        ).first_offset

    def roll(self) -> None:
        """Complete the active segment, and sync it."""
        self.log.roll(self.now)
        self.sync()

    def pass_ms(self, ms: int) -> None:
        self.now = Instant(self.now.wall_ms + ms, self.now.mono_ms + ms)

    def cleanable(self) -> Cleanable | None:
        return cleanable(self.log, high_watermark=self.log.end_offset, now_ms=self.now.wall_ms)

    def plan(self, *, keys_max: int = 10_000, chunk_bytes: int = 1000) -> Compaction:
        part = self.cleanable()
        assert part is not None, "there is nothing to compact"
        return Compaction(self.log, part, Limits(keys_max, chunk_bytes), self.now)

    def finish(self, compaction: Compaction) -> list[str]:
        deleted = [path for swap in compaction.swaps for path in self.log.swap_in(swap)]
        self.log.cleaned_to = compaction.cleaned_to
        return deleted

    def compact(self, *, keys_max: int = 10_000, chunk_bytes: int = 1000) -> Compaction:
        """Compact once what can be."""
        compaction = self.plan(keys_max=keys_max, chunk_bytes=chunk_bytes)
        work(compaction)
        assert compaction.fits(self.log)
        for path in self.finish(compaction):
            self.disk.remove(path)
        self.log.check()
        self.check_ends()
        return compaction

    def check_ends(self) -> None:
        """Every segment ends where the next one begins."""
        for segment, after in zip(self.log.segments, self.log.segments[1:], strict=False):
            ends = [header.next_offset for _, header in batches(memoryview(segment.file.read(0, segment.size)))]
            assert ends[-1] == after.base_offset

    def stored(self, offset: int | None = None) -> list[tuple[BatchHeader, list[Record]]]:
        """Every batch that a reader gets from *offset* on, with its records."""
        found = []
        offset = self.log.log_start_offset if offset is None else offset
        while (piece := self.log.read(offset, 300, up_to_offset=self.log.end_offset)) is not None:
            for batch, header in batches(memoryview(piece.read())):
                found.append((header, list(records(batch, header, limit=1 << 20))))
                offset = header.next_offset
        return found

    def all(self, offset: int | None = None) -> list[tuple[int, bytes | None, bytes | None]]:
        return [
            (r.offset, r.key, r.value)
            for _, contents in self.stored(offset)
            for r in contents
            if offset is None or r.offset >= offset
        ]

    def data(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """The records that are not control records."""
        return [(r.offset, r.key, r.value) for h, contents in self.stored() for r in contents if not h.is_control]

    @property
    def first_dirty(self) -> int:
        return first_dirty_offset(self.log)


def work(compaction: Compaction) -> None:
    for _ in compaction.work():
        pass
