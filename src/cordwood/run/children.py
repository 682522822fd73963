"""Child processes that do not outlive their parent, where the system can ensure that."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None] | None:
    """A ``preexec_fn`` for ``Popen``, run in the child before it becomes a program; None where it could do nothing.

    On Linux the child asks to be killed when the *thread* that started it ends, so start children from a thread that
    stays.
    """
    if sys.platform != "linux":
        return None
    prctl: Callable[[int, int], int] = ctypes.CDLL(None).prctl  # looked up before the fork, where it is safe
    parent = os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask
