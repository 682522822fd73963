"""The last offset of each key in the dirty part of a log, in a bounded amount of memory.

A long key is replaced by its digest, so that no entry takes more than a fixed amount of memory. When there is no room
for more, the map ends there: compaction cleans up to that offset, and comes back for the rest.
"""

from collections.abc import Sequence
from hashlib import blake2b

from cordwood.record.subset import RecordSpan

ENTRY_BYTES = 160
"""The memory of one entry: a string of up to 31 bytes, a number, and its slot in a table that may be half empty."""

_DIGEST_BYTES = 31


class KeyMap:
    """Keys and the offsets of their last records, for the part of the log from the map's start up to ``end``."""

    __slots__ = ("_count_max", "end", "offsets")

    def __init__(self, start: int, count_max: int) -> None:
        assert count_max > 0, "without room for a key nothing is ever compacted"
        self.offsets: dict[bytes, int] = {}
        self.end = start
        self._count_max = count_max

    def has_room(self, record_count: int) -> bool:
        """Is there room for that many keys? An empty map accepts any batch; otherwise a large one would never be
        compacted."""
        return not self.offsets or len(self.offsets) + record_count <= self._count_max

    def add(self, records: Sequence[RecordSpan], base_offset: int) -> None:
        """Note a batch's records; those before the map's end belong to the clean part and do not count."""
        offsets, first = self.offsets, self.end - base_offset
        for _, _, offset_delta, _, key, _ in records:
            if key is not None and offset_delta >= first:
                offsets[key if len(key) < _DIGEST_BYTES else digest(key)] = base_offset + offset_delta

    def last(self, key: bytes) -> int:
        """The offset of the key's last record, -1 if the dirty part has none."""
        return self.offsets.get(key if len(key) < _DIGEST_BYTES else digest(key), -1)


def digest(key: bytes) -> bytes:
    """What represents a long key. No short key is as long as this."""
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


def keys_max(memory_bytes: int, load_factor: float) -> int:
    """The most keys that fit into the memory. The load factor may be any number, because a client can alter it."""
    return max(1, int(memory_bytes * min(max(load_factor, 0.0), 1.0)) // ENTRY_BYTES)
