"""Records inside batches: ours against others' readers and writers, and against nonsense."""

import pytest
from aiokafka.record.default_records import (
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData
from cordwood.record.batch import HEADER_SIZE, Codec, header_at, produced_batch
from cordwood.record.build import Headers, Record, build, build_pairs, build_values, records, seal

LIMIT = 1 << 20
blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=4)


@st.composite
def contents(draw: st.DrawFn) -> list[Record]:
    count = draw(st.integers(1, 12))
    return [
        Record(number, draw(st.integers(0, 2**45)), draw(blobs), draw(blobs), draw(headers)) for number in range(count)
    ]


@settings(max_examples=60)
@given(contents(), st.sampled_from(Codec))
def test_what_is_built_is_read_back(original: list[Record], codec: Codec) -> None:
    batch = build(original, codec=codec)
    assert list(records(batch, produced_batch(memoryview(batch)), limit=LIMIT)) == original


@settings(max_examples=60)
@given(contents(), st.sampled_from(Codec))
def test_another_implementation_reads_what_we_build(original: list[Record], codec: Codec) -> None:
    batch = DefaultRecordBatch(bytes(build(original, codec=codec)))
    assert batch.validate_crc()
    assert [Record(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == original


@settings(max_examples=60)
@given(contents(), st.sampled_from(Codec))
def test_we_read_what_another_implementation_builds(original: list[Record], codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for record in original:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = memoryview(builder.build())
    assert list(records(batch, produced_batch(batch), limit=LIMIT)) == original


def test_a_batch_of_every_default_is_byte_for_byte_another_ones() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    many: list[tuple[str, Headers]] = [("a", []), ("b", [("h", b"x"), ("n", None)])]
    for number, (value, record_headers) in enumerate(many):
        builder.append(number, 1_700_000_000_000 + number, None, value.encode(), list(record_headers))
    ours = build([Record(n, 1_700_000_000_000 + n, None, v.encode(), h) for n, (v, h) in enumerate(many)])
    assert ours == builder.build()


def test_log_append_time_overrides_the_records_own() -> None:
    batch = build([Record(0, 5, None, b"a"), Record(1, 6, None, b"b")], log_append_time_ms=99)
    assert [record.timestamp for record in records(batch, header_at(batch), limit=LIMIT)] == [99, 99]


def test_bytes_after_the_last_record_are_corrupt() -> None:
    batch = build_values([b"a", b"b"])
    header = header_at(batch).replaced(record_count=1)
    with pytest.raises(CorruptData):
        list(records(batch, header, limit=LIMIT))


def test_fewer_records_than_said_are_corrupt() -> None:
    batch = build_values([b"a", b"b"])
    with pytest.raises(CorruptData):
        list(records(batch, header_at(batch).replaced(record_count=3), limit=LIMIT))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"\x0e",
        b"\x80" * 11,
        b"\x01",
        bytes([12, 0, 0, 0, 1, 1, 0, 0]),
        bytes([12, 0, 0, 0, 1, 1, 1]),
        bytes([12, 0, 0, 0, 1, 1, 2]),
        bytes([12, 0, 0, 0, 40, 1, 0]),
        bytes([12, 0, 0, 0, 1, 40, 0]),
        bytes([20, 0, 0, 0, 1, 1, 4, 1, 1, 1, 1]),
        bytes([12, 0, 0x80, 0x80, 0x80, 0x80, 0x80]),
        b"\xfe\xff\xff\xff\x0f" + bytes(20),
    ],
)
def test_nonsense_instead_of_records_is_corrupt(body: bytes) -> None:
    batch = bytearray(HEADER_SIZE) + body
    template = header_at(build_values([b""]))
    header = template.replaced(length=len(batch) - 12)
    with pytest.raises(CorruptData):
        list(records(seal(batch, header), header, limit=LIMIT))


@settings(max_examples=300)
@given(st.binary(max_size=80), st.integers(0, 2**31 - 1))
def test_any_bytes_instead_of_records_end_well(body: bytes, count: int) -> None:
    header = header_at(build_values([b""])).replaced(length=HEADER_SIZE - 12 + len(body), record_count=count)
    try:
        found = list(records(bytes(HEADER_SIZE) + body, header, limit=LIMIT))
    except CorruptData:
        return
    assert len(found) == count


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.binary(max_size=200), blobs), min_size=1, max_size=200),
    st.integers(0, 2**45),
    st.sampled_from(Codec),
)
def test_pairs_make_the_batch_that_records_make(
    pairs: list[tuple[bytes, bytes | None]], timestamp: int, codec: Codec
) -> None:
    slowly = build([Record(n, timestamp, key, value) for n, (key, value) in enumerate(pairs)], codec=codec)
    assert build_pairs(pairs, timestamp=timestamp, codec=codec) == slowly
