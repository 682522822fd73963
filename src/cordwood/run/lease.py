"""How long it is certain that this broker still has its session with the shared metadata store.

A process that was stopped for a while (SIGSTOP, a hanging machine) continues with the requests in its sockets before
any other thread has found out that its session has ended and others lead now. So the lease is checked before each
request is handled; as long as it is not over, that only takes comparing two numbers.
"""

from collections.abc import Callable
from math import isinf

from cordwood.broker.timers import NEVER


class Lease:
    """Reports, once for each session, that it is over."""

    __slots__ = ("_certain_until_s", "_ended", "due_ms")

    def __init__(self, certain_until_s: Callable[[], float], ended: Callable[[], None]) -> None:
        """
        Args:
            certain_until_s: returns the time on the monotonic clock until which the session is certain, as known now.
            ended: called once that time has passed.
        """
        self._certain_until_s = certain_until_s
        self._ended = ended
        self.due_ms = 0
        """When to call ``look``."""

    def renew(self) -> None:
        """There is a session."""
        self.due_ms = 0

    def rest(self) -> None:
        """There is no session, and that is known: report nothing until there is one again."""
        self.due_ms = NEVER

    def look(self, now_ms: int) -> None:
        """The lease may be over: if so, report that before anything else happens."""
        end_ms = self._certain_until_s() * 1000
        if now_ms < end_ms:
            self.due_ms = NEVER if isinf(end_ms) else int(end_ms)
        else:
            self.rest()
            self._ended()
