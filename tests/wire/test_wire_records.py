"""Records travel without being copied or read: as views of the frame inwards, as slices of files outwards."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from cordwood.ports import Buffer, Chunk, FileSlice
from cordwood.wire import Records, decode, encode, encoder
from cordwood.wire.client_frame import read_response
from cordwood.wire.frame import response_frame
from cordwood.wire.messages import (
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    LeaderIdAndEpoch,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ShareFetchResponse,
    ShareFetchResponsePartition,
    ShareFetchResponseTopic,
)
from cordwood.wire.runtime import CHUNK_BYTES_MIN

LONG = b"x" * CHUNK_BYTES_MIN


@dataclass
class MemoryFile:
    """A file whose bytes nobody may read while a response is made."""

    data: bytes
    may_read: bool = False

    @property
    def size(self) -> int:
        return len(self.data)

    def append(self, data: Buffer, /) -> None:
        raise NotImplementedError

    def read(self, position: int, length: int, /) -> bytes:
        assert self.may_read
        return self.data[position : position + length]

    def truncate(self, size: int, /) -> None:
        raise NotImplementedError

    def complete(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


@pytest.fixture
def file() -> MemoryFile:
    return MemoryFile(bytes(range(256)) * 4)


def response(*records: Records | None) -> FetchResponse:
    partitions = [FetchResponsePartition(partition_index=i, records=found) for i, found in enumerate(records)]
    return FetchResponse(responses=[FetchResponseTopic(topic="t", topic_id=UUID(int=1), partitions=partitions)])


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_records_are_views_of_the_frame(version: int) -> None:
    topic = ProduceRequestTopic(name="t", partition_data=[ProduceRequestPartition(records=b"batch")])
    buffer = bytearray(encode(ProduceRequest(topic_data=[topic]), version))
    records = decode(ProduceRequest, version, memoryview(buffer)).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert not records.readonly
    records[0:1] = b"B"
    assert b"Batch" in buffer


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_slice_of_a_file_is_sent_unread(version: int, file: MemoryFile) -> None:
    chunks = encoder(FetchResponse, version)(response(FileSlice(file, 10, 300), b"short", FileSlice(file, 0, 7)))
    tags_at_the_end = [bytes] if version >= 12 else []
    assert [type(chunk) for chunk in chunks] == [bytes, FileSlice, bytes, FileSlice, *tags_at_the_end]
    file.may_read = True
    in_memory = response(file.read(10, 300), b"short", file.read(0, 7))
    assert joined(chunks) == encode(in_memory, version)


def test_a_small_response_is_one_chunk() -> None:
    assert len(encoder(FetchResponse, 12)(response(b"a", b"b", bytearray(b"c"), memoryview(b"d"), None, b""))) == 1


def test_long_records_are_handed_on_uncopied() -> None:
    view = memoryview(LONG)
    chunks = encoder(FetchResponse, 12)(response(LONG, view, LONG[1:]))
    assert chunks[1] is LONG
    assert chunks[3] is view
    assert len(chunks) == 5
    assert joined(chunks) == encode(response(LONG, LONG, LONG[1:]), 12)


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("kind", [list, tuple])
def test_records_may_come_in_pieces(version: int, kind: type, file: MemoryFile) -> None:
    pieces = kind([b"head", FileSlice(file, 0, 256), FileSlice(file, 256, 256), b"", memoryview(b"tail"), LONG])
    chunks = encoder(FetchResponse, version)(response(pieces, kind([]), kind([b"one"])))
    assert [type(chunk) for chunk in chunks] == [bytes, FileSlice, FileSlice, bytes, bytes, bytes]
    file.may_read = True
    assert joined(chunks) == encode(response(b"head" + file.read(0, 512) + b"tail" + LONG, b"", b"one"), version)


def test_an_empty_slice_is_no_chunk(file: MemoryFile) -> None:
    empty = FileSlice(file, 5, 0)
    assert encoder(FetchResponse, 12)(response(empty, [empty, empty])) == [encode(response(b"", b""), 12)]


@pytest.mark.parametrize("version", [11, 12, 16])
def test_the_frame_counts_what_lies_in_files(version: int, file: MemoryFile) -> None:
    message = response(FileSlice(file, 0, 1000), [FileSlice(file, 0, 24), b"x"])
    chunks = response_frame(correlation_id=5, api_key=1, api_version=version, message=message)
    file.may_read = True
    data = joined(chunks)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    found = read_response(FetchResponse, version, memoryview(data)[4:])
    assert [bytes(p.records) for p in found.responses[0].partitions] == [file.read(0, 1000), file.read(0, 24) + b"x"]  # type: ignore[arg-type]


def test_tags_after_records_in_files_stay_in_order(file: MemoryFile) -> None:
    message = response(FileSlice(file, 0, 100))
    message.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    chunks = encoder(FetchResponse, 12)(message)
    file.may_read = True
    found = decode(FetchResponse, 12, joined(chunks)).responses[0].partitions[0]
    assert found.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    assert found.records == file.read(0, 100)


def test_share_fetch_sends_files_too(file: MemoryFile) -> None:
    partition = ShareFetchResponsePartition(records=FileSlice(file, 0, 50))
    message = ShareFetchResponse(responses=[ShareFetchResponseTopic(partitions=[partition])])
    assert [type(chunk) for chunk in encoder(ShareFetchResponse, 1)(message)] == [bytes, FileSlice, bytes]
    with pytest.raises(AssertionError):
        encode(ShareFetchResponse(responses=[ShareFetchResponseTopic(partitions=[_no_records()])]), 1)


def _no_records() -> ShareFetchResponsePartition:
    partition = ShareFetchResponsePartition()
    partition.records = None  # type: ignore[assignment]
    return partition
