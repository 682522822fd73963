"""Bringing logs to the disk, in groups: while one sync of a log runs, whatever is appended waits for the next one.

So ``flush.messages=1`` costs one fsync for each group of requests, not one for each request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cordwood.effects import Effect, Sync
from cordwood.partition.partition import Partition


@dataclass(slots=True)
class Waiting:
    """Somebody who goes on when all of several logs are synced far enough."""

    left: int
    go_on: Callable[[], None]


@dataclass(slots=True)
class Running:
    """One log's sync under way: up to where, and who waits for it or for the one after it."""

    partition: Partition
    up_to: int
    waiting: list[tuple[int, Waiting]] = field(default_factory=list)
    again: bool = False


class Syncs:
    """The syncs under way, at most one for each log."""

    def __init__(self) -> None:
        self._running: dict[int, Running] = {}
        self._by_partition: dict[Partition, Running] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._running)

    def wait(self, partitions: Sequence[Partition], go_on: Callable[[], None], effects: list[Effect]) -> None:
        """Sync these logs up to their present ends, then *go_on*."""
        waiting = Waiting(len(partitions), go_on)
        for partition in partitions:
            running = self.start(partition, effects)
            running.waiting.append((partition.log.end_offset, waiting))

    def start(self, partition: Partition, effects: list[Effect]) -> Running:
        """Sync a log up to its present end; if a sync is running already, once more after it."""
        running = self._by_partition.get(partition)
        if running is None:
            running = self._by_partition[partition] = Running(partition, partition.log.end_offset)
            self._send(running, effects)
        else:
            running.again = True
        return running

    def _send(self, running: Running, effects: list[Effect]) -> None:
        self._count += 1
        self._running[self._count] = running
        running.up_to = running.partition.log.end_offset
        running.again = False
        effects.append(Sync(self._count, running.partition.log.files_to_sync()))

    def done(self, token: int, effects: list[Effect]) -> None:
        running = self._running.pop(token)
        partition = running.partition
        if not partition.gone:
            partition.log.synced(running.up_to)
            if partition.high_watermark < running.up_to:
                partition.commit(running.up_to)
        self._wake(running)
        if running.again and not partition.gone:
            self._send(running, effects)
        else:
            del self._by_partition[partition]

    def _wake(self, running: Running) -> None:
        still = []
        for offset, waiting in running.waiting:
            if offset <= running.up_to or running.partition.gone:
                waiting.left -= 1
                if waiting.left == 0:
                    waiting.go_on()
            else:
                still.append((offset, waiting))
        running.waiting = still
