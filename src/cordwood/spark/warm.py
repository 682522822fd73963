"""Compile the kernels, or load them, before anybody waits for them.

On a machine where they never ran that takes some five seconds; on all others some hundredths of a second. The driver
calls this before it starts tasks, so that one process compiles and the others find the result.
"""

from .kernel_library import library


def warm() -> None:
    """Have every kernel at hand."""
    assert library(), "there are kernels"
