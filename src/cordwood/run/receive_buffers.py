"""What the sockets of a loop read into.

Reading starts in one buffer that all sockets of a loop share, because a frame is dealt with before the next
read. Only a frame that did not arrive whole moves to a buffer of its own, which grows with what really came, not with
what the length prefix claims. An idle connection therefore holds no buffer. Of a large frame so much has often come
that moving it would cost more than anything else done with it here: its socket then keeps the shared buffer, and the
others go on with a spare one. There are few of those: who leaves frames unfinished cannot have more than all of them.

All own buffers together have a limit, ``queued.max.request.bytes``, which works as Kafka's does. Whoever begins a frame
while there is room is let in with all of it, be it more than the room: so it can always be finished, and room comes
back. Others wait in a queue, most of their bytes in the kernel. Requests of up to 4 KB that come whole need no room.
Whoever has room and does not use it is idle, even if it waits for an answer; whoever waits for room is not.
"""

import mmap
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cordwood.run.client_socket import ClientSocket

SHARED_BYTES: Final = 1 << 20
SPARES: Final = 5
KEPT_MAX: Final = 8
KEPT_BYTES_MAX: Final = 2 << 20
PINCHED_BYTES: Final = 1 << 12  # read at one go while there is no room: whoever then must wait holds no more than this


class ReceiveBuffers:
    """The shared buffer with its spares, and a few others kept for reuse: a fresh one costs more than reading into it.

    It also counts what the sockets' own buffers hold or will hold, and has the queue of those that wait for room.
    """

    def __init__(self, bytes_max: int = -1) -> None:
        """*bytes_max*: of all own buffers; 0 or less is no limit."""
        arena = _large_pages((1 + SPARES) * SHARED_BYTES)
        buffers = [arena[start : start + SHARED_BYTES] for start in range(0, len(arena), SHARED_BYTES)]
        self._whole = buffers[0]
        self._spares = buffers[:0:-1]  # the next to be taken comes first in memory: what was never touched takes none
        self._kept: list[memoryview] = []
        self._bytes_max = bytes_max
        self._waiting: OrderedDict[ClientSocket, None] = OrderedDict()
        self.shared = self._whole
        """To read into: less of it while there is no room."""
        self.reserved_bytes = 0

    @property
    def has_room(self) -> bool:
        return self._bytes_max <= 0 or self.reserved_bytes < self._bytes_max

    def reserve(self, size: int) -> None:
        """Count *size* bytes more, or fewer."""
        self.reserved_bytes += size
        if self._bytes_max <= 0:
            return
        while self._waiting and self.has_room:
            client, _ = self._waiting.popitem(last=False)
            self.reserved_bytes += client.let_in()
        self._share(self._whole)

    def _share(self, whole: memoryview) -> None:
        self._whole = whole
        self.shared = whole if self.has_room else whole[:PINCHED_BYTES]

    def wait(self, client: "ClientSocket") -> None:
        """It is let in when those before it are, and there is room."""
        self._waiting[client] = None

    def wait_no_more(self, client: "ClientSocket") -> None:
        del self._waiting[client]

    def take(self, size: int) -> memoryview:
        kept = self._kept
        for index in range(len(kept) - 1, -1, -1):
            if len(kept[index]) >= size:
                return kept.pop(index)
        return memoryview(bytearray(size))

    def keep(self, shared: memoryview) -> bool:
        """May the caller have the buffer that it has read into? If it still is the shared one and there is a spare."""
        if shared is not self._whole or not self._spares:
            return False
        self._share(self._spares.pop())
        return True

    def give_back(self, buffer: memoryview) -> None:
        if len(buffer) == SHARED_BYTES and len(self._spares) < SPARES:
            self._spares.append(self._whole)
            self._share(buffer)  # what was used last is still in the processor's cache
        elif len(self._kept) < KEPT_MAX and len(buffer) <= KEPT_BYTES_MAX:
            self._kept.append(buffer)


def _large_pages(size: int) -> memoryview:
    """Memory that the system may keep in pages of 2 MB: a batch of 128 KB is then in one of them, and not in 32."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)
