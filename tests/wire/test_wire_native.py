"""The codec in C does what the generated functions do, and what is unusual it leaves to them."""

import gc
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk, FileSlice
from cordwood.sim.disk import SimDisk
from cordwood.wire import compiler
from cordwood.wire.frame import read_request_head
from cordwood.wire.layout import fields_alone, layout
from cordwood.wire.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    MetadataRequest,
    ProduceResponsePartition,
)
from cordwood.wire.registry import APIS
from cordwood.wire.types import spec_of
from wire.builders import MESSAGES, OTHERS, fit, messages, sample
from wire.native_build import decoder, encoder, left_alone, native

EVERY_API = pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)
EVERY_MESSAGE = pytest.mark.parametrize("cls", [*MESSAGES, *OTHERS], ids=lambda cls: cls.__name__)


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks)


def exactly(value: object) -> object:
    """A value and all that is in it, with the types: True is not 1, bytes are not a view of them, -0.0 is not 0.0."""
    if isinstance(value, (list, tuple)):
        return type(value), [exactly(item) for item in value]
    if hasattr(type(value), "__wire__"):
        return type(value), [exactly(getattr(value, field.name)) for field in spec_of(type(value)).fields]
    if isinstance(value, float):
        return float, struct.pack("d", value)
    if isinstance(value, memoryview):
        return memoryview, value.format, value.readonly, bytes(value)
    return type(value), value


def outcome(call: Callable[..., object], *args: object) -> object:
    """What a call returns, or what it raises."""
    try:
        return exactly(call(*args))
    except ProtocolError as error:
        return str(error)


def test_every_declared_message_is_held_to_both() -> None:
    source = Path(compiler.__file__).parents[1]
    declared = sum(file.read_text().count("\n@message(") for file in source.rglob("*.py"))
    assert len({*MESSAGES, *OTHERS}) == declared


@EVERY_MESSAGE
@settings(max_examples=8)
@given(data=st.data())
def test_every_message_of_every_version_is_coded_alike(cls: type, data: st.DataObject) -> None:
    made = data.draw(messages(cls))
    for version in spec_of(cls).versions:
        message = fit(made, version)
        chunks = compiler.generated_encoder(cls, version)(message)
        assert exactly(encoder(cls, version)(message)) == exactly(chunks)
        view = memoryview(b"before" + joined(chunks) + b"after")
        assert exactly(decoder(cls, version)(view, 6)) == exactly(compiler.generated_decoder(cls, version)(view, 6))


@EVERY_MESSAGE
@settings(max_examples=8)
@given(data=st.data())
def test_damaged_bytes_end_alike(cls: type, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(spec_of(cls).versions))
    generated = compiler.generated_decoder(cls, version)
    frame = bytearray(joined(compiler.generated_encoder(cls, version)(fit(data.draw(messages(cls)), version))))
    for position in data.draw(st.lists(st.integers(0, max(len(frame) - 1, 0)), max_size=8)):
        if frame:
            frame[position] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    view = memoryview(frame)[: data.draw(st.integers(0, len(frame)))]
    assert outcome(decoder(cls, version, generated), view, 0) == outcome(generated, view, 0)


@EVERY_MESSAGE
def test_no_prefix_of_a_message_is_read_beyond_its_end(cls: type) -> None:
    version = spec_of(cls).versions[-1]
    generated = compiler.generated_decoder(cls, version)
    frame = joined(compiler.generated_encoder(cls, version)(cls()))
    for end in range(len(frame)):
        view = memoryview(frame)[:end]
        assert outcome(decoder(cls, version, generated), view, 0) == outcome(generated, view, 0)


@EVERY_API
def test_a_frame_is_the_message_behind_its_size_and_header(key: int) -> None:
    api = APIS[key]
    cls: type = api.response
    for version in api.versions:
        message = fit(sample(cls), version)
        body = joined(compiler.generated_encoder(cls, version)(message))
        header = b"\xff\xff\xff\xfe" + bytes(api.response_header_version(version))
        write = native().Encoder(layout(spec_of(cls), version), left_alone, 4 + len(header))
        assert joined(write(message, -2)) == (len(header) + len(body)).to_bytes(4, "big") + header + body


def test_the_size_of_a_frame_counts_what_travels_as_it_is() -> None:
    write = native().Encoder(layout(spec_of(FetchResponse), 17), left_alone, 9)
    chunks = write(response(bytes(20_000), b"x", bytes(30_000)), 7)
    assert len(chunks) == 5
    assert int.from_bytes(chunks[0][:4], "big") == len(joined(chunks)) - 4


def test_a_frame_with_a_number_that_is_none_is_left_to_the_generated_function() -> None:
    write = native().Encoder(layout(spec_of(FetchResponse), 17), left_alone, 9)
    with pytest.raises(AssertionError, match="left to"):
        write(response(), 2**31)


FLEXIBLE_FROM = {api.key: api.flexible_from for api in APIS.values()}


@EVERY_API
def test_a_usual_head_is_read(key: int) -> None:
    for version in range(-1, 20):
        tags = b"\0" if version >= FLEXIBLE_FROM[key] else b""
        for client in ("", "c", "é" * 200):
            named = len(client.encode()).to_bytes(2, "big") + client.encode()
            frame = struct.pack(">hhi", key, version, -7) + named + tags
            found = native().read_head(memoryview(frame + b"body"), FLEXIBLE_FROM)
            assert found == (key, version, -7, client, len(frame))
            head = read_request_head(memoryview(frame + b"body"))
            assert found == (head.api_key, head.api_version, head.correlation_id, head.client_id, head.body)
            for end in range(len(frame)):
                assert native().read_head(memoryview(frame)[:end], FLEXIBLE_FROM) is None


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 0, 13, 1, -1) + b"\0",
        struct.pack(">hhih", 0, 13, 1, -2) + b"\0",
        struct.pack(">hhih", 0, 13, 1, 32767) + bytes(100),
        struct.pack(">hhih", 0, 13, 1, 1) + b"\xff\0",
        struct.pack(">hhih", 0, 13, 1, 0) + b"\1\5\0",
        struct.pack(">hhih", 999, 13, 1, 0) + b"\0",
    ],
    ids=["no name", "length", "long", "text", "tags", "unknown"],
)
def test_another_head_is_not(frame: bytes) -> None:
    assert native().read_head(memoryview(frame), FLEXIBLE_FROM) is None


@pytest.mark.parametrize("pos", [-1, 5, 2**70])
def test_a_position_outside_of_the_bytes_is_left_to_the_generated_function(pos: int) -> None:
    with pytest.raises(AssertionError, match="left to"):
        decoder(MetadataRequest, 12)(memoryview(b"1234"), pos)


def test_bytes_that_are_not_one_after_the_other_are_left_to_the_generated_function() -> None:
    with pytest.raises(AssertionError, match="left to"):
        decoder(MetadataRequest, 1)(memoryview(b"\xff\xff\xff\xff" * 2)[::2], 0)


def response(*records: object) -> FetchResponse:
    partitions = [FetchResponsePartition(records=found) for found in records]  # type: ignore[arg-type]
    return FetchResponse(responses=[FetchResponseTopic(partitions=partitions)])


def test_slices_of_files_and_long_records_travel_as_they_are() -> None:
    disk = SimDisk(Random(1))
    file = disk.open("f", create=True)
    file.append(bytes(range(256)) * 4)
    slices = FileSlice(file, 10, 300), FileSlice(file, 0, 0)
    long = memoryview(bytes(20_000))
    answer = response(slices[0], b"short", long, slices[1], None, bytearray(b"x"))
    chunks = encoder(FetchResponse, 17)(answer)
    assert exactly(chunks) == exactly(compiler.generated_encoder(FetchResponse, 17)(answer))
    assert [type(chunk) for chunk in chunks] == [bytes, FileSlice, bytes, memoryview, bytes]
    assert chunks[3] is long


def test_records_in_several_pieces_are_left_to_the_generated_function() -> None:
    with pytest.raises(AssertionError, match="left to"):
        encoder(FetchResponse, 17)(response([b"a", b"b"]))


@pytest.mark.parametrize(
    "broken",
    [
        ProduceResponsePartition(index=2**31),
        ProduceResponsePartition(index="3"),  # type: ignore[arg-type]
        ProduceResponsePartition(error_message="x" * 40_000),
        ProduceResponsePartition(record_errors=None),  # type: ignore[arg-type]
        ProduceResponsePartition(record_errors=[None]),  # type: ignore[list-item]
        ProduceResponsePartition(error_message="\ud800"),
        FetchRequest(),
    ],
    ids=["number", "text", "long", "null", "null inside", "surrogate", "class"],
)
def test_what_can_not_be_sent_is_left_to_the_generated_function(broken: object) -> None:
    with pytest.raises(AssertionError, match="left to"):
        native().Encoder((ProduceResponsePartition, *layout(spec_of(ProduceResponsePartition), 8)[1:]), left_alone)(
            broken
        )


def test_more_entries_than_a_request_may_have_are_left_to_the_generated_function() -> None:
    spec = layout(spec_of(MetadataRequest), 1)
    frame = memoryview(b"\0\0\0\x03" + b"\0\x01t" * 3)
    assert len(native().Decoder(spec, left_alone, 3)(frame, 0)[0].topics) == 3
    with pytest.raises(AssertionError, match="left to"):
        native().Decoder(spec, left_alone, 2)(frame, 0)


def test_a_maker_makes_what_the_class_makes() -> None:
    cls = ProduceResponsePartition
    make = native().Maker(fields_alone(spec_of(cls)), cls)
    assert make(index=3, base_offset=2**40) == cls(index=3, base_offset=2**40)
    assert make().record_errors is not make().record_errors
    with pytest.raises(TypeError, match="no_such_field"):
        make(no_such_field=3)
    with pytest.raises(TypeError, match="positional"):
        make(3)


def test_nothing_is_kept_of_what_was_coded() -> None:
    """Neither of messages that were read and written, nor of those that were given up half-way."""
    cls, version = FetchResponse, 17
    read = decoder(cls, version, lambda *_: None)
    write = encoder(cls, version, lambda *_: None)
    good = response(b"x" * 100, None, b"")
    frame = joined(write(good))
    bad = response(b"x" * 100, [b""])

    def work() -> None:
        for end in (*range(0, len(frame), 7), len(frame)):
            read(memoryview(frame)[:end], 0)
        write(good)
        write(bad)

    work()
    before = blocks()
    for _ in range(100):
        work()
    assert abs(blocks() - before) < 50


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()
