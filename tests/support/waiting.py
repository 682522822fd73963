"""Waiting for a condition, never for a while."""

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

STEP_S = 0.005


def eventually(condition: Callable[[], T], *, within_s: float = 10.0, what: str = "the condition") -> T:
    """What *condition* returns once that is true; fails if it is not within the time."""
    pause = Event()
    deadline = monotonic() + within_s
    while not (value := condition()):
        assert monotonic() < deadline, f"{what} did not come true within {within_s} s"
        pause.wait(STEP_S)
    return value
