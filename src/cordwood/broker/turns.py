"""Requests that are worked out in several turns of the loop: a few kilobytes of one can stand for gigabytes to look at.

All of them together have one step in a turn: a hundred take longer each, and keep nobody else waiting. Of the client of
one no other request is begun meanwhile, so it cannot have two of them under way.
"""

from collections import deque
from collections.abc import Callable, Iterator

from cordwood.broker.connection import Call
from cordwood.broker.timers import Timers
from cordwood.ports import Instant


class Turns:
    """Who waits for the next turn, in order."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: deque[tuple[Call, Iterator[None], Callable[[], None]]] = deque()

    def wait(self, call: Call, steps: Iterator[None], done: Callable[[], None], now: Instant) -> None:
        """Go on with *steps*, one in a turn, and then do what is *done*, unless the client goes first."""
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
    """Take a step: was it the last one?"""
    for _ in steps:
        return False
    return True
