"""How large the pieces are in which the system keeps a growing file in memory.

Linux makes a piece as large as the write that brings it, if it is aligned to that. The batches of a log begin anywhere,
so theirs are of one to a few pages of 4 KB, and every piece costs: when it is written to first, when it is brought to
the disk, when it is sent. Where a file is written up to the next multiple of ``ALIGNED_BYTES`` once and the rest of
that is overwritten later, all pieces are that large, and an append of 8 KB to ext4 takes less than half as long
(docs/decisions/016-a-growing-file-is-longer.md).
"""

import os
import sys
from typing import Final

_SINCE: Final = (6, 16)
"""Since this version ext4 has larger pieces. XFS had them before; so far back nobody has measured."""


def _has_large_pieces() -> bool:
    if sys.platform != "linux":
        return False
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return all(number.isdecimal() for number in numbers) and tuple(map(int, numbers)) >= _SINCE


ALIGNED_BYTES: Final = 1 << 16 if _has_large_pieces() else 0
"""0: it makes no difference here."""
