"""Things to do later, as data: a heap of deadlines that the driver asks about and drives."""

import heapq
from collections.abc import Callable
from typing import Final

from cordwood.ports import Instant

Action = Callable[[Instant], None]

NEVER: Final = 1 << 63


CANCELLED_MAX: Final = 1000
"""Cancelled timers are removed once there are more of them than this, and more than live ones."""


class Timer:
    """An action to run once at a certain time. Once cancelled, it does nothing, and leaves the heap sooner or later."""

    __slots__ = ("_timers", "action", "deadline_ms")

    def __init__(self, timers: "Timers", deadline_ms: int, action: Action | None) -> None:
        self._timers = timers
        self.deadline_ms = deadline_ms
        self.action = action

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            self._timers.cancelled()


class Timers:
    """Timers in the order of their deadlines, on the monotonic clock; equal deadlines in the order they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._cancelled = 0
        self.due_ms = NEVER
        """When to call ``run_due``: at the earliest deadline, or before it if that timer was cancelled."""

    def at(self, deadline_ms: int, action: Action) -> Timer:
        timer = Timer(self, deadline_ms, action)
        self._count += 1
        heapq.heappush(self._heap, (deadline_ms, self._count, timer))
        if deadline_ms < self.due_ms:
            self.due_ms = deadline_ms
        return timer

    def every(self, period_ms: int, action: Action, *, now: Instant) -> None:
        """Repeat *action*, each time *period_ms* after it last ran, but no more than once in a millisecond."""
        period_ms = max(period_ms, 1)

        def run(moment: Instant) -> None:
            self.at(moment.mono_ms + period_ms, run)
            action(moment)

        self.at(now.mono_ms + period_ms, run)

    def run_due(self, now: Instant) -> None:
        heap = self._heap
        while heap and (heap[0][0] <= now.mono_ms or heap[0][2].action is None):
            timer = heapq.heappop(heap)[2]
            action, timer.action = timer.action, None
            if action is not None:
                action(now)
            else:
                self._cancelled -= 1
        self.due_ms = heap[0][0] if heap else NEVER

    def cancelled(self) -> None:
        """One more timer in the heap does nothing. Clients choose deadlines, so many of them may be days away."""
        self._cancelled += 1
        if self._cancelled > CANCELLED_MAX and self._cancelled > len(self._heap) // 2:
            # In place: ``run_due`` may be iterating over it.
            self._heap[:] = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)
