"""The codec of (message, version), made at first use and kept.

``decode`` and ``encode`` are for everybody; ``decoder`` and ``encoder`` hand out the compiled functions themselves, for
whoever calls them ten thousand times a second.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from cordwood.errors import ProtocolError
from cordwood.ports import Buffer, Chunk

from .decoding import decoder_source
from .encoding import encoder_source
from .source import Source
from .types import MessageSpec, spec_of

M = TypeVar("M")


def decode(cls: type[M], version: int, buf: Buffer) -> M:
    """The message that *buf* holds: all of it and nothing else.

    Raises:
        ProtocolError: the bytes are not such a message.
    """
    found, pos = decoder(cls, version)(memoryview(buf), 0)
    if pos != len(buf):
        raise ProtocolError(f"{cls.__name__} v{version}: {len(buf) - pos} bytes too many")
    return found


def encode(message: object, version: int) -> bytes:
    """The bytes of a message. Slices of files in it are read: see ``encoder`` for how not to."""
    chunks: list[Chunk] = encoder(type(message), version)(message)
    return b"".join(chunk if isinstance(chunk, Buffer) else chunk.read() for chunk in chunks)


def decoder(cls: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    """The function ``(buf, pos) -> (message, pos after it)``; it raises ProtocolError and nothing else."""
    return _decoder(cls, version)  # type: ignore[arg-type]


def encoder(cls: type[M], version: int) -> Callable[[M], list[Chunk]]:
    """The function ``message -> chunks``: one ``bytes``, or several around slices of files and long records."""
    return _encoder(cls, version)  # type: ignore[arg-type]


def sources(cls: type, version: int) -> tuple[Source, Source]:
    """The text of both functions, decode first."""
    spec = _spec(cls, version)
    return decoder_source(spec, version), encoder_source(spec, version)


def _spec(cls: type, version: int) -> MessageSpec:
    spec = spec_of(cls)
    assert version in spec.versions, f"{spec.name} has no version {version}"
    return spec


@cache
def _decoder(cls: type, version: int) -> Callable[[memoryview, int], tuple[Any, int]]:
    return decoder_source(_spec(cls, version), version).function("decode", f"<decode {cls.__name__} v{version}>")


@cache
def _encoder(cls: type, version: int) -> Callable[[Any], list[Chunk]]:
    return encoder_source(_spec(cls, version), version).function("encode", f"<encode {cls.__name__} v{version}>")
