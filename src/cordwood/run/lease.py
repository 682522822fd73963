"""How long it is certain that this broker still has its session with the store that others share.

A process that was stopped for a while (SIGSTOP, a machine that hangs) goes on with the requests that wait in its
sockets, before any other thread has found out that its session ended meanwhile and others lead by now. So the lease is
looked at before a request is dealt with: by a comparison of two numbers, as long as it is not over.
"""

from collections.abc import Callable
from math import isinf

from cordwood.broker.timers import NEVER


class Lease:
    """Tells once, for each session, that it is over."""

    __slots__ = ("_certain_until_s", "_ended", "due_ms")

    def __init__(self, certain_until_s: Callable[[], float], ended: Callable[[], None]) -> None:
        """
        Args:
            certain_until_s: until when on the monotonic clock the session is certain, as far as is known now.
            ended: called when that has gone by.
        """
        self._certain_until_s = certain_until_s
        self._ended = ended
        self.due_ms = 0
        """When to ``look``."""

    def renew(self) -> None:
        """There is a session."""
        self.due_ms = 0

    def rest(self) -> None:
        """There is none, and everybody knows: nothing more is said until there is one."""
        self.due_ms = NEVER

    def look(self, now_ms: int) -> None:
        """The lease may be over: then this is said before anything else happens."""
        end_ms = self._certain_until_s() * 1000
        if now_ms < end_ms:
            self.due_ms = NEVER if isinf(end_ms) else int(end_ms)
        else:
            self.rest()
            self._ended()
