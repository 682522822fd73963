"""Waiting for a condition, never for a while; and what must be soon."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

STEP_S = 0.005
STEP_S_MAX = 0.1


def eventually(condition: Callable[[], T], *, within_s: float = 30.0, what: str = "the condition") -> T:
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


def in_time(attempt: Callable[[], float], *, limit_s: float, tries: int = 3) -> None:
    """Fails unless *attempt* takes less than this, in seconds that it returns, in one of a few tries.

    A machine may stand still during any of them; what is slow by itself is slow in all.
    """
    took_s: list[float] = []
    while not took_s or took_s[-1] >= limit_s:
        assert len(took_s) < tries, f"it took {took_s} s each time, and not less than {limit_s} s"
        took_s.append(attempt())
