"""Batches to Arrow: the same records as those that went in, whatever the codec, and nothing that is not wanted."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cordwood.errors import ConfigError, CorruptData
from cordwood.record.batch import HEADER_SIZE, Codec, header_at
from cordwood.record.build import Record, build
from cordwood.record.control import ControlType, EndMarker, build_end_marker
from cordwood.record.subset import body_of, spans, with_records, without_records
from cordwood.spark import decode as decoding
from cordwood.spark.arrow_schema import schema_of
from cordwood.spark.decode import decode
from cordwood.spark.ranges import Chunk, Range
from cordwood.spark.schema import NAMES, Columns
from support.batches import altered

ALL = Columns.of(headers=True)
EVERYTHING = Range("t", 3, 0, 2**62)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, object]

some_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3)
contents = st.tuples(st.integers(-(2**40), 2**40), some_bytes, some_bytes, headers)
batch_contents = st.tuples(
    st.lists(contents, min_size=1, max_size=6), st.sampled_from(list(Codec)), st.integers(0, 3), st.booleans()
)


def read(
    data: bytes, wanted: Range = EVERYTHING, columns: Columns = ALL, aborted: Sequence[tuple[int, int]] = ()
) -> list[Row]:
    return rows(decode([Chunk(data, aborted)], wanted, columns))


def rows(found: Iterable[pa.RecordBatch]) -> list[Row]:
    made: list[Row] = []
    for one in found:
        one.validate(full=True)
        made += one.to_pylist()
    return made


def offsets(found: Iterable[Row]) -> list[object]:
    return [row["offset"] for row in found]


def row(record: Record, *, append_ms: int | None = None) -> Row:
    """A record as Spark's Kafka source shows it."""
    time_ms = record.timestamp if append_ms is None else append_ms
    return {
        "key": record.key,
        "value": record.value,
        "topic": "t",
        "partition": 3,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=time_ms),
        "timestampType": int(append_ms is not None),
        "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(batch_contents, min_size=1, max_size=5), st.integers(0, 12), st.integers(0, 30))
def test_records_come_out_as_they_went_in(made: list[tuple[list, Codec, int, bool]], start: int, length: int) -> None:  # type: ignore[type-arg]
    data, expected, offset = b"", [], 0
    for parts, codec, gap, by_append in made:
        offset += gap
        records = [Record(offset + number, *part) for number, part in enumerate(parts)]
        offset += len(records)
        append_ms = 1_700_000_000_000 if by_append else None
        data += build(records, codec=codec, log_append_time_ms=append_ms)
        expected += [row(record, append_ms=append_ms) for record in records]
    wanted = Range("t", 3, start, start + length)
    assert read(data) == expected
    assert read(data, wanted) == [r for r in expected if start <= r["offset"] < start + length]  # type: ignore[operator]


@pytest.mark.parametrize("codec", Codec)
def test_large_batches_of_every_codec(codec: Codec) -> None:
    records = [Record(n, n, b"k%d" % n, b"v" * (n % 500)) for n in range(3_000)]
    data = build(records, codec=codec)
    assert len(read(bytes(data))) == 3_000
    assert read(bytes(data))[-1] == row(records[-1])


def test_only_the_columns_asked_for_come_and_in_their_order() -> None:
    data = bytes(build([Record(5, 7, b"k", b"v")]))
    assert read(data, columns=Columns.of(["offset", "value"])) == [{"offset": 5, "value": b"v"}]
    for name in NAMES:
        (found,) = decode([Chunk(data)], EVERYTHING, Columns.of([name]))
        assert found.schema == schema_of(Columns.of([name]))
    assert list(read(data, columns=Columns.of())[0]) == list(NAMES[:-1])


def test_columns_that_do_not_exist_are_refused() -> None:
    for names in (["values"], ["key", "key"], []):
        with pytest.raises(ConfigError):
            Columns.of(names)


def test_the_schema_is_the_one_that_spark_expects() -> None:
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    kinds = (
        BinaryType(),
        BinaryType(),
        StringType(),
        IntegerType(),
        LongType(),
        TimestampType(),
        IntegerType(),
        ArrayType(header),
    )
    spark = StructType([StructField(name, kind) for name, kind in zip(NAMES, kinds, strict=True)])
    assert to_arrow_schema(spark, timezone="UTC").equals(schema_of(ALL))


def test_a_time_that_spark_can_not_hold_is_the_last_it_can() -> None:
    (found,) = decode([Chunk(bytes(build([Record(0, 2**62, None, b"v")])))], EVERYTHING, Columns.of(["timestamp"]))
    assert found.column(0).cast(pa.int64()).to_pylist() == [(2**63 - 1) // 1000 * 1000]


def test_header_names_that_are_not_utf8_are_replaced() -> None:
    batch = build([Record(0, 0, None, None, [("nåme", b"v")])])
    broken = altered(bytes(batch), bytes(batch[HEADER_SIZE:]).replace("å".encode(), b"\xff\xfe"))
    assert read(broken)[0]["headers"] == [{"key": "n\ufffd\ufffdme", "value": b"v"}]
    assert read(bytes(batch))[0]["headers"] == [{"key": "nåme", "value": b"v"}]


def test_a_large_batch_is_given_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "ROWS_MAX", 4)
    data = bytes(build([Record(n, 0, None, b"v") for n in range(10)]))
    assert [one.num_rows for one in decode([Chunk(data)], EVERYTHING, ALL)] == [4, 4, 2]


def test_many_compressed_batches_are_decoded_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "GROUP_BYTES", 3_000)
    data = b"".join(
        build([Record(n, n, b"k", b"v" * 1_000)], codec=Codec.LZ4 if n % 2 else Codec.NONE) for n in range(10)
    )
    found = list(decode([Chunk(data)], EVERYTHING, ALL))
    assert len(found) > 3
    assert offsets(rows(found)) == list(range(10))


def test_nothing_comes_of_nothing() -> None:
    assert read(b"") == []
    assert read(bytes(build([Record(0, 0, None, b"v")])), Range("t", 3, 5, 9)) == []


# What compaction and transactions leave


def test_records_that_compaction_took_leave_gaps() -> None:
    batch = build([Record(n, n, b"k%d" % n, b"v") for n in range(5)])
    header = header_at(batch)
    body = body_of(batch, header, limit=1 << 20)
    kept = [span for span in spans(body, header) if span.offset_delta in (1, 4)]
    empty = without_records(header_at(build([Record(5, 0, None, b"v")])))
    data = bytes(with_records(header, body, kept) + empty + build([Record(6, 6, None, b"w")]))
    assert offsets(read(data)) == [1, 4, 6]


def at(batch: bytearray, offset: int) -> bytes:
    batch[:8] = offset.to_bytes(8, "big")
    return bytes(batch)


def transactional(producer_id: int, offset: int) -> bytes:
    return bytes(
        build(
            [Record(offset, 0, None, b"%d" % producer_id)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    )


def marker(producer_id: int, offset: int, kind: ControlType) -> bytes:
    return at(build_end_marker(EndMarker(kind, 0, 0), producer_id=producer_id, producer_epoch=0), offset)


def test_control_batches_never_come_out() -> None:
    assert offsets(read(transactional(1, 0) + marker(1, 1, ControlType.COMMIT))) == [0]


def test_aborted_records_are_left_out_up_to_their_marker() -> None:
    data = (
        transactional(1, 0)  # aborted
        + transactional(2, 1)
        + bytes(build([Record(2, 0, None, b"plain")]))
        + transactional(1, 3)  # aborted
        + marker(1, 4, ControlType.ABORT)
        + marker(2, 5, ControlType.COMMIT)
        + transactional(1, 6)  # the next transaction
        + marker(1, 7, ControlType.COMMIT)
    )
    assert offsets(read(data, aborted=[(1, 0)])) == [1, 2, 6]
    assert offsets(read(data)) == [0, 1, 2, 3, 6], "whoever reads uncommitted records gets all"


def test_an_aborted_transaction_may_begin_before_the_chunk() -> None:
    data = transactional(1, 10) + marker(1, 11, ControlType.ABORT) + transactional(1, 12)
    assert offsets(read(data, aborted=[(1, 3)])) == [12]


def test_two_aborted_transactions_of_one_producer() -> None:
    data = b"".join(
        transactional(1, offset) + marker(1, offset + 1, kind)
        for offset, kind in ((0, ControlType.ABORT), (2, ControlType.COMMIT), (4, ControlType.ABORT))
    )
    assert offsets(read(data, aborted=[(1, 4), (1, 0)])) == [2]


# Bytes that are not what they should be


@pytest.mark.parametrize("size", [10, 5_000])
def test_a_wrong_checksum_is_found_and_its_batch_named(size: int) -> None:
    data = build([Record(0, 0, None, b"v")]) + build([Record(1, 0, None, b"v" * size)])
    data[-2] ^= 1
    with pytest.raises(CorruptData, match=r"t-3, .* checksum of the batch at offset 1"):
        read(bytes(data))


def test_a_batch_that_is_not_wanted_is_not_looked_into() -> None:
    data = build([Record(0, 0, None, b"v")])
    data[-2] ^= 1
    assert offsets(read(bytes(data + build([Record(1, 0, None, b"v")])), Range("t", 3, 1, 2))) == [1]


def test_a_bomb_stops_at_its_limit() -> None:
    bomb = bytes(build([Record(0, 0, None, bytes(3_000_000))], codec=Codec.ZSTD))
    with pytest.raises(CorruptData, match=r"t-3, .* batch at offset 0: .* larger than 1000000 bytes"):
        list(decode([Chunk(bomb)], EVERYTHING, ALL, decompressed_bytes_max=1_000_000))
    assert len(read(bomb)) == 1


def test_compressed_bytes_that_make_no_sense_are_refused() -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        batch = altered(bytes(build([Record(0, 0, None, b"v" * 100)], codec=codec)), b"\x00\x01garbage" * 5)
        with pytest.raises(CorruptData, match="batch at offset 0"):
            read(batch)


def test_a_claim_of_a_billion_records_costs_nothing() -> None:
    batch = altered(bytes(build([Record(0, 0, None, b"v")])), record_count=2**30, last_offset_delta=2**30 - 1)
    with pytest.raises(CorruptData, match="more records than"):
        read(batch)
    compressed = altered(
        bytes(build([Record(0, 0, None, b"v")], codec=Codec.GZIP)), record_count=2**30, last_offset_delta=2**30 - 1
    )
    with pytest.raises(CorruptData, match="more records than"):
        read(compressed)


def test_bytes_after_the_last_record_are_refused() -> None:
    batch = bytes(build([Record(0, 0, None, b"v")]))
    with pytest.raises(CorruptData, match="bytes are left"):
        read(altered(batch, batch[HEADER_SIZE:] + b"\0\0"))


def test_half_a_batch_is_refused() -> None:
    with pytest.raises(CorruptData, match="cut off"):
        read(bytes(build([Record(0, 0, None, b"v")]))[:-1])
