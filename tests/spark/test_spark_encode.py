"""Arrow rows to batches: what a broker takes, what a reader finds in them, and where keys go."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as java_murmur2

from cordwood.errors import ConfigError
from cordwood.record.batch import Codec, header_at, produced_batch
from cordwood.record.build import Record, records
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.encode import Encoder, Rows, Sealer
from cordwood.spark.warm import warm

some_bytes = st.none() | st.binary(max_size=200)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3)
one_row = st.tuples(some_bytes, some_bytes, headers, st.integers(-(2**62), 2**62 - 1))


def stored(encoder: Encoder, rows: Rows, timestamps_ms: int | np.ndarray = 0) -> dict[int, list[Record]]:
    """What a broker gets, by partition, checked as a broker does."""
    sealer, found = Sealer(7, 0), dict[int, list[Record]]()
    for round_ in encoder.encode(rows, timestamps_ms):
        for partition, unsealed in round_.items():
            batch = memoryview(bytes(sealer.seal(unsealed)))
            header = produced_batch(batch)
            held = found.setdefault(partition, [])
            assert (header.producer_id, header.base_sequence, header.record_count) == (7, len(held), unsealed.records)
            held += records(batch, header, limit=1 << 26)
    return found


def header_array(lists: list[list[tuple[str, bytes | None]] | None]) -> pa.Array:
    made = [None if one is None else [{"key": name, "value": value} for name, value in one] for one in lists]
    return pa.array(made, HEADERS_TYPE)


@settings(max_examples=60, deadline=None)
@given(st.lists(one_row, min_size=1, max_size=12), st.sampled_from(list(Codec)), st.integers(0, 3), st.booleans())
def test_a_reader_finds_what_was_written(
    made: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]],
    codec: Codec,
    skipped: int,
    small: bool,
) -> None:
    keys, values, lists, times = (list(column) for column in zip(*made, strict=True))
    columns = [pa.array(values, pa.binary()), pa.array(keys, pa.binary()), header_array(lists)]
    rows = Rows(*(column[skipped:] for column in columns))
    encoder = Encoder(1, codec=codec, batch_bytes=150 if small else 1_000_000)
    found = stored(encoder, rows, np.array(times[skipped:], np.int64)) if len(rows.value) else {}
    got = [(r.key, r.value, list(r.headers), r.timestamp) for r in found.get(0, [])]
    assert got == [(key, value, headers or [], time) for key, value, headers, time in made[skipped:]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=20), st.integers(1, 7))
def test_a_key_goes_where_javas_client_sends_it(keys: list[bytes], partitions: int) -> None:
    rows = Rows(pa.array([b"v"] * len(keys)), pa.array(keys, pa.binary()))
    expected = [(java_murmur2(key) & 0x7FFFFFFF) % partitions for key in keys]
    assert Encoder(partitions).partitions(rows).tolist() == expected


def test_text_is_as_good_as_bytes() -> None:
    rows = Rows(pa.array(["wört", None]), pa.array(["k", "l"], pa.large_string()))
    (found,) = stored(Encoder(1), rows).values()
    assert [(r.key, r.value) for r in found] == [(b"k", "wört".encode()), (b"l", None)]


def test_rows_without_keys_fill_one_partition_after_the_other() -> None:
    encoder = Encoder(3, batch_bytes=1_000, first_partition=2)
    rows = Rows(pa.array([b"v" * 92] * 25))
    assert encoder.partitions(rows).tolist() == [2] * 10 + [0] * 10 + [1] * 5
    assert encoder.partitions(rows).tolist()[:6] == [1] * 5 + [2], "and go on where they were"


def test_a_given_partition_is_stronger_than_the_key() -> None:
    rows = Rows(pa.array([b"a", b"b", b"c"]), pa.array([b"k", b"k", None]), None, pa.array([2, None, 0]))
    by_key = (java_murmur2(b"k") & 0x7FFFFFFF) % 3
    assert Encoder(3).partitions(rows).tolist() == [2, by_key, 0]


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_partition_that_is_not_there_is_named(wrong: int) -> None:
    rows = Rows(pa.array([b"a", b"b"]), None, None, pa.array([None, wrong], pa.int32()))
    with pytest.raises(ConfigError, match=f"has a {wrong}; the topic has 3 partitions"):
        Encoder(3).partitions(rows)


def test_a_header_without_a_name_is_refused() -> None:
    rows = Rows(pa.array([b"a"]), None, pa.array([[{"key": None, "value": b"v"}]], HEADERS_TYPE))
    with pytest.raises(ConfigError, match="a header has no key"):
        stored(Encoder(1), rows)


def test_headers_of_rows_that_are_null_are_not_written() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()),
        pa.array([{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}], HEADERS_TYPE.value_type),
        mask=pa.array([True, False]),
    )
    (found,) = stored(Encoder(1), Rows(pa.array([b"x", b"y"]), None, lists)).values()
    assert [list(r.headers) for r in found] == [[], [("b", b"2")]]


def test_batches_stay_below_their_limit_and_rounds_have_one_for_each_partition() -> None:
    rows = Rows(pa.array([b"v" * 100] * 100), None, None, pa.array([n % 2 for n in range(100)], pa.int32()))
    rounds = list(Encoder(2, batch_bytes=1_000).encode(rows, 0))
    assert all(len(one.data) <= 1_000 for round_ in rounds for one in round_.values())
    assert [sorted(round_) for round_ in rounds] == [[0, 1]] * len(rounds)
    assert sum(one.records for round_ in rounds for one in round_.values()) == 100
    assert len(rounds) == 7, "each batch is as full as can be"


def test_a_record_that_is_larger_than_a_batch_is_alone_in_one() -> None:
    rows = Rows(pa.array([b"a", b"v" * 5_000, b"b"]))
    found = list(Encoder(1, batch_bytes=200).encode(rows, 0))
    assert [one[0].records for one in found] == [1, 1, 1]


def test_a_batch_has_the_times_of_its_records() -> None:
    rows = Rows(pa.array([b"a", b"b", b"c"]))
    ((batch,),) = (list(found.values()) for found in Encoder(1).encode(rows, np.array([5, 9, 7], np.int64)))
    header = header_at(Sealer().seal(batch))
    assert (header.base_timestamp, header.max_timestamp, header.producer_id, header.base_sequence) == (5, 9, -1, -1)


def test_no_rows_are_no_batches() -> None:
    assert list(Encoder(1).encode(Rows(pa.array([], pa.binary())), 0)) == []


def test_warming_up_runs_everything() -> None:
    warm()
