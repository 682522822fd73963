"""A partition's segment files, read without the broker, for as long as everything is as expected.

The files belong to a broker that appends to them, deletes the oldest, and replaces some by compacted ones while we
read. So nothing is taken for granted. A directory must be that of the right cluster, broker and topic. A file is read
by copying from it, never by mapping it: if a mapped file is truncated, reading it kills the process. The next segment
must begin exactly where the last one ended. Any surprise is a ``Surprise``, and the reader asks the broker instead.

Only offsets that the broker has reported as readable are read, so that every batch that is looked at is complete.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np

from cordwood.client.raw_fetch import whole_batches
from cordwood.cluster.layout import uuid_text
from cordwood.errors import CorruptData
from cordwood.log.names import LOG, OFFSET_INDEX, PARTITION_METADATA, TRANSACTION_INDEX, file_name, offset_of

from .hints import DirectHint

IDENTITY: Final = "meta.properties"
BATCH_BYTES_MAX: Final = 1024 * 1024 * 1024
_HEAD = Struct(">qi")
_SMALL_FILE_MAX: Final = 64 * 1024
_INDEX_BYTES_MAX: Final = 64 * 1024 * 1024


class Surprise(Exception):
    """The files are not as expected: read this, and what follows, from the broker."""


def is_visible(hint: DirectHint, topic: str, partition: int) -> bool:
    """Can this process read the partition's files, and are they those of this very partition?"""
    directory = Path(hint.log_dir)
    try:
        identity = _properties(directory / IDENTITY, "=")
        metadata = _properties(directory / f"{topic}-{partition}" / PARTITION_METADATA, ":")
        node = identity.get("node.id", identity.get("broker.id"))
        return (
            bool(hint.cluster_id)
            and hint.topic_id.int != 0
            and identity.get("cluster.id") == hint.cluster_id
            and node == str(hint.node_id)
            and metadata.get("topic_id") == uuid_text(hint.topic_id)
            and os.access(directory / f"{topic}-{partition}", os.R_OK | os.X_OK)
        )
    except (OSError, UnicodeDecodeError):
        return False


def _properties(path: Path, separator: str) -> dict[str, str]:
    with path.open("rb") as file:
        text = file.read(_SMALL_FILE_MAX).decode()
    lines = (line.partition(separator) for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in lines}


class Segments:
    """Reads the files of one partition from some offset on."""

    def __init__(self, directory: Path, *, chunk_bytes: int) -> None:
        self._directory = directory
        self._buffer = bytearray(chunk_bytes)
        self._open: _Segment | None = None

    def check(self) -> None:
        assert self._open is None or self._open.position >= 0, "a position is in the file"

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def read(self, offset: int, end: int) -> Iterator[tuple[memoryview, int]]:
        """Whole batches from *offset* up to *end*, a chunk at a time, each with the offset that follows it.

        A chunk is valid until the next one is asked for. Chunks that have been yielded are right even if a ``Surprise``
        follows.
        """
        while offset < end:
            segment = self._segment_for(offset)
            data, following = self._next_chunk(segment, offset, end)
            if not len(data):
                if following >= end:
                    return
                self._advance(segment, offset)
                continue
            yield data, following
            offset = following

    def has_aborted(self, offset: int) -> bool:
        """Do the files know of aborted transactions in the segment of *offset* or after it?"""
        first = max((base for base in self._bases() if base <= offset), default=0)
        indexes = [name for name in self._names() if _base(name, TRANSACTION_INDEX) >= first]
        try:
            return any((self._directory / name).stat().st_size for name in indexes)
        except OSError as error:
            raise Surprise(f"an index is gone: {error}") from error

    # Files

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._directory)
        except OSError as error:
            raise Surprise(f"the directory cannot be read: {error}") from error

    def _bases(self) -> list[int]:
        return sorted(base for name in self._names() if (base := _base(name, LOG)) >= 0)

    def _segment_for(self, offset: int) -> "_Segment":
        if self._open is None:
            base = max((base for base in self._bases() if base <= offset), default=None)
            if base is None:
                raise Surprise(f"no segment has offset {offset}")
            self._open = _Segment(self._directory, base)
            self._open.seek(offset)
        return self._open

    def _advance(self, segment: "_Segment", offset: int) -> None:
        """Continue after the end of a file: with the segment that begins exactly here.

        There may be a gap between two segments, or one that compaction is just putting into place.
        """
        if offset not in self._bases() or offset == segment.base:
            raise Surprise(f"no segment begins at offset {offset}")
        self.close()

    def _next_chunk(self, segment: "_Segment", offset: int, end: int) -> tuple[memoryview, int]:
        data = segment.read(self._buffer)
        used, following = _whole(data, offset, end)
        if not used and len(data) >= _HEAD.size:
            base, length = _HEAD.unpack_from(data)
            if base >= end:
                return data[:0], base
            size = length + _HEAD.size
            if not len(data) < size <= BATCH_BYTES_MAX:
                raise Surprise(f"a batch of {size} bytes at offset {base}")
            if size > len(self._buffer):
                self._buffer = bytearray(size)
                data = segment.read(self._buffer)
                used, following = _whole(data, offset, end)
            if not used:
                raise Surprise(f"the batch at offset {base} is cut off")
        segment.position += used
        return data[:used], following


class _Segment:
    """One open file, and how far it has been read. It stays readable when the broker deletes it."""

    def __init__(self, directory: Path, base: int) -> None:
        self._directory = directory
        self.base = base
        self.position = 0
        try:
            self._descriptor = os.open(directory / file_name(base, LOG), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Surprise(f"the segment {base} cannot be opened: {error}") from error

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, buffer: bytearray) -> memoryview:
        try:
            count = os.preadv(self._descriptor, [buffer], self.position)
        except OSError as error:
            raise Surprise(f"the segment {self.base} cannot be read: {error}") from error
        return memoryview(buffer)[:count]

    def seek(self, offset: int) -> None:
        """Go to the batch that contains *offset*, or to the first one after it."""
        position = self._indexed(offset)
        while True:
            try:
                head = os.pread(self._descriptor, _SMALL_FILE_MAX, position)
            except OSError as error:
                raise Surprise(f"the segment {self.base} cannot be read: {error}") from error
            passed, found = _pass_over(memoryview(head), offset)
            position += passed
            if found or not passed:
                self.position = position
                return

    def _indexed(self, offset: int) -> int:
        """Where a batch begins that is not after *offset*, according to the index; the beginning if that is no help."""
        with suppress(OSError, ValueError):
            path = self._directory / file_name(self.base, OFFSET_INDEX)
            with path.open("rb") as file:
                data = file.read(_INDEX_BYTES_MAX)
            entries = np.frombuffer(data[: len(data) // 8 * 8], ">i4").reshape(-1, 2).astype(np.int64)
            # Kafka preallocates index files: zeros follow the last entry.
            falls = np.flatnonzero(np.diff(entries[:, 0]) <= 0)
            entries = entries[: falls[0] + 1] if len(falls) else entries
            number = int(np.searchsorted(entries[:, 0], offset - self.base, side="right")) - 1
            if number >= 0 and entries[number, 1] > 0 and self._is_batch(int(entries[number, 1]), offset):
                return int(entries[number, 1])
        return 0

    def _is_batch(self, position: int, offset: int) -> bool:
        """An index may be older than its file. What it points to must look like a batch that is early enough."""
        head = os.pread(self._descriptor, 61, position)
        if len(head) < 61 or head[16] != 2:
            return False
        base, length = _HEAD.unpack_from(head)
        return bool(self.base <= base <= offset and length > 0)


def _base(name: str, suffix: str) -> int:
    """The offset in a file's name; -1 if it is another kind of file."""
    base = offset_of(name, suffix)
    return -1 if base is None else base


def _pass_over(data: memoryview, offset: int) -> tuple[int, bool]:
    """How many bytes of batches that end before *offset* come first, and whether a batch follows that does not."""
    position = 0
    while len(data) - position >= 61:
        base, length = _HEAD.unpack_from(data, position)
        last_delta = int.from_bytes(data[position + 23 : position + 27], "big", signed=True)
        if data[position + 16] != 2 or length < 49 or last_delta < 0:
            raise Surprise("there is no batch where one should be")
        if base + last_delta >= offset:
            return position, True
        position += length + _HEAD.size
    return position, False


def _whole(data: memoryview, offset: int, end: int) -> tuple[int, int]:
    try:
        return whole_batches(data, offset, end)
    except CorruptData as error:
        raise Surprise(str(error)) from error
