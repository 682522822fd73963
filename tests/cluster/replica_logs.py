"""A partition's log as it lies on a broker's disk, in Kafka's form, read with the project's own record code."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cluster.checker import Place
from cluster.recorder import Recorder
from cordwood.log.names import LOG, offset_of
from cordwood.record.batch import BatchHeader, batches
from cordwood.record.build import records

DECOMPRESSED_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One broker's replica, on disk. The broker may be running, as long as nobody writes."""

    data: Path
    place: Place

    @property
    def directory(self) -> Path:
        return self.data / str(self.place)

    def ends(self) -> tuple[int, int] | None:
        """The first offset and the one after the last; None if there is no log, or somebody is just writing it."""
        segments = self._segments()
        if not segments:
            return None
        start = end = segments[0][0]
        for header, _ in self.batches():
            end = header.next_offset
        last_base = segments[-1][0]
        return start, max(end, last_base)

    def batches(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        for _, path in self._segments():
            for batch, header in batches(memoryview(path.read_bytes())):
                yield header, batch

    def record(self, recorder: Recorder, broker: int) -> None:
        """Write all of it into a history."""
        ends = self.ends()
        if ends is None:
            return
        recorder.replica(broker, self.place, start=ends[0], end=ends[1])
        for header, batch in self.batches():
            values = [
                (one.offset, (one.value or b"").decode()) for one in records(batch, header, limit=DECOMPRESSED_MAX)
            ]
            recorder.batch(
                broker,
                self.place,
                first=header.base_offset,
                last=header.last_offset,
                digest=sha256(batch).hexdigest()[:32],
                records=values,
            )

    def _segments(self) -> list[tuple[int, Path]]:
        if not self.directory.is_dir():
            return []
        found = [(offset_of(path.name, LOG), path) for path in self.directory.iterdir()]
        return sorted((offset, path) for offset, path in found if offset is not None)
