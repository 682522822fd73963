"""Room on the disk for what will be appended to a file, taken many blocks at a time. Linux can do that.

Of what a large append costs, a good part goes to finding a place for each block of 4 KB as it is written. Where they
have theirs beforehand an append to ext4 takes a fifth less (docs/decisions/012). The file stays as long as it is.
"""

import sys
from collections.abc import Callable
from functools import cache

_KEEP_SIZE = 1


def take_room(descriptor: int, start: int, length: int) -> bool:
    """Have blocks for the bytes from *start* on. Not every file system can, or has so many left."""
    fallocate = _fallocate()
    return fallocate is not None and fallocate(descriptor, _KEEP_SIZE, start, length) == 0


@cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system's function. Python's own, ``os.posix_fallocate``, makes the file longer, and writes if it must."""
    if sys.platform != "linux":
        return None
    import ctypes  # not as the broker starts: few ever need it

    function = getattr(ctypes.CDLL(None), "fallocate64", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        function.restype = ctypes.c_int
    return function
