"""Requests that are worked on over several turns of the loop: a few kilobytes can ask for gigabytes to be looked at.

All of them together get one step in a turn: with a hundred of them, each takes longer, but nobody else has to wait.
While a client has such a request, no other request on its connection is begun, so it cannot have two of them in
progress.
"""

from collections import deque
from collections.abc import Callable, Iterator

from cordwood.broker.connection import Call
from cordwood.broker.timers import Timers
from cordwood.ports import Instant


class Turns:
    """The requests that wait for their next step, in order."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: deque[tuple[Call, Iterator[None], Callable[[], None]]] = deque()

    def wait(self, call: Call, steps: Iterator[None], done: Callable[[], None], now: Instant) -> None:
        """Continue with *steps*, one in a turn, and call *done* at the end, unless the client disconnects first."""
        call.connection.takes_turns = True
        self._waiting.append((call, steps, done))
        if len(self._waiting) == 1:
            self._timers.at(now.mono_ms + 1, self._next)

    def _next(self, now: Instant) -> None:
        call, steps, done = self._waiting[0]
        if call.connection.closed or _is_last(steps):
            self._waiting.popleft()
            call.connection.takes_turns = False
            if not call.connection.closed:
                done()
        else:
            self._waiting.rotate(-1)
        if self._waiting:
            self._timers.at(now.mono_ms + 1, self._next)

    def check(self) -> None:
        for call, _, _ in self._waiting:
            assert call.connection.takes_turns


def _is_last(steps: Iterator[None]) -> bool:
    """Take a step. True: there was none left to take."""
    for _ in steps:
        return False
    return True
