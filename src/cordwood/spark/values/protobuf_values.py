"""Protobuf values, by a descriptor set that ``protoc --include_imports --descriptor_set_out`` has made.

Fields without presence have their default if the record does not set them, as in every other language; those with
presence (``optional``, messages) are null. Unsigned numbers get types with enough room: bigint for 32 bits,
decimal(20,0) for 64. Needs protobuf (``pip install 'cordwood[protobuf]'``).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from cordwood.errors import ConfigError

from . import ddl
from .formats import BadValue, Decoded, one_by_one
from .settings import ValueSettings
from .times import TIMESTAMP_MAX_US, TIMESTAMP_MIN_US

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import DecodeError, Message
except ImportError as error:
    raise ConfigError("valueFormat=protobuf needs protobuf; install it: pip install 'cordwood[protobuf]'") from error

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_SCALARS: Final = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
    FieldDescriptor.CPPTYPE_STRING: pa.string(),
}

Read = Callable[[Message], object]


def message_type(settings: ValueSettings) -> pa.DataType:
    """The type of the columns."""
    return _message_type(_descriptor(settings), ())


def _descriptor(settings: ValueSettings) -> Descriptor:
    assert settings.descriptor_file is not None
    assert settings.message_name is not None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(settings.descriptor_file).read_bytes())
    except (OSError, DecodeError) as reason:
        raise ConfigError(
            f"descriptorFile {settings.descriptor_file} cannot be read: {reason}; make it with protoc "
            "--include_imports --descriptor_set_out"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        return pool.FindMessageTypeByName(settings.message_name)
    except (KeyError, TypeError) as reason:
        names = [f"{file.package}.{entry.name}".lstrip(".") for file in files.file for entry in file.message_type]
        raise ConfigError(
            f"messageName {settings.message_name} is not usable: {str(reason)[:200]}; descriptorFile has "
            f"{', '.join(names[:10]) or 'no messages'}"
        ) from None


def _message_type(descriptor: Descriptor, path: tuple[str, ...]) -> pa.DataType:
    if descriptor.full_name in path:
        raise ConfigError(f"protobuf: the message {descriptor.full_name} contains itself; Spark has no such types")
    inner = (*path, descriptor.full_name)
    return pa.struct([(field.name, _field_type(field, inner)) for field in descriptor.fields])


def _field_type(field: FieldDescriptor, path: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return ddl.map_of(_one_type(entry["key"], path), _one_type(entry["value"], path))
    one = _one_type(field, path)
    return ddl.array_of(one) if field.is_repeated else one


def _one_type(field: FieldDescriptor, path: tuple[str, ...]) -> pa.DataType:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        if field.message_type.full_name == _TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        return _message_type(field.message_type, path)
    return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else _SCALARS[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    return field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry


class Protobuf:
    """Values of one message type."""

    def __init__(self, settings: ValueSettings) -> None:
        descriptor = _descriptor(settings)
        self.type = _message_type(descriptor, ())
        self._name = descriptor.full_name
        self._parse = message_factory.GetMessageClass(descriptor).FromString
        self._read = _reader(descriptor)

    def decode(self, data: pa.Array) -> Decoded:
        return one_by_one(data, self._value, self.type)

    def _value(self, record: bytes) -> object:
        try:
            return self._read(self._parse(record))
        except (DecodeError, ValueError, OverflowError, RecursionError) as reason:
            raise BadValue(f"not a message {self._name}: {str(reason)[:200]}") from None


def _reader(descriptor: Descriptor) -> Read:
    fields = [(field.name, _field_reader(field)) for field in descriptor.fields]
    return lambda message: {name: read(message) for name, read in fields}


def _field_reader(field: FieldDescriptor) -> Read:
    name = field.name
    if _is_map(field):
        value = _one_reader(field.message_type.fields_by_name["value"])
        return lambda message: [(key, value(item)) for key, item in getattr(message, name).items()]
    one = _one_reader(field)
    if field.is_repeated:
        return lambda message: [one(item) for item in getattr(message, name)]
    if field.has_presence:
        return lambda message: one(getattr(message, name)) if message.HasField(name) else None
    return lambda message: one(getattr(message, name))


def _micros(value: Message) -> int:
    """A time in microseconds.

    Raises:
        ValueError: neither protobuf nor Spark has such a time.
    """
    seconds, nanos = value.seconds, value.nanos
    found: int = seconds * 1_000_000 + nanos // 1000
    if not TIMESTAMP_MIN_US <= found <= TIMESTAMP_MAX_US:
        raise ValueError(
            f"a time of {seconds} seconds and {nanos} nanoseconds, which is not within the years 1 to 9999"
        )
    return found


def _one_reader(field: FieldDescriptor) -> Callable[..., object]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        if field.message_type.full_name == _TIMESTAMP:
            return _micros
        return _reader(field.message_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    return lambda value: value
