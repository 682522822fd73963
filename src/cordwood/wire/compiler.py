"""The codec of each (message, version), made at first use and kept.

``decode`` and ``encode`` are for everybody; ``decoder`` and ``encoder`` return the functions themselves, for callers
that need them ten thousand times a second. The functions are generated (``decoding.py``, ``encoding.py``). In a build
with native code (``native/``), that handles the usual cases and leaves the rest to the generated functions.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar, cast

from cordwood.errors import ProtocolError
from cordwood.ports import Buffer, Chunk, FileSlice

from . import runtime
from .decoding import decoder_source, is_counted
from .encoding import encoder_source
from .layout import fields_alone, layout
from .native import native
from .source import Source
from .types import MessageSpec, generated_maker, spec_of

if native is not None:
    native.set_up(runtime.make_uuid, FileSlice, runtime.CHUNK_BYTES_MIN)

M = TypeVar("M")


def decode(cls: type[M], version: int, buf: Buffer) -> M:
    """The message in *buf*, which must hold exactly that.

    Raises:
        ProtocolError: the bytes are not such a message.
    """
    found, pos = decoder(cls, version)(memoryview(buf), 0)
    if pos != len(buf):
        raise ProtocolError(f"{cls.__name__} v{version}: {len(buf) - pos} bytes too many")
    return found


def encode(message: object, version: int) -> bytes:
    """The bytes of a message. Slices of files in it are read; with ``encoder`` they are not."""
    chunks: list[Chunk] = encoder(type(message), version)(message)
    return b"".join(chunk if isinstance(chunk, Buffer) else chunk.read() for chunk in chunks)


def decoder(cls: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    """The function ``(buf, pos) -> (message, pos after it)``; it raises nothing but ProtocolError."""
    return _decoder(cls, version)  # type: ignore[arg-type]


def encoder(cls: type[M], version: int) -> Callable[[M], list[Chunk]]:
    """The function ``message -> chunks``: one ``bytes``, or several around slices of files and long records."""
    return _encoder(cls, version)  # type: ignore[arg-type]


def maker(cls: type[M]) -> type[M]:
    """To be called instead of *cls*, for objects that are made ten thousand times a second: it takes half the time.

    Calling a class goes through three layers of the interpreter, with the arguments in a dict; calling a function does
    not.
    """
    made = generated_maker(cls)
    return made if native is None else cast(type[M], native.Maker(fields_alone(spec_of(cls)), made))


ReadHead = Callable[[memoryview, dict[int, int]], tuple[int, int, int, str | None, int] | None]
WriteFrame = Callable[[Any, int], list[Chunk]]


def head_reader() -> ReadHead | None:
    """The function that reads usual request heads and returns None for others; None if this build does not have it."""
    return None if native is None else native.read_head


def frame_writer(cls: type, version: int, head_bytes: int, otherwise: WriteFrame) -> WriteFrame:
    """The function ``(message, correlation id) -> chunks`` for whole frames: *otherwise*, or a faster one."""
    return otherwise if native is None else native.Encoder(layout(_spec(cls, version), version), otherwise, head_bytes)


def sources(cls: type, version: int) -> tuple[Source, Source]:
    """The source of both functions, decode first."""
    spec = _spec(cls, version)
    return decoder_source(spec, version), encoder_source(spec, version)


def _spec(cls: type, version: int) -> MessageSpec:
    spec = spec_of(cls)
    assert version in spec.versions, f"{spec.name} has no version {version}"
    return spec


@cache
def _decoder(cls: type, version: int) -> Callable[[memoryview, int], tuple[Any, int]]:
    spec = _spec(cls, version)
    if native is None:
        return generated_decoder(cls, version)
    entries_max = runtime.ENTRIES_MAX if is_counted(spec) else sys.maxsize
    return native.Decoder(layout(spec, version), partial(_decode, cls, version), entries_max)


@cache
def _encoder(cls: type, version: int) -> Callable[[Any], list[Chunk]]:
    spec = _spec(cls, version)
    if native is None:
        return generated_encoder(cls, version)
    return native.Encoder(layout(spec, version), partial(_encode, cls, version))


@cache
def generated_decoder(cls: type, version: int) -> Callable[[memoryview, int], tuple[Any, int]]:
    """The decoder that handles every case, with the right error."""
    return decoder_source(_spec(cls, version), version).function("decode", f"<decode {cls.__name__} v{version}>")


@cache
def generated_encoder(cls: type, version: int) -> Callable[[Any], list[Chunk]]:
    return encoder_source(_spec(cls, version), version).function("encode", f"<encode {cls.__name__} v{version}>")


def _decode(cls: type, version: int, buf: memoryview, pos: int) -> tuple[Any, int]:
    """Decode what native code leaves to the interpreter: only then is a function generated for it."""
    return generated_decoder(cls, version)(buf, pos)


def _encode(cls: type, version: int, message: object) -> list[Chunk]:
    return generated_encoder(cls, version)(message)
