"""Settings for Spark's worker processes before they work for us, for the sake of small tasks, which come often.

The JVM sends a task in several small pieces, and waits for the TCP acknowledgement of the first before it sends the
next; Linux delays acknowledgements by 40 ms. And after each task, a worker runs the garbage collector over everything
that it ever imported, which takes as long. Both are more than a small task takes.

There is one moment that is early enough: when a task's reader is unpickled, the task is there and its input has not
been read yet.
"""

import gc
import os
import socket
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from pyspark import TaskContext

_DESCRIPTORS: Final = Path("/proc/self/fd")


class Arrival:
    """A part of what is sent to tasks, for the sake of what happens when it arrives."""

    def __reduce__(self) -> tuple[object, ...]:
        return arrive, ()


def arrive() -> Arrival:
    """Called in a worker for each task, and in other processes that are sent a reader."""
    if TaskContext.get() is not None:
        confirm_at_once()
        _keep_modules()
    return Arrival()


def confirm_at_once() -> int:
    """Have the kernel acknowledge at once on each TCP connection of this process; returns how many that applies to.

    Linux returns to delaying by itself after a while, so this is repeated for each task.
    """
    if sys.platform != "linux":
        return 0
    told: set[str] = set()
    for descriptor in _DESCRIPTORS.iterdir():
        with suppress(OSError):  # the descriptor that lists the others is closed by now
            name = str(descriptor.readlink())
            if name.startswith("socket:") and name not in told and _confirms(int(descriptor.name)):
                told.add(name)
    return len(told)


def _confirms(descriptor: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return True


@cache
def _keep_modules() -> None:
    """Once everything is imported: none of it will ever be garbage, so the collector need not look at it again."""
    from .kernel_library import library

    for name in ("decode", "road"):
        import_module(f"cordwood.spark.{name}")
    assert library(), "there are kernels"
    gc.freeze()
