"""The batch header, and what a producer may send."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import CorruptData, Error, Refused
from cordwood.record.batch import (
    CONTROL,
    CRC_AT,
    DELETE_HORIZON,
    HEADER_FIELDS,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC_AT,
    SEQUENCE_MAX,
    BatchHeader,
    Codec,
    add_to_sequence,
    batches,
    check_crc,
    header_at,
    place_at,
    produced_batch,
    stamp,
    stamp_timestamp,
)
from cordwood.record.build import Record, build, build_values, records, seal


def changed(batch: bytearray, **fields: int) -> memoryview:
    """The batch with other header fields and a CRC that goes with them."""
    return memoryview(seal(bytearray(batch), header_at(batch).replaced(**fields)))


def refusal(call: Callable[[], object]) -> Error:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.error


def three() -> bytearray:
    return build_values([b"a", b"bb", b"ccc"], timestamp=1000)


def test_the_header_is_read_field_by_field() -> None:
    batch = build(
        [Record(7, 500, b"k", b"v"), Record(9, 400, None, None)],
        codec=Codec.GZIP,
        leader_epoch=3,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
        transactional=True,
    )
    header = header_at(batch)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (7, 9, 10)
    assert (header.leader_epoch, header.magic, header.record_count) == (3, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (500, 500)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (11, 2, 5, 7)
    assert (header.codec, header.is_transactional, header.is_control) == (Codec.GZIP, True, False)
    assert not header.has_log_append_time


def test_headers_are_equal_if_all_their_fields_are() -> None:
    header = header_at(three())
    assert header == header_at(three())
    assert header != header.numbers()
    for name in HEADER_FIELDS:
        other = header.replaced(**{name: getattr(header, name) + 1})
        assert getattr(other, name) == getattr(header, name) + 1
        assert header != other
        assert header == other.replaced(**{name: getattr(header, name)})


def test_a_header_has_no_other_fields() -> None:
    with pytest.raises(TypeError):
        header_at(three()).replaced(leader=1)


def test_a_header_shows_its_fields_as_they_lie_in_the_bytes() -> None:
    header = BatchHeader(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    assert header.numbers() == tuple(range(13))
    assert repr(header) == (
        "BatchHeader(base_offset=0, length=1, leader_epoch=2, magic=3, crc=4, attributes=5, last_offset_delta=6, "
        "base_timestamp=7, max_timestamp=8, producer_id=9, producer_epoch=10, base_sequence=11, record_count=12)"
    )
    assert seal(bytearray(HEADER_SIZE), header)[:CRC_AT] == pack(">qiib", 0, 1, 2, 3)


def test_a_good_batch_is_accepted() -> None:
    batch = three()
    assert produced_batch(memoryview(batch)) == header_at(batch)


def test_stamping_a_place_keeps_the_checksum() -> None:
    batch = three()
    stamp(memoryview(batch), 2**40, 9)
    header = header_at(batch)
    assert header == header_at(three()).replaced(base_offset=2**40, leader_epoch=9)
    check_crc(batch, header)


def test_stamping_a_time_renews_the_checksum() -> None:
    batch = three()
    stamp_timestamp(memoryview(batch), 8, 77)
    header = header_at(batch)
    check_crc(batch, header)
    assert header.has_log_append_time
    assert {record.timestamp for record in records(batch, header, limit=100)} == {77}


def test_a_flipped_bit_is_a_corrupt_message() -> None:
    for position in range(17, len(three())):
        batch = three()
        batch[position] ^= 0x10
        assert refusal(partial(produced_batch, memoryview(batch))) is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", [0, 1, 8, 16, 17, 60, 61, 62])
def test_a_batch_that_is_cut_off_is_refused(size: int) -> None:
    assert refusal(lambda: produced_batch(memoryview(three()[:size]))) is Error.INVALID_RECORD


def test_more_or_less_than_one_batch_is_refused() -> None:
    batch = three()
    assert refusal(lambda: produced_batch(memoryview(batch + batch))) is Error.INVALID_RECORD
    assert refusal(lambda: produced_batch(memoryview(batch + b"x"))) is Error.INVALID_RECORD


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 48])
def test_an_impossible_length_is_a_corrupt_message(length: int) -> None:
    batch = three()
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    assert refusal(lambda: produced_batch(memoryview(batch))) is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_told_apart(magic: int) -> None:
    batch = three()
    batch[16] = magic
    assert refusal(lambda: produced_batch(memoryview(batch))) is Error.UNSUPPORTED_FOR_MESSAGE_FORMAT
    small = bytes(8) + (14).to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(9)
    assert refusal(lambda: produced_batch(memoryview(small))) is Error.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("magic", [3, 0x7F, 0x80, 0xFF])
def test_unknown_formats_are_corrupt(magic: int) -> None:
    batch = three()
    batch[16] = magic
    assert refusal(lambda: produced_batch(memoryview(batch))) is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"base_offset": 1}, Error.INVALID_RECORD),
        ({"record_count": 0}, Error.INVALID_RECORD),
        ({"record_count": -1}, Error.INVALID_RECORD),
        ({"record_count": 2}, Error.INVALID_RECORD),
        ({"record_count": 4, "last_offset_delta": 3}, Error.INVALID_RECORD),
        ({"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 2}, Error.INVALID_RECORD),
        ({"last_offset_delta": -1}, Error.INVALID_RECORD),
        ({"attributes": CONTROL}, Error.INVALID_RECORD),
        ({"attributes": DELETE_HORIZON}, Error.INVALID_RECORD),
        ({"attributes": 0x80}, Error.INVALID_RECORD),
        ({"attributes": -(2**15)}, Error.INVALID_RECORD),
        ({"attributes": 5}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 7}, Error.UNSUPPORTED_COMPRESSION_TYPE),
        ({"producer_id": 4}, Error.INVALID_RECORD),
        ({"producer_id": 4, "producer_epoch": 0}, Error.INVALID_RECORD),
        ({"producer_id": 4, "base_sequence": 0}, Error.INVALID_RECORD),
    ],
)
def test_a_contradictory_header_is_refused(fields: dict[str, int], error: Error) -> None:
    batch = build_values([b""] * 3)
    assert len(batch) == HEADER_SIZE + 3 * 7
    assert refusal(lambda: produced_batch(changed(batch, **fields))) is error


@pytest.mark.parametrize("size", [0, 56, 57, 100, 8_000, 8_200, 70_000, 2_000_000])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_records_of_every_size_are_accepted(size: int, count: int) -> None:
    batch = build_values([b"x" * size] * count)
    assert produced_batch(memoryview(batch)).record_count == count


@pytest.mark.parametrize("size", [100, 10_000, 2_000_000])
@pytest.mark.parametrize("count", [2, 5])
def test_one_record_that_is_counted_as_more_is_refused(size: int, count: int) -> None:
    batch = changed(build_values([b"x" * size]), record_count=count, last_offset_delta=count - 1)
    assert refusal(lambda: produced_batch(batch)) is Error.INVALID_RECORD


@pytest.mark.parametrize("size", [0, 100, 10_000])
def test_more_records_that_are_counted_as_one_are_refused(size: int) -> None:
    batch = changed(build_values([b"x" * size] * 2), record_count=1, last_offset_delta=0)
    assert refusal(lambda: produced_batch(batch)) is Error.INVALID_RECORD


@pytest.mark.parametrize("start", [b"\x01", b"\x8d\x01", b"\xff" * 10, b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\x7f"])
def test_a_first_record_of_impossible_length_is_refused(start: bytes) -> None:
    batch = build_values([b"x" * 50] * 3)
    batch[HEADER_SIZE : HEADER_SIZE + len(start)] = start
    assert refusal(lambda: produced_batch(changed(batch))) is Error.INVALID_RECORD


def test_the_first_of_compressed_records_is_not_looked_at() -> None:
    batch = build([Record(0, 0, None, b"x" * 100)], codec=Codec.GZIP)
    assert produced_batch(changed(batch, record_count=5, last_offset_delta=4)).record_count == 5


def test_sequence_numbers_go_round() -> None:
    assert add_to_sequence(SEQUENCE_MAX, 0) == SEQUENCE_MAX
    assert add_to_sequence(SEQUENCE_MAX, 1) == 0
    assert add_to_sequence(SEQUENCE_MAX - 1, 4) == 2


def test_received_bytes_are_split_and_a_cut_end_is_left_out() -> None:
    one, two = three(), build([Record(3, 0, None, b"x")])
    data = memoryview(one + two)
    assert [header.base_offset for _, header in batches(data)] == [0, 3]
    assert b"".join(bytes(batch) for batch, _ in batches(data)) == data
    assert [header.base_offset for _, header in batches(data[:-1])] == [0]
    assert list(batches(data[: len(one) - 1])) == []
    assert list(batches(data[:3])) == []


@pytest.mark.parametrize(
    "fields", [{"base_offset": -1}, {"last_offset_delta": -1}, {"record_count": -1}, {"record_count": 4}]
)
def test_a_stored_batch_with_impossible_counts_is_corrupt(fields: dict[str, int]) -> None:
    with pytest.raises(CorruptData):
        list(batches(changed(three(), **fields)))


def test_a_compacted_batch_is_sound() -> None:
    batch = changed(three(), record_count=3, last_offset_delta=9)
    assert [header.last_offset for _, header in batches(batch)] == [9]


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_corrupt(data: bytes) -> None:
    with pytest.raises(Refused):
        produced_batch(memoryview(data))
    with suppress(CorruptData):
        list(batches(memoryview(data)))


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_header_never_passes_as_another_batch(data: st.DataObject) -> None:
    batch = three()
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(8, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        header = produced_batch(memoryview(batch))
    except Refused:
        return
    untouched = {"base_offset": 0, "leader_epoch": 0}
    assert header.replaced(**untouched) == header_at(three()).replaced(**untouched)


def test_an_unknown_codec_of_a_stored_batch_is_corrupt() -> None:
    header = header_at(three()).replaced(attributes=6)
    with pytest.raises(CorruptData):
        _ = header.codec


def test_the_place_of_a_batch_is_that_of_its_header() -> None:
    data = build([Record(7, 1, b"k", b"v"), Record(9, 2, None, b"w")])
    header, place = header_at(data), place_at(data)
    assert (place.base_offset, place.last_offset, place.size) == (header.base_offset, header.last_offset, header.size)


@pytest.mark.parametrize("look", [header_at, place_at])
def test_what_has_no_header_has_no_place(look: Callable[[bytearray], object]) -> None:
    sound = build([Record(7, 1, b"k", b"v")])
    with pytest.raises(CorruptData, match="too few"):
        look(sound[: HEADER_SIZE - 1])
    old, short = bytearray(sound), bytearray(sound)
    old[MAGIC_AT] = 1
    with pytest.raises(CorruptData, match="record format 1"):
        look(old)
    short[LENGTH_END - 4 : LENGTH_END] = (HEADER_SIZE - LENGTH_END - 1).to_bytes(4, "big")
    with pytest.raises(CorruptData, match="less than its header"):
        look(short)
