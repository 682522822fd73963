"""The decoding kernels, uncompiled, over damaged batches.

An index beyond an array is an ``IndexError`` then, and one below zero is caught by the arrays that this uses.
"""

import random
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cordwood.record.build import Record, build
from cordwood.spark import kernels as k

ROUNDS = 1_500


class Guarded(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Bytes that do not count from their end."""

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        if not isinstance(index, slice) and index < 0:
            raise IndexError(f"index {index}")
        return super().__getitem__(index)


def guarded(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8).view(Guarded)


def outcome(data: bytes) -> str:
    source = guarded(data)
    table = np.zeros((k.count_batches.python(source), k.COLUMNS), np.int64)
    found = k.scan.python(source, table)
    if found < 0:
        return k.ERRORS[found]
    table = table[:found]
    rows = int(table[:, k.COUNT].sum())
    if rows * k.RECORD_BYTES_MIN > len(data):
        return "too many records"
    longs = [np.zeros(rows, np.int64) for _ in range(5)]
    shorts = [np.zeros(rows, np.int32) for _ in range(2)]
    sizes = np.zeros(5, np.int64)
    offsets, times, keys, values, headers = longs
    found = k.locate.python(source, table, 0, 2**62, offsets, times, keys, shorts[0], values, shorts[1], headers, sizes)
    if found < 0:
        return k.ERRORS[found]
    for at, lengths in ((keys, shorts[0]), (values, shorts[1])):
        inside = (at[:found] >= 0) & (at[:found] + np.maximum(lengths[:found], 0) <= len(data))
        assert inside.all(), "what is copied lies in the bytes"
    return "fine"


def damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.choice([chance.randrange(len(data)), chance.randrange(61, len(data))])
        changed[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    return bytes(changed if chance.random() < 0.9 else changed[: chance.randrange(len(changed))])


def outcomes() -> Counter[str]:
    """How often each came."""
    chance = random.Random(20240607)
    headers = [("name", b"value"), ("empty", None)]
    records = [Record(n, 1000 + n, None if n % 3 else b"key", b"v" * (n * 40), headers[: n % 3]) for n in range(5)]
    sound = bytes(build(records)) + bytes(build([Record(5, 0, b"k", None)]))
    assert outcome(sound) == "fine"
    with np.errstate(over="ignore"):
        return Counter(outcome(damaged(sound, chance)) for _ in range(ROUNDS))
