"""What the codec in C withstands: values that run code of their own, layouts that are none, other interpreters.

Whatever the rest of the process does wrong ends in an exception or is left to the generated function, and never in
memory that is somebody else's.
"""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID, uuid4

import pytest

from cordwood.group.stored_offsets import OffsetCommitValue
from cordwood.ports import FileSlice
from cordwood.sim.disk import SimDisk
from cordwood.wire import compiler, encode, runtime
from cordwood.wire.layout import Layout, fields_alone, layout
from cordwood.wire.messages import (
    ConsumerProtocolSubscription,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
)
from cordwood.wire.types import NO_UUID, Records, i32, message, spec_of, v
from wire.native_build import NAME, decoder, encoder, left_alone, native, native_file, set_up

GIVEN_UP = pytest.raises(AssertionError, match="left to")


def frame_with_an_id() -> bytes:
    """A request with a topic id that nobody has seen; its last byte, by which ids are remembered, is zero."""
    return encode(MetadataRequest(topics=[MetadataRequestTopic(topic_id=UUID(int=uuid4().int >> 8 << 8))]), 12)


@contextmanager
def ids_made_by(make: Callable[[bytes], UUID]) -> Iterator[None]:
    native().set_up(make, FileSlice, runtime.CHUNK_BYTES_MIN)
    try:
        yield
    finally:
        set_up(native())


def raising(error: BaseException) -> Callable[..., UUID]:
    def make(*_: object) -> UUID:
        raise error

    return make


INTERRUPTIONS = pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, RecursionError, OSError])


@INTERRUPTIONS
def test_an_interruption_ends_decoding(kind: type[BaseException]) -> None:
    with ids_made_by(raising(kind())), pytest.raises(kind):
        decoder(MetadataRequest, 12)(memoryview(frame_with_an_id()), 0)


@pytest.mark.parametrize(
    "kind", [AttributeError, BufferError, MemoryError, OverflowError, TypeError, UnicodeError, ValueError]
)
def test_an_error_that_says_something_of_a_value_is_left_to_the_generated_function(kind: type[Exception]) -> None:
    with ids_made_by(raising(kind())), GIVEN_UP:
        decoder(MetadataRequest, 12)(memoryview(frame_with_an_id()), 0)


@INTERRUPTIONS
def test_an_interruption_ends_encoding(kind: type[BaseException]) -> None:
    class Interrupted:
        __ne__ = raising(kind())  # type: ignore[assignment]

    with pytest.raises(kind):
        encoder(OffsetCommitValue, 4)(OffsetCommitValue(topic_id=Interrupted()))  # type: ignore[arg-type]


@INTERRUPTIONS
def test_an_interruption_ends_the_making_of_a_message(kind: type[BaseException]) -> None:
    class Interrupted:
        __init__ = raising(kind())

    fields = with_field(fields_alone(spec_of(MetadataRequestTopic)), 4, default=Interrupted)
    with pytest.raises(kind):
        native().Maker(fields, left_alone)()


def test_a_view_that_was_released_is_left_to_the_generated_function() -> None:
    frame, head = bytearray(b"\0\0\0\1\0\1t"), bytearray(b"\0\0\0\x0d\0\0\0\1\0\0\0")
    view, head_view = memoryview(frame), memoryview(head)
    view.release()
    head_view.release()
    with GIVEN_UP:
        decoder(MetadataRequest, 1)(view, 0)
    assert native().read_head(head_view, {0: 9}) is None


def test_a_view_can_not_be_released_while_it_is_read() -> None:
    frame = bytearray(frame_with_an_id())
    view = memoryview(frame)

    def release(raw: bytes) -> UUID:
        view.release()
        return UUID(bytes=raw)

    with ids_made_by(release), GIVEN_UP:
        decoder(MetadataRequest, 12)(view, 0)
    view.release()
    frame.clear()  # nobody looks at it any more


def test_an_id_is_remembered_by_the_bytes_that_it_was_made_of() -> None:
    wanted = frame_with_an_id()
    frame = bytearray(wanted)

    def overwrite(raw: bytes) -> UUID:
        frame[:] = bytes(len(frame))
        return runtime.make_uuid(raw)

    with ids_made_by(overwrite):
        decoder(MetadataRequest, 12, lambda *_: None)(memoryview(frame), 0)
    again = decoder(MetadataRequest, 12)
    zeros = encode(MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=NO_UUID)]), 12)
    assert again(memoryview(zeros), 0)[0].topics[0].topic_id == NO_UUID
    assert again(memoryview(wanted), 0)[0] == compiler.generated_decoder(MetadataRequest, 12)(memoryview(wanted), 0)[0]


@pytest.mark.parametrize("view", [memoryview(bytes(8)).cast("i"), memoryview(bytes(8)).cast("B", (2, 4))])
def test_a_view_of_something_else_than_a_row_of_bytes_is_left_to_the_generated_function(view: memoryview) -> None:
    with GIVEN_UP:
        decoder(MetadataRequest, 1)(view, 0)
    assert native().read_head(memoryview(bytes(24)).cast("B", (2, 12)), {0: 9}) is None


@pytest.mark.parametrize("first_flexible", ["9", 2**70])
def test_versions_that_are_no_numbers_make_no_head(first_flexible: object) -> None:
    assert native().read_head(memoryview(b"\0\0\0\x0d\0\0\0\1\0\0\0"), {0: first_flexible}) is None


def with_field(described: Layout, group: int, **changed: object) -> Layout:
    """A layout whose first field of a group has something else in it."""
    names = "name", "kind", "array", "nullable", "compact", "tag", "least", "default", "inner"
    fields = described[group]
    assert isinstance(fields, tuple)
    field = tuple(changed.get(name, value) for name, value in zip(names, fields[0], strict=True))
    return (*described[:group], (field, *fields[1:]), *described[group + 1 :])


@pytest.mark.parametrize("kind", ["Q", "\0", "\x80", "é", chr(0x100 + ord("b")), "{"])
@pytest.mark.parametrize("made", ["Decoder", "Encoder", "Maker"])
def test_a_kind_that_is_none_is_no_layout(made: str, kind: str) -> None:
    described = with_field(layout(spec_of(OffsetCommitValue), 0), 2, kind=kind)
    with pytest.raises(ValueError, match="kind"):
        getattr(native(), made)(described, left_alone)


def test_only_a_struct_has_a_layout_inside() -> None:
    inner = layout(spec_of(OffsetCommitValue), 0)
    with pytest.raises(ValueError, match="kind"):
        native().Decoder(with_field(inner, 2, inner=inner), left_alone, 9)


def test_a_slot_of_another_class_is_no_field() -> None:
    @message(versions="0")
    class Small:
        first: str = ""

    @message(versions="0")
    class Large:
        first: str = ""
        second: str = ""
        last: str = ""

    Small.first = Large.last
    with pytest.raises(TypeError, match="first is not a slot"):
        native().Decoder(layout(spec_of(Small), 0), left_alone, 9)


@message
class Inner:
    items: list[i32] = v()
    records: Records = b""


@message(versions="0-1", flexible="0+")
class Tagged:
    before: str = ""
    inside: Inner | None = v("1", tag=0)
    records: Records = v("0", tag=1)


@pytest.mark.parametrize("version", [0, 1])
def test_records_inside_a_tag_are_left_to_the_generated_function_which_refuses_them(version: int) -> None:
    long = bytes(runtime.CHUNK_BYTES_MIN)
    sent = Tagged(before="x" * 400, records=long, inside=Inner(records=long))
    with GIVEN_UP:
        encoder(Tagged, version)(sent)
    with pytest.raises(AssertionError, match="cannot be measured inside a tag"):
        compiler.generated_encoder(Tagged, version)


@message
class Listing:
    items: list[i32] = v()


@message(versions="0", flexible="0+")
class WithListing:
    listing: Listing | None = v(tag=0)
    items: list[i32] = v(tag=1)


@pytest.mark.parametrize("items", [(), [], [1], (1,)])
def test_a_struct_that_holds_another_empty_sequence_is_sent_by_both(items: list[int]) -> None:
    generated = compiler.generated_encoder(WithListing, 0)
    sent = WithListing(listing=Listing(items=items))
    assert encoder(WithListing, 0, generated)(sent) == generated(sent)


@pytest.mark.parametrize("items", [(), [], [1], (1,), None])
def test_a_tag_with_an_empty_sequence_is_sent_by_none(items: list[int]) -> None:
    sent = WithListing(items=items)
    assert encoder(WithListing, 0)(sent) == compiler.generated_encoder(WithListing, 0)(sent)


def test_a_struct_that_holds_null_for_a_list_is_refused_by_both() -> None:
    with GIVEN_UP:
        encoder(WithListing, 0)(WithListing(listing=Listing(items=None)))  # type: ignore[arg-type]


def test_all_of_64_tags_are_sent() -> None:
    names = [f"field_{tag}" for tag in range(64)]
    body = {name: v(tag=tag) for tag, name in enumerate(names)} | {"__annotations__": dict.fromkeys(names, str)}
    many: type = message(versions="0", flexible="0+")(type("Many", (), body))
    sent = many(**{name: name for name in names})
    chunks = encoder(many, 0)(sent)
    assert chunks == compiler.generated_encoder(many, 0)(sent)
    assert decoder(many, 0)(memoryview(encode(sent, 0)), 0)[0] == sent


def test_a_value_that_goes_while_it_is_compared_is_left_to_the_generated_function() -> None:
    class Going:
        def __ne__(self, _: object) -> bool:
            del committed.topic_id
            return True

    committed = OffsetCommitValue(topic_id=Going())  # type: ignore[arg-type]
    with GIVEN_UP:
        encoder(OffsetCommitValue, 4)(committed)


def test_a_value_that_goes_while_it_is_written_is_held_until_it_is() -> None:
    class Going:
        @property
        def int(self) -> int:
            topic.topic_id = NO_UUID
            return 5

    topic = MetadataRequestTopic(name="t", topic_id=Going())  # type: ignore[arg-type]
    wanted = encode(MetadataRequest(topics=[MetadataRequestTopic(name="t", topic_id=UUID(int=5))]), 12)
    assert encoder(MetadataRequest, 12)(MetadataRequest(topics=[topic])) == [wanted]
    assert topic.topic_id is NO_UUID


def test_records_that_go_while_they_are_measured_are_held_until_they_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = SimDisk(Random(1)).open("f", create=True)
    records = FileSlice(file, 0, 7)
    partition = FetchResponsePartition(records=records)

    def length(_: FileSlice) -> int:
        partition.records = None
        return 7

    monkeypatch.setattr(FileSlice, "__len__", length)
    chunks = encoder(FetchResponse, 17)(FetchResponse(responses=[FetchResponseTopic(partitions=[partition])]))
    assert chunks[1] is records
    assert partition.records is None


def test_a_list_that_is_replaced_while_it_is_written_is_held_until_it_is() -> None:
    class Going:
        @property
        def int(self) -> int:
            request.topics = []
            return 5

    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=Going()) for _ in range(3)])  # type: ignore[arg-type]
    wanted = encode(MetadataRequest(topics=[MetadataRequestTopic(topic_id=UUID(int=5))] * 3), 12)
    assert encoder(MetadataRequest, 12)(request) == [wanted]


def test_a_list_that_no_message_has_is_left_to_the_generated_function() -> None:
    """Its elements would have room before the first of them is looked at."""
    count = 2**20
    for claimed, given_up in ((count + 1, True), (3, False)):
        frame = claimed.to_bytes(4, "big") + bytes(2 * claimed) + b"\xff\xff\xff\xff"
        read = native().Decoder(layout(spec_of(ConsumerProtocolSubscription), 0), lambda *_: None, sys.maxsize)
        assert (read(memoryview(frame), 0) is None) == given_up


def test_a_keyword_is_not_passed_over() -> None:
    described = layout(spec_of(MetadataRequest), 1)
    view = memoryview(b"\xff\xff\xff\xff")
    read = decoder(MetadataRequest, 1, compiler.generated_decoder(MetadataRequest, 1))
    assert read(view, pos=0) == read(view, 0)
    with pytest.raises(TypeError, match="bogus"):
        read(view, 0, bogus=3)
    write = encoder(MetadataRequest, 1, compiler.generated_encoder(MetadataRequest, 1))
    with pytest.raises(TypeError, match="bogus"):
        write(MetadataRequest(), bogus=3)  # type: ignore[call-arg]
    for made in ("Decoder", "Encoder", "Maker"):
        with pytest.raises(TypeError, match="keyword"):
            getattr(native(), made)(described, left_alone, entries_max=3)


def run(script: str) -> str:
    """What a process of its own prints: one in which nothing is loaded or set up."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def loading() -> str:
    """Lines that load the codec and do not set it up."""
    native()  # or it might not be built yet
    return f"""
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = ExtensionFileLoader({NAME!r}, {str(native_file())!r})
native = module_from_spec(spec_from_loader(loader.name, loader))
loader.exec_module(native)
"""


NOT_SET_UP = """
class Empty:
    pass
for made in (native.Decoder, native.Encoder):
    try:
        made((Empty, False, (), (), ()), print, 9)
    except RuntimeError as error:
        print(error)
"""


def test_a_codec_that_was_not_set_up_is_not_made() -> None:
    assert run(loading() + NOT_SET_UP) == "set_up comes first\n" * 2


IN_ANOTHER_INTERPRETER = """
import sys
if sys.version_info < (3, 13):
    import _xxsubinterpreters as interpreters
    all_made = interpreters.create(isolated=False), interpreters.create(isolated=True)
else:
    import _interpreters as interpreters
    all_made = interpreters.create("legacy"), interpreters.create("isolated")
for made in all_made:
    failed = interpreters.run_string(made, {there!r})  # which raises, or returns what was raised
    if failed is not None:
        print(failed.formatted)
    interpreters.destroy(made)
"""


def test_another_interpreter_of_the_process_has_no_native_codec() -> None:
    loaded = textwrap.indent(loading(), "    ")
    there = f"try:\n{loaded}except ModuleNotFoundError as error:\n    print(error, flush=True)\n"
    script = loading() + IN_ANOTHER_INTERPRETER.format(there=there)
    assert run(script) == "the native codec serves the main interpreter alone\n" * 2


IMPORTED = """
import sys
from importlib.abc import MetaPathFinder
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "cordwood.wire._native":
            raise {error}
sys.meta_path.insert(0, Finder())
try:
    from cordwood.wire import compiler
    print(compiler.native)
except ImportError as error:
    print("not hidden:", error)
"""


def test_without_native_code_the_generated_one_is_used() -> None:
    assert run(IMPORTED.format(error="ModuleNotFoundError(name, name=name)")) == "None\n"


def test_native_code_that_can_not_be_loaded_is_not_hidden() -> None:
    assert run(IMPORTED.format(error="ImportError('undefined symbol')")) == "not hidden: undefined symbol\n"
