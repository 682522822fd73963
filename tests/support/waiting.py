"""Waiting for a condition, never for a while."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

STEP_S = 0.005
STEP_S_MAX = 0.1


def eventually(condition: Callable[[], T], *, within_s: float = 10.0, what: str = "the condition") -> T:
    """What *condition* returns once that is true; fails if it is not within the time."""
    pause = Event()
    deadline = monotonic() + within_s
    begin = monotonic()
    while not (value := condition()):
        end = monotonic()
        assert end < deadline, f"{what} did not come true within {within_s} s"
        # Whoever takes long to look looks less often, or what it waits for would have to wait for it.
        pause.wait(min(max(STEP_S, 4 * (end - begin)), STEP_S_MAX))
        begin = monotonic()
    return value
