"""Which log is compacted next, and what happens to the result.

Logs are compacted one at a time: of those with a dirty part that is large enough, or too old, the one with the largest.
The work itself is done elsewhere (``log/compaction``) while this broker carries on. By the time it is finished, the log
may have been truncated, or lost segments to retention, or be gone: then the result is of no use, and is thrown away.

A log that could not be compacted is left alone for a while; the attempt has done it no harm.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from cordwood.effects import Compact
from cordwood.errors import CorruptData, StorageError
from cordwood.log.compaction import Compaction, Limits
from cordwood.log.compaction_keys import keys_max
from cordwood.log.compaction_plan import Cleanable, cleanable, is_due
from cordwood.partition.partition import Partition

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

RETRY_MS = 600_000
CHUNK_BYTES_MIN = 64 * 1024


class Running(NamedTuple):
    """A compaction in progress."""

    token: int
    partition: Partition
    compaction: Compaction


class Compactor:
    """Compacts the logs that need it, one after the other."""

    def __init__(self) -> None:
        self._running: Running | None = None
        self._count = 0
        self._failed: dict[Partition, int] = {}
        """Logs that could not be compacted, and until when they are left alone."""

    def start(self, broker: "Broker") -> None:
        if broker.config.log_cleaner_enable:
            self._rest(broker)

    def done(self, broker: "Broker", token: int, error: StorageError | CorruptData | None) -> None:
        """The work is done, or has failed. Continue with the next log."""
        running, self._running = self._running, None
        assert running is not None, "only what was begun is done"
        assert running.token == token, "one at a time"
        partition, compaction = running.partition, running.compaction
        if partition.gone or not compaction.fits(partition.log):
            self._throw_away(broker, running)
        elif error is not None:
            self._failed_at(broker, partition, error)
        else:
            self._swap_in(broker, partition, compaction)
        self._go_on(broker)

    def check(self) -> None:
        running = self._running
        assert running is None or running.partition not in self._failed, "what failed is left alone"
        assert running is None or running.token == self._count, "one at a time"

    def _go_on(self, broker: "Broker") -> None:
        """Start on the log that needs it most; if none does, rest."""
        assert self._running is None, "one at a time"
        chosen = self._choose(broker) if broker.config.log_cleaner_threads else None
        if chosen is None:
            self._rest(broker)
            return
        partition, part = chosen
        config = broker.config
        limits = Limits(
            keys_max(config.log_cleaner_dedupe_buffer_size, config.log_cleaner_io_buffer_load_factor),
            max(config.log_cleaner_io_buffer_size // 2, CHUNK_BYTES_MIN),
        )
        self._count += 1
        compaction = Compaction(partition.log, part, limits, broker.now)
        self._running = Running(self._count, partition, compaction)
        broker.effects.append(Compact(self._count, compaction.work()))

    def _rest(self, broker: "Broker") -> None:
        deadline_ms = broker.now.mono_ms + max(broker.config.log_cleaner_backoff_ms, 1)
        broker.timers.at(deadline_ms, lambda _: self._go_on(broker))

    def _choose(self, broker: "Broker") -> tuple[Partition, Cleanable] | None:
        now = broker.now
        self._failed = {p: until_ms for p, until_ms in self._failed.items() if until_ms > now.mono_ms and not p.gone}
        best: tuple[Partition, Cleanable] | None = None
        for partition in broker.replicas.all():
            log = partition.log
            if "compact" not in log.config.cleanup_policy or partition in self._failed:
                continue
            try:
                part = cleanable(log, high_watermark=partition.high_watermark, now_ms=now.wall_ms)
            except (StorageError, CorruptData) as error:
                self._failed_at(broker, partition, error)
                continue
            if part is None or not is_due(log, part):
                continue
            if best is None or part.dirty_ratio > best[1].dirty_ratio:
                best = partition, part
        return best

    def _swap_in(self, broker: "Broker", partition: Partition, compaction: Compaction) -> None:
        files: list[str] = []
        try:
            while compaction.swaps:
                files += partition.log.swap_in(compaction.swaps[0])
                del compaction.swaps[0]
        except StorageError as error:
            del compaction.swaps[0]
            files += _discarded(compaction)
            self._failed_at(broker, partition, error)
        else:
            partition.log.cleaned_to = compaction.cleaned_to
            broker.logger.info("%s is compacted: %s", partition.name, compaction)
            broker.replicas.checkpoint(broker)
        broker.replicas.remove_later(broker, partition, files)

    def _failed_at(self, broker: "Broker", partition: Partition, error: Exception) -> None:
        broker.logger.error("%s could not be compacted: %s", partition.name, error)
        self._failed[partition] = broker.now.mono_ms + RETRY_MS

    def _throw_away(self, broker: "Broker", running: Running) -> None:
        """The log has changed in the meantime. It will be considered again like any other."""
        broker.logger.debug("%s changed while it was compacted", running.partition.name)
        broker.replicas.remove_later(broker, running.partition, _discarded(running.compaction))


def _discarded(compaction: Compaction) -> list[str]:
    """Rename what is no longer wanted, so that no later work takes it for its own. Returns the paths to remove."""
    files: list[str] = []
    for swap in compaction.swaps:
        with suppress(StorageError):  # it is gone with its topic
            files += swap.cleaned.mark_deleted()
    return files
