"""How large the pieces are in which the system keeps a growing file in memory.

Linux makes a piece as large as the write that brings it, if it is aligned to that. The batches of a log begin anywhere,
so theirs are of one to a few pages of 4 KB, and every piece costs: when it is written to first, when it is brought to
the disk, when it is sent. Where a file is written up to the next multiple of ``ALIGNED_BYTES`` once and the rest of
that is overwritten later, all pieces are that large, and an append of 8 KB to ext4 takes less than half as long
(docs/decisions/016-a-growing-file-is-longer.md).
"""

import os
import re
import sys
from typing import Final

_SINCE: Final = (6, 16)
"""Since this version ext4 has larger pieces. XFS had them before; so far back nobody has measured."""


def has_large_pieces(linux: str) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", linux)
    return numbers is not None and tuple(map(int, numbers.groups())) >= _SINCE


ALIGNED_BYTES: Final = 1 << 16 if sys.platform == "linux" and has_large_pieces(os.uname().release) else 0
"""0: it makes no difference here."""
