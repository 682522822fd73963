"""The same message, encoded by kio and by kafka-python: two codecs that are not ours.

kio aborts the process on hostile lengths, so it is only ever asked to write, never to read.
"""

import dataclasses
import io
import warnings
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

# ruff: noqa: ANN401 (the objects of other codecs have no types)
from cordwood.wire.types import NO_UUID, FieldSpec, MessageSpec, spec_of

with warnings.catch_warnings():  # it reads its schemas by a deprecated function
    warnings.simplefilter("ignore")
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.schemas.fields.codecs.types import BitField

_LATEST_SECOND = 253_402_300_799
_TIMEDELTA_MS_MAX = 10**12


def kio_bytes(message: Any, version: int) -> bytes:
    """The bytes that kio makes of it. What kio cannot hold is changed in *message* first: see ``_kio_value``."""
    key = spec_of(type(message)).key
    assert key is not None
    load = load_request_schema if type(message).__name__.endswith("Request") else load_response_schema
    entity = _kio_entity(message, version, load(key, version))
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


def _kio_entity(message: Any, version: int, cls: type) -> Any:
    ours = spec_of(type(message)).present(version)
    theirs = dataclasses.fields(cls)
    assert [_same_name(mine.name, their.name) for mine, their in zip(ours, theirs, strict=True)].count(False) == 0
    values = {their.name: _kio_field(message, mine, their, version) for mine, their in zip(ours, theirs, strict=True)}
    return cls(**values)


def _same_name(ours: str, theirs: str) -> bool:
    """kio drops units from the names of durations and timestamps."""
    return ours == theirs or ours.removesuffix("_ms") == theirs


def _kio_field(message: Any, mine: FieldSpec, their: "dataclasses.Field[Any]", version: int) -> Any:
    value = getattr(message, mine.name)
    if isinstance(mine.type, MessageSpec):
        return _kio_structs(value, their, version)
    if mine.array:
        return None if value is None else tuple(value)
    value, converted = _kio_value(their.metadata["kafka_type"], value)
    setattr(message, mine.name, value)
    return None if converted == NO_UUID else converted


def _kio_structs(value: Any, their: "dataclasses.Field[Any]", version: int) -> Any:
    if isinstance(value, list):
        return tuple(_kio_entity(item, version, _kio_class(their)) for item in value)
    if value is None:
        return their.default if their.metadata.get("tag") is not None else None
    return _kio_entity(value, version, _kio_class(their))


def _kio_class(their: "dataclasses.Field[Any]") -> type:
    """The class in ``X``, ``X | None``, ``tuple[X, ...]`` or ``tuple[X, ...] | None``."""
    found: Any = their.type
    for _ in range(2):
        arguments = [arg for arg in getattr(found, "__args__", ()) if arg not in (type(None), ...)]
        found = arguments[0] if arguments else found
    assert isinstance(found, type)
    return found


def _kio_value(kind: str, value: Any) -> tuple[Any, Any]:
    """(the value nearest to ours that kio can hold, kio's object for it)."""
    match kind:
        case "error_code":
            value = value if value in set(ErrorCode) else abs(value) % 100
            return value, ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            value = value if abs(value) < _TIMEDELTA_MS_MAX else value % _TIMEDELTA_MS_MAX
            return value, timedelta(milliseconds=value)
        case "datetime_i64":
            seconds = abs(value) % _LATEST_SECOND
            return seconds * 1000, datetime.fromtimestamp(seconds, UTC)
        case "records" | "bytes":
            return value, None if value is None else bytes(value)
        case _:
            return value, value


@cache
def _kafka_python_classes() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [module.name for module in walk_packages(kafka.protocol.__path__, "kafka.protocol.")]
        modules = [import_module(name) for name in names if ".old" not in name]
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, ApiMessage) and value is not ApiMessage:
                found[value.__name__] = value
    return found


def kafka_python_versions(cls: type) -> list[int]:
    """The versions of a message that kafka-python knows."""
    theirs = _kafka_python_classes().get(cls.__name__)
    return [version for version in spec_of(cls).versions if theirs is not None and version <= theirs.max_version]


def kafka_python_bytes(message: Any, version: int) -> bytes:
    """The bytes that kafka-python makes of it."""
    cls = _kafka_python_classes()[type(message).__name__]
    made = cls(version=version, **_kafka_python_values(message, cls._struct, version))
    return bytes(made.encode(version=version))


def _kafka_python_values(message: Any, struct: Any, version: int) -> dict[str, Any]:
    ours = spec_of(type(message)).present(version)
    theirs = [field for field in struct.fields.values() if field.for_version_q(version)]
    pairs = list(zip(ours, theirs, strict=True))
    assert all(mine.name.endswith(their.name) for mine, their in pairs)  # it calls some *_authorized_operations shorter
    return {their.name: _kafka_python_value(getattr(message, mine.name), mine, their, version) for mine, their in pairs}


def _kafka_python_value(value: Any, mine: FieldSpec, their: Any, version: int) -> Any:
    if isinstance(mine.type, MessageSpec):
        if isinstance(value, list):
            return [their(version=version, **_kafka_python_values(item, their, version)) for item in value]
        return None if value is None else their(version=version, **_kafka_python_values(value, their, version))
    if value == NO_UUID:
        return None
    if getattr(their, "_type", None) is BitField:
        return {bit for bit in range(32) if value >> bit & 1}
    return value
