"""What may stand behind the last batch of a log file that is appended to: the head of a batch that is not there yet.

A file system keeps a file in memory in pieces, and those are large where a write comes in large aligned pieces. So a
disk may have a growing file longer than its content (``File.may_end_in``). Whoever reads a log file while it grows, be
it Kafka's own tool, has to stop at a batch that is not all there; so that is what stands behind the end: a head that
claims more bytes than any file has, and zeros. A segment that is complete ends with its last batch.

After a crash the tail is still there. Recovery takes it for the end of the log, and not for damage. After a stop in
good order there is none, and whatever stands in its place is damage.

Who reads while an append is under way may see a part of it, and zeros: the file is long enough before all is there.
"""

from struct import pack
from typing import Final

from cordwood.ports import Buffer

TAIL_MARK: Final = pack(">qiib", -1, 2**31 - 1, -1, 2)
"""Offset, length, leader epoch and format of the batch that is to come: as far as any reader has to see one."""

TAIL_BYTES_MAX: Final = 1 << 16


def is_tail(data: Buffer) -> bool:
    """Is this what may stand behind the last batch? A process that was killed may have written a part of the mark."""
    return len(data) <= TAIL_BYTES_MAX and TAIL_MARK.startswith(bytes(data).rstrip(b"\0"))
