"""Things to do later, as data: a heap of deadlines that the driver asks about and drives."""

import heapq
from collections.abc import Callable

from cordwood.ports import Instant

Action = Callable[[Instant], None]

NEVER = 1 << 63


class Timer:
    """One thing to do at a time. Cancelled, it stays in the heap and does nothing."""

    __slots__ = ("action", "deadline_ms")

    def __init__(self, deadline_ms: int, action: Action | None) -> None:
        self.deadline_ms = deadline_ms
        self.action = action

    def cancel(self) -> None:
        self.action = None


class Timers:
    """Timers in the order of their deadlines, on the monotonic clock; equal deadlines in the order they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self.due_ms = NEVER
        """When to call ``run_due``: at the earliest deadline, or before it if that timer was cancelled."""

    def at(self, deadline_ms: int, action: Action) -> Timer:
        timer = Timer(deadline_ms, action)
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
        self.due_ms = heap[0][0] if heap else NEVER

    def __len__(self) -> int:
        return len(self._heap)
