"""Walk over the batches of a log file: only their headers, or whole batches with their checksums verified."""

from collections.abc import Iterator
from typing import Final

from cordwood.errors import CorruptData
from cordwood.ports import File
from cordwood.record.batch import HEADER_SIZE, BatchHeader, BatchPlace, check_counts, check_crc, header_at, place_at

_HEADERS_CHUNK_MIN: Final = 512
_HEADERS_CHUNK_MAX: Final = 8 * 1024
_BATCHES_CHUNK: Final = 1024 * 1024


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header, from *position* to *end*, which must both be batch boundaries."""
    data = b""
    start = position
    chunk = _HEADERS_CHUNK_MIN  # a search needs only a header or two
    while position < end:
        if position - start + HEADER_SIZE > len(data):
            if data:  # many small batches fit into one chunk; of large ones, only the headers are needed
                chunk = min(2 * chunk, _HEADERS_CHUNK_MAX) if position - start < 2 * chunk else _HEADERS_CHUNK_MIN
            data = file.read(position, min(chunk, end - position))
            start = position
        header = header_at(data, position - start)
        if header.size > end - position:
            raise CorruptData(f"the batch at {position} goes on past {end}")
        yield position, header
        position += header.size


def header_of(file: File, position: int, end: int) -> BatchHeader:
    """The header of the batch at *position*, all of which lies before *end*."""
    header = header_at(file.read(position, HEADER_SIZE))
    if header.size > end - position:
        raise CorruptData(f"the batch at {position} goes on past {end}")
    return header


def place_of(file: File, position: int, end: int) -> BatchPlace:
    """The place of the batch at *position*, all of which lies before *end*."""
    place = place_at(file.read(position, HEADER_SIZE))
    if place.size > end - position:
        raise CorruptData(f"the batch at {position} goes on past {end}")
    return place


def whole_batches(
    file: File, position: int, end: int, *, chunk_bytes: int = _BATCHES_CHUNK
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Each batch with its position and header. The first one that is cut off or damaged raises ``CorruptData``."""
    data = memoryview(b"")
    start = position
    while position < end:
        if position - start + HEADER_SIZE > len(data):
            data = memoryview(file.read(position, min(chunk_bytes, end - position)))
            start = position
        header = header_at(data, position - start)
        if header.size > end - position:
            raise CorruptData(f"the batch at {position} is cut off")
        if position - start + header.size > len(data):
            data = memoryview(file.read(position, min(max(chunk_bytes, header.size), end - position)))
            start = position
        batch = data[position - start : position - start + header.size]
        check_counts(header)
        check_crc(batch, header)
        yield position, header, batch
        position += header.size


def read_batch(file: File, position: int, header: BatchHeader) -> bytes:
    """The whole batch at *position*, whose header is known."""
    data = file.read(position, header.size)
    if len(data) != header.size:
        raise CorruptData(f"the batch at {position} is cut off")
    check_crc(data, header)
    return data
