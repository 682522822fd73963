"""Bytes that no client would send: each is refused with a ProtocolError, and none takes memory beyond its share."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import ProtocolError
from cordwood.wire import decode, decoder, encode
from cordwood.wire.messages import (
    AddRaftVoterResponse,
    ApiVersionsResponse,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
)
from cordwood.wire.types import NO_UUID, FieldSpec, MessageSpec, spec_of
from wire.builders import MESSAGES, fit, sample, versions

EVERY_MESSAGE = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)

# Single bytes: null, empty, the borders of a varint's byte and of a signed one. Longer ones: the greatest count that a
# varint can hold, one that it cannot, the greatest and the least 32-bit count, and null.
HOSTILE = [b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f"]
HOSTILE += [b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\xff\xfe", b"\x7f\xff"]

MEMORY_PER_BYTE = 64
MEMORY_CONSTANT = 8_192


def mutations(frame: bytes) -> Iterator[bytes]:
    for position in range(len(frame)):
        for value in HOSTILE:
            yield frame[:position] + value + frame[position + len(value) :]


@EVERY_MESSAGE
def test_a_frame_cut_anywhere_is_refused(cls: type) -> None:
    for version in versions(cls):
        frame = encode(fit(sample(cls), version), version)
        for length in range(len(frame)):
            with pytest.raises(ProtocolError):
                decode(cls, version, frame[:length])


@EVERY_MESSAGE
def test_a_frame_with_a_byte_too_many_is_refused(cls: type) -> None:
    for version in versions(cls):
        with pytest.raises(ProtocolError, match="1 bytes too many"):
            decode(cls, version, encode(fit(sample(cls), version), version) + b"\0")


@EVERY_MESSAGE
def test_hostile_values_anywhere_raise_nothing_but_protocol_error(cls: type) -> None:
    for version in {versions(cls)[0], versions(cls)[-1]}:
        for frame in mutations(encode(fit(sample(cls), version), version)):
            with suppress(ProtocolError):
                decode(cls, version, frame)


@EVERY_MESSAGE
def test_random_bytes_raise_nothing_but_protocol_error(cls: type) -> None:
    random = Random(cls.__name__)
    for version in versions(cls):
        for _ in range(20):
            frame = random.randbytes(random.randrange(100))
            with suppress(ProtocolError):
                decode(cls, version, frame)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(cls=st.sampled_from(MESSAGES), data=st.data())
def test_found_bytes_raise_nothing_but_protocol_error(cls: type, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    frame = data.draw(st.binary(max_size=64))
    with suppress(ProtocolError):
        decode(cls, version, frame)


def dense(spec: MessageSpec, version: int, count: int) -> Iterator[object]:
    """Messages that have as many elements as their bytes allow, in one array after the other."""
    for field in spec.present(version):
        if field.array:
            yield spec.cls(**{field.name: [_least(field)] * count})
        if isinstance(field.type, MessageSpec):
            for inner in dense(field.type, version, count):
                yield spec.cls(**{field.name: [inner] if field.array else inner})


def _least(field: FieldSpec) -> object:
    if isinstance(field.type, MessageSpec):
        return field.type.cls()
    return {"string": "", "bytes": b"", "16s": NO_UUID, "?": False}.get(field.type.code, 0)


def memory_taken(cls: type[object], version: int, frame: bytes, allowed: int) -> int:
    """The peak of one decoding. What other threads of the process take meanwhile is counted too, so a peak that is not
    allowed is measured again: the decoder's own comes back each time, theirs does not."""
    for _ in range(5):
        taken = traced_peak(cls, version, frame)
        if taken <= allowed:
            break
    return taken


def traced_peak(cls: type[object], version: int, frame: bytes) -> int:
    read, view = decoder(cls, version), memoryview(frame)
    tracemalloc.start()
    try:
        with suppress(ProtocolError):
            read(view, 0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@EVERY_MESSAGE
def test_memory_is_bounded_by_the_frame(cls: type) -> None:
    for version in {versions(cls)[0], versions(cls)[-1]}:
        frames = [encode(fit(message, version), version) for message in dense(spec_of(cls), version, 200)]
        frames += list(mutations(encode(fit(sample(cls), version), version)[:60]))[::9]
        for frame in frames:
            allowed = MEMORY_PER_BYTE * len(frame) + MEMORY_CONSTANT
            assert memory_taken(cls, version, frame, allowed) <= allowed


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_count_of_two_billion_in_eight_bytes_takes_no_memory(version: int) -> None:
    frame = b"\xff\xff\xff\xff\x07\0\0\0" if version >= 9 else b"\x7f\xff\xff\xff\0\0\0\0"
    with pytest.raises(ProtocolError, match=r"topics: 214748364[67] claimed, \d bytes left"):
        decode(MetadataRequest, version, frame)
    assert memory_taken(MetadataRequest, version, frame, MEMORY_CONSTANT) <= MEMORY_CONSTANT


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (b"\xff\xff\xff\xff\x10", "more than 32 bits"),
        (b"\x80\x80\x80\x80\x80\x01", "more than 32 bits"),
        (b"\x80\x80\x80\x80", "too early"),
        (b"\xff\xff\xff\xff\x0f", "length 4294967294"),
        (b"\x82\x80\x02", "length 32769"),
        (b"\x80\x01", "group_id: 127 claimed, 0 bytes left"),
        (b"\x7f", "too early"),
        (b"\x00", "group_id: null is not allowed"),
        (b"\x80\x00" + bytes(9), "group_id: null is not allowed"),
        (b"\x02\xff", "not UTF-8"),
        (b"\x04\xed\xa0\x80", "not UTF-8"),
    ],
)
def test_a_compact_string_of_bad_length_or_text_is_refused(length: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(HeartbeatRequest, 4, length)


def test_a_null_that_takes_more_bytes_than_it_must_is_a_null() -> None:
    short, long = b"\0\0\0\0" + b"\0\0" + b"\0" + b"\0", b"\0\0\0\0" + b"\0\0" + b"\x80\x80\0" + b"\0"
    assert decode(AddRaftVoterResponse, 1, long) == decode(AddRaftVoterResponse, 1, short)


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        (b"\xff\xff", "group_id: null is not allowed"),
        (b"\xff\xfe", "group_id: length -2"),
        (b"\x80\x00", "group_id: length -32768"),
        (b"\x7f\xff" + bytes(200), "group_id: 32767 claimed, 200 bytes left"),
        (b"\x00\x7f" + bytes(5), "too early"),
        (b"\x00\x01\xff", "not UTF-8"),
    ],
)
def test_a_plain_string_of_bad_length_or_text_is_refused(length: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(HeartbeatRequest, 3, length)


def test_records_longer_than_the_frame_are_refused() -> None:
    head = b"\0\x00\x01\x00\x00\x00\x01" + b"\x02\x02t" + b"\x02\x00\x00\x00\x00"
    with pytest.raises(ProtocolError, match="records: 268435454 claimed, 3 bytes left"):
        decode(ProduceRequest, 9, head + b"\xff\xff\xff\x7f" + b"abc")


# FetchRequest v17 without topics: its tags are cluster_id (0) and replica_state (1).
FETCH = encode(FetchRequest(), 17)[:-1]


def test_unknown_tags_are_passed_over_by_the_thousand() -> None:
    numbers = range(2, 1002)
    tags = b"".join(_uvarint(number) + b"\x03abc" for number in numbers)
    assert decode(FetchRequest, 17, FETCH + _uvarint(len(numbers)) + tags) == FetchRequest()


def test_an_unknown_tag_after_a_known_one_is_passed_over() -> None:
    assert decode(FetchRequest, 17, FETCH + b"\x02" + b"\x00\x02\x02x" + b"\x09\x01?") == FetchRequest(cluster_id="x")


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x02\x00\x02\x02x\x00\x02\x02x", "tagged field 0 comes after 0"),
        (b"\x02\x05\x00\x05\x00", "tagged field 5 comes after 5"),
        (b"\x02\x05\x00\x04\x00", "tagged field 4 comes after 5"),
        (b"\x01\x00\x03\x02x\x00", "tagged field 0 is not as long as it says"),
        (b"\x01\x00\x01\x02x", "tagged field 0 is not as long as it says"),
        (b"\x01\x05\x64\x00", "tagged field 5 claims 100 bytes of 1"),
        (b"\x02\x05\x00", "tagged fields: 2 claimed, 2 bytes left"),
        (b"\xff\xff\xff\xff\x0f\x05\x00", "tagged fields: 4294967295 claimed, 2 bytes left"),
        (b"\x01\x05", "tagged fields: 1 claimed, 1 bytes left"),
    ],
)
def test_bad_tags_are_refused(tags: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(FetchRequest, 17, FETCH + tags)


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (b"\x02\x05\x00\x05\x00", "tagged field 5 comes after 5"),
        (b"\x02\x05\x00\x04\x00", "tagged field 4 comes after 5"),
        (b"\x01\x05\x64\x00", "tagged field 5 claims 100 bytes of 1"),
        (b"\xff\xff\xff\xff\x0f", "tagged fields: 4294967295 claimed, 0 bytes left"),
        (b"\x01\x05", "tagged fields: 1 claimed, 1 bytes left"),
    ],
)
def test_bad_tags_are_refused_where_none_are_known(tags: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(HeartbeatRequest, 4, b"\x02g\x00\x00\x00\x01\x02m\x00" + tags)


def test_a_tagged_array_beyond_the_frame_is_refused() -> None:
    with pytest.raises(ProtocolError, match="finalized_features: 4294967294 claimed"):
        decode(ApiVersionsResponse, 3, b"\0\0\x01\0\0\0\0" + b"\x01\x02\x05\xff\xff\xff\xff\x0f")


@pytest.mark.parametrize("marker", [0, 2, 127, 128, 254])
def test_a_struct_is_there_or_null_and_nothing_else(marker: int) -> None:
    with pytest.raises(ProtocolError, match=f"length {marker - 256 if marker > 127 else marker}"):
        decode(DescribeTopicPartitionsRequest, 0, b"\x01\x00\x00\x00\x01" + bytes([marker]) + b"\0")


def _uvarint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _uvarint(value >> 7)
