"""The route of the bytes: the batches of an offset range, from the broker or from its segment files.

The leader is always asked first, whatever the route: its first answer says what may be read, refuses what was deleted,
and is often all there is to read. The rest comes from its files if this process can see them, otherwise from the
broker. At any surprise in the files, the leader is asked for the next batches, and the files are tried again after
that; the result is the same on either route.

Only the files of the broker that has just answered are read: one that led when the query was planned may have records
at its end that were never committed. If it loses its leadership while its files are being read, they stay right: what
is read lies below the high watermark that it gave as the leader, so every in-sync replica has it, whichever of them
leads next, and no follower truncates its log there. (A leader from outside the in-sync set may lack some of it. It was
committed, and a reader over the network would have got it too, at the same time.)
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from cordwood.client.raw import RawClient, RawSettings
from cordwood.client.raw_settings import READ_COMMITTED

from .hints import DirectHint
from .ranges import Chunk, Range
from .segments import Segments, Surprise, is_visible

__all__ = ["Chunk", "DirectHint", "Range", "chunks", "roads"]

FIRST_FETCH_BYTES: Final = 1024 * 1024
DIRECT_CHUNK_BYTES: Final = 4 * 1024 * 1024
SURPRISES_MAX: Final = 16
"""After so many surprises, the broker sends the rest. A compacted topic has a gap between segments now and then."""


def chunks(settings: RawSettings, wanted: Range, *, isolation: int, direct: DirectHint | None) -> Iterator[Chunk]:
    """All batches that have records of the range, in offset order; each chunk is valid until the next is asked for.

    ``wanted.end`` must not lie beyond what the broker called the latest offset at this isolation level.

    Raises:
        OffsetOutOfRange: the beginning of the range does not exist (any more).
        RawError: for any other reason that the broker may have.
    """
    with RawClient(settings) as client:
        yield from roads(client, wanted, isolation=isolation, direct=direct)


def roads(client: RawClient, wanted: Range, *, isolation: int, direct: DirectHint | None) -> Iterator[Chunk]:
    """Like ``chunks``, with an existing client, which nobody else may use until this ends."""
    if wanted.start >= wanted.end:
        return
    if direct is None or not is_visible(direct, wanted.topic, wanted.partition):
        yield from _fetched(client, wanted, isolation)
        return
    yield from _Direct(client, wanted, isolation, direct).chunks()


def _fetched(client: RawClient, wanted: Range, isolation: int) -> Iterator[Chunk]:
    answers = client.fetch_range(wanted.topic, wanted.partition, wanted.start, wanted.end, isolation=isolation)
    for answer in answers:
        yield Chunk(answer.records, answer.aborted)


class _Direct:
    """One range, read from files wherever that works."""

    def __init__(self, client: RawClient, wanted: Range, isolation: int, hint: DirectHint) -> None:
        self._client = client
        self._wanted = wanted
        self._isolation = isolation
        self._files_of = hint.node_id
        directory = Path(hint.log_dir) / f"{wanted.topic}-{wanted.partition}"
        self._segments = Segments(directory, chunk_bytes=DIRECT_CHUNK_BYTES)
        self._next = wanted.start

    def chunks(self) -> Iterator[Chunk]:
        try:
            for _ in range(SURPRISES_MAX if self._files_are_enough() else 0):
                node_id, readable_end = yield from self._one_fetch()
                if self._next >= self._wanted.end:
                    return
                if node_id != self._files_of:
                    break
                try:
                    yield from self._from_files(min(self._wanted.end, readable_end))
                except Surprise:
                    self._segments.close()
                if self._next >= self._wanted.end:
                    return
        finally:
            self._segments.close()
        yield from _fetched(self._client, self._wanted._replace(start=self._next), self._isolation)

    def _files_are_enough(self) -> bool:
        """The broker knows better which records were aborted. All transactions of the range have ended, so none of them
        will be aborted while it is being read."""
        try:
            return self._isolation != READ_COMMITTED or not self._segments.has_aborted(self._next)
        except Surprise:
            return False

    def _one_fetch(self) -> Generator[Chunk, None, tuple[int, int]]:
        """Ask the leader once; returns which broker it is, and up to which offset one may read."""
        wanted = self._wanted
        answer = self._client.fetch(
            wanted.topic, wanted.partition, self._next, max_bytes=FIRST_FETCH_BYTES, isolation=self._isolation
        )
        self._next = answer.next_offset
        if answer.records:
            yield Chunk(answer.records, answer.aborted)
        return answer.node_id, answer.readable_end(self._isolation)

    def _from_files(self, end: int) -> Iterator[Chunk]:
        for data, following in self._segments.read(self._next, end):
            self._next = following
            yield Chunk(data)
        self._next = max(self._next, end)
