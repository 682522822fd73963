"""Compile the kernels before anybody waits for them.

On a machine where they have never run, that takes about five seconds. The driver calls this before it starts tasks, so
that one process compiles and the others find the result; it does not need them itself.
"""

from . import kernel_cache


def warm() -> None:
    """Have every kernel compiled."""
    if not kernel_cache.is_filled():
        from .kernel_library import library

        assert library(), "there are kernels"
