"""Room on the disk for what will be appended to a file, taken many blocks at a time. Linux can do that.

Of what a large append costs, a good part goes to finding a place for each block of 4 KB as it is written. Where they
have theirs beforehand an append to ext4 takes a fifth less (docs/decisions/012). The file stays as long as it is.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

_KEEP_SIZE: Final = 1
_PART_MAX: Final = 64
"""Of what is free, nobody takes more than such a part: the last of it is for what is really written."""


def take_room(descriptor: int, start: int, length: int) -> bool:
    """Have blocks for the bytes from *start* on. Not every file system can, or has enough; never raises.

    Some may have been taken even if it is False.
    """
    fallocate = _fallocate()
    if fallocate is None:
        return False
    try:
        disk = os.fstatvfs(descriptor)
    except OSError:
        return False
    is_modest = length * _PART_MAX <= disk.f_bavail * disk.f_frsize
    return is_modest and fallocate(descriptor, _KEEP_SIZE, start, length) == 0


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system's function. Python's own, ``os.posix_fallocate``, makes the file longer, and writes if it must."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # not as the broker starts: few ever need it

        system = ctypes.CDLL(None)
    except (ImportError, OSError):  # a Python without it; no descriptor is left
        return None
    found = getattr(system, "fallocate64", None)
    if found is None and sys.maxsize > 1 << 32:  # there the other one takes 64 bits too
        found = getattr(system, "fallocate", None)
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        found.restype = ctypes.c_int
    return found
