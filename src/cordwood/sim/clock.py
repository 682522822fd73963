"""Time under a seed: a queue of future events, and two clocks that jump to whichever comes next.

Nothing ever waits. Events due at the same millisecond happen in an order that the seed chooses.
"""

import heapq
from collections.abc import Callable
from random import Random

from cordwood.ports import Instant

MONO_START_MS = 1_000
WALL_START_MS = 1_700_000_000_000

Action = Callable[[], None]


class SimClock:
    """The monotonic clock, the wall clock, and all future events."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._mono_ms = MONO_START_MS
        self._wall_ms = WALL_START_MS
        self._count = 0
        self._queue: list[tuple[int, float, int, str, Action]] = []

    @property
    def now(self) -> Instant:
        return Instant(self._wall_ms, self._mono_ms)

    def __len__(self) -> int:
        return len(self._queue)

    def after(self, delay_ms: int, what: str, action: Action) -> None:
        """Schedule an action. *what* is its line in the trace."""
        assert delay_ms >= 0
        self._count += 1
        entry = (self._mono_ms + delay_ms, self._random.random(), self._count, what, action)
        heapq.heappush(self._queue, entry)

    def step(self) -> tuple[str, Action]:
        """Jump to the next event that is due. The caller must carry it out."""
        due_ms, _, _, what, action = heapq.heappop(self._queue)
        assert due_ms >= self._mono_ms, "time does not go back"
        self._wall_ms += due_ms - self._mono_ms
        self._mono_ms = due_ms
        return what, action

    def shift_wall(self, ms: int) -> None:
        """Somebody sets the wall clock, as a time server may, forward or back."""
        self._wall_ms += ms
