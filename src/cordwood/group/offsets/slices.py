"""Deletions that nobody waits for: as many at a time as fit into one batch and take no more than some milliseconds."""

from collections.abc import Iterable

from cordwood.coordinator.state_record import StateRecord
from cordwood.group.state import GroupState
from cordwood.group.stored import encode_record
from cordwood.group.stored_offsets import OffsetCommitKey

SLICE_LOOKS = 1000
SLICE_BYTES = 128 << 10
NEXT_SLICE_MS = 1
"""How much later the next slice begins: whoever has waited in the meantime is served first."""

RETRY_MS = 1000
TOMBSTONE_BYTES = 40


class Slice:
    """The tombstones gathered so far, and how much more may be done in this slice."""

    def __init__(self, state: GroupState) -> None:
        self.records: list[StateRecord] = []
        self._looks = SLICE_LOOKS
        self._bytes = max(min(SLICE_BYTES, state.batch_bytes_max // 2), 1)  # 0 would let it look at nothing

    @property
    def is_long(self) -> bool:
        """Has enough been looked at? Then stop where it is easy to continue."""
        return self._looks <= 0 or self.is_full

    @property
    def is_full(self) -> bool:
        """Do no more records fit into a batch? Then stop at once: what was removed is gone when the next slice
        begins."""
        return self._bytes <= 0

    def look(self) -> None:
        self._looks -= 1

    def remove(self, key: OffsetCommitKey) -> None:
        self.records.append(StateRecord(key, None))
        self._looks -= 1
        self._bytes -= 4 * (len(key.group) + len(key.topic)) + TOMBSTONE_BYTES

    def add(self, records: Iterable[StateRecord]) -> None:
        """Add other tombstones. They belong together, so all of them are added."""
        for record in records:
            self.records.append(record)
            self._bytes -= len(encode_record(record)[0]) + TOMBSTONE_BYTES
