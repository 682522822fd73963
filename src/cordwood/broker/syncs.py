"""Syncing logs to disk, in groups: while one sync of a log runs, whatever is appended waits for the next one.

So ``flush.messages=1`` costs one fsync for each group of requests, not one for each request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cordwood.effects import Effect, Sync
from cordwood.log.log import SyncJob
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, Syncable

NOTHING = -1


@dataclass(slots=True)
class Waiting:
    """A continuation that runs when several logs have all been synced far enough."""

    left: int
    go_on: Callable[[], None]


@dataclass(slots=True)
class Running:
    """A running sync of one log, and who waits for it or for the one after it."""

    partition: Partition
    job: SyncJob
    waiting: list[tuple[int, Waiting]] = field(default_factory=list)
    again: bool = False


class Syncs:
    """The running syncs, at most one for each log."""

    def __init__(self) -> None:
        self._pending: dict[int, Callable[[list[Effect], Instant], None]] = {}
        self._logs: dict[Partition, Running] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._pending)

    def sync(
        self, files: Sequence[Syncable], then: Callable[[list[Effect], Instant], None], effects: list[Effect]
    ) -> None:
        """Sync any files, and *then* continue."""
        self._count += 1
        self._pending[self._count] = then
        effects.append(Sync(self._count, files))

    def done(self, token: int, effects: list[Effect], now: Instant) -> None:
        self._pending.pop(token)(effects, now)

    def wait(self, partitions: Sequence[Partition], go_on: Callable[[], None], effects: list[Effect]) -> None:
        """Sync these logs up to their current ends, and then call *go_on*."""
        waiting = Waiting(len(partitions), go_on)
        for partition in partitions:
            running = self.start(partition, effects)
            running.waiting.append((partition.log.end_offset, waiting))

    def start(self, partition: Partition, effects: list[Effect]) -> Running:
        """Sync a log up to its current end; if it is being synced already, once more afterwards."""
        running = self._logs.get(partition)
        if running is None:
            running = self._logs[partition] = Running(partition, partition.log.files_to_sync())
            self._send(running, effects)
        else:
            running.again = True
        return running

    def _send(self, running: Running, effects: list[Effect]) -> None:
        self.sync(running.job.files, lambda effects, now: self._synced(running, effects, now), effects)

    def _synced(self, running: Running, effects: list[Effect], now: Instant) -> None:
        partition = running.partition
        if not partition.gone:
            partition.log.synced(running.job, now)
            partition.advance(now.mono_ms)
        self._wake(running)
        if (running.again or running.waiting) and not partition.gone:
            running.again = False
            running.job = partition.log.files_to_sync()
            self._send(running, effects)
        else:
            del self._logs[partition]

    def _wake(self, running: Running) -> None:
        """Let those continue whose records are safe. If the log was cut meanwhile, they wait for what is left of it."""
        partition, job = running.partition, running.job
        up_to = job.up_to if job.generation == partition.log.generation else NOTHING
        still = []
        for offset, waiting in running.waiting:
            if min(offset, partition.log.end_offset) <= up_to or partition.gone:
                waiting.left -= 1
                if waiting.left == 0:
                    waiting.go_on()
            else:
                still.append((offset, waiting))
        running.waiting = still
