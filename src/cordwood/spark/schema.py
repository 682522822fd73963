"""The columns of the source, which are those of Spark's Kafka source, as Arrow's types."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from cordwood.errors import ConfigError

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))

FIELDS = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
    pa.field("headers", HEADERS_TYPE),
)
NAMES = tuple(field.name for field in FIELDS)


@dataclass(frozen=True, slots=True)
class Columns:
    """Some of the source's columns. What is not named is not decoded."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise ConfigError(f"no column is named; there are {', '.join(NAMES)}")
        for name in self.names:
            if name not in NAMES:
                raise ConfigError(f"there is no column {name}; there are {', '.join(NAMES)}")
        if len(set(self.names)) != len(self.names):
            raise ConfigError(f"a column is named twice: {', '.join(self.names)}")

    @classmethod
    def of(cls, names: Iterable[str] | None = None, *, headers: bool = False) -> Self:
        """These columns in the given order; None is all of them, with the headers only if asked for."""
        return cls(tuple(names) if names is not None else NAMES if headers else NAMES[:-1])

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([FIELDS[NAMES.index(name)] for name in self.names])
