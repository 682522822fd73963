"""The buffers that the sockets of a loop read into.

Reading starts in one buffer that all sockets of a loop share, because a frame is handled before the next read. Only a
frame that did not arrive whole moves to a buffer of its own, which grows with what really arrives, not with what the
length prefix claims. An idle connection therefore holds no buffer. Of a large frame, often so much has arrived that
moving it would cost more than everything else done with it here: then its socket keeps the shared buffer, and the
others continue with a spare one. There are only a few spares, so clients with unfinished frames cannot hold many.

The sockets' own buffers share one limit, ``queued.max.request.bytes``, which works as in Kafka. A client that begins a
frame while there is room is admitted with the whole frame, even if that exceeds the room: so every such frame can be
finished, and the room comes back. Others wait in a queue, with most of their bytes in the kernel. Requests of up to
4 KB that arrive whole need no room. A connection that has room but does not use it counts as idle, even while it waits
for a response; one that waits for room does not.
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
PINCHED_BYTES: Final = 1 << 12  # read at once while there is no room: a socket that must then wait holds no more


class ReceiveBuffers:
    """The shared buffer with its spares, and a few others kept for reuse: a new one costs more than reading into it.

    This also counts what the sockets' own buffers hold or will hold, and keeps the queue of sockets waiting for room.
    """

    def __init__(self, bytes_max: int = -1) -> None:
        """*bytes_max* limits the sockets' own buffers together; 0 or less means no limit."""
        arena = _large_pages((1 + SPARES) * SHARED_BYTES)
        buffers = [arena[start : start + SHARED_BYTES] for start in range(0, len(arena), SHARED_BYTES)]
        self._whole = buffers[0]
        self._spares = buffers[:0:-1]  # taken in the order of their addresses: untouched ones occupy no memory
        self._kept: list[memoryview] = []
        self._bytes_max = bytes_max
        self._waiting: OrderedDict[ClientSocket, None] = OrderedDict()
        self.shared = self._whole
        """The buffer to read into; only part of it while there is no room."""
        self.reserved_bytes = 0

    @property
    def has_room(self) -> bool:
        return self._bytes_max <= 0 or self.reserved_bytes < self._bytes_max

    def reserve(self, size: int) -> None:
        """Count *size* more bytes, or fewer if it is negative."""
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
        """Put a client into the queue: it is let in after those before it, once there is room."""
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
        """May the caller keep the buffer that it has read into? Only if that is still shared, and there is a spare."""
        if shared is not self._whole or not self._spares:
            return False
        self._share(self._spares.pop())
        return True

    def give_back(self, buffer: memoryview) -> None:
        if len(buffer) == SHARED_BYTES and len(self._spares) < SPARES:
            self._spares.append(self._whole)
            self._share(buffer)  # the most recently used one is still in the processor's cache
        elif len(self._kept) < KEPT_MAX and len(buffer) <= KEPT_BYTES_MAX:
            self._kept.append(buffer)


def _large_pages(size: int) -> memoryview:
    """Memory that the system may hold in pages of 2 MB: a batch of 128 KB then lies in one page instead of 32."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)
