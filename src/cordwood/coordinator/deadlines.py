"""Deadlines as data: a key says what is due and for whom; the state machine knows what to do then.

Setting a deadline again costs no more than a dictionary entry, since every heartbeat does it: the heap keeps the old
time, and an entry that comes up too early is put back with the new one.

Invariant (``check``): every deadline has one valid entry in the heap, at its time or earlier.
"""

import heapq
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

SPARE_PLACES: Final = 1000
"""How many heap entries may belong to deadlines that were cancelled or set again, beyond one for each deadline."""

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """At most one deadline for each key, on the monotonic clock."""

    def __init__(self) -> None:
        self._due_ms: dict[K, int] = {}
        self._queued_ms: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._due_ms)

    def __contains__(self, key: K) -> bool:
        return key in self._due_ms

    def __iter__(self) -> Iterator[K]:
        return iter(self._due_ms)

    def get(self, key: K) -> int | None:
        return self._due_ms.get(key)

    def set(self, key: K, due_ms: int) -> None:
        self._due_ms[key] = due_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or due_ms < queued_ms:
            self._queue(key, due_ms)

    def cancel(self, key: K) -> None:
        """The deadline may be gone already. Its heap entry is dropped when its time comes, or when they get too
        many."""
        self._due_ms.pop(key, None)
        if len(self._heap) > 2 * len(self._due_ms) + SPARE_PLACES:
            self._rebuild()

    def earliest(self) -> int | None:
        """When to look again: no deadline is earlier."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> K | None:
        """Remove and return the key that is due first, if one is due."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            queued_ms, _, key = heapq.heappop(heap)
            if self._queued_ms.get(key) != queued_ms:
                continue  # it was set again to an earlier time, and has a later entry
            del self._queued_ms[key]
            due_ms = self._due_ms.get(key)
            if due_ms == queued_ms:
                del self._due_ms[key]
                return key
            if due_ms is not None:
                self._queue(key, due_ms)  # it was set again to a later time
        return None

    def _rebuild(self) -> None:
        self._heap.clear()
        self._queued_ms.clear()
        for key, due_ms in self._due_ms.items():
            self._queue(key, due_ms)

    def _queue(self, key: K, due_ms: int) -> None:
        self._count += 1
        self._queued_ms[key] = due_ms
        heapq.heappush(self._heap, (due_ms, self._count, key))

    def check(self) -> None:
        entries = {(queued_ms, key) for queued_ms, _, key in self._heap}
        for key, due_ms in self._due_ms.items():
            queued_ms = self._queued_ms[key]
            assert queued_ms <= due_ms
            assert (queued_ms, key) in entries
