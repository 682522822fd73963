"""The columns of the source, which are those of Spark's Kafka source. `arrow_schema.py` has their Arrow types."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from cordwood.errors import ConfigError

NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True, slots=True)
class Columns:
    """Some of the source's columns. The others are not decoded."""

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
        """These columns in the given order; None means all of them, with the headers only if asked for."""
        return cls(tuple(names) if names is not None else NAMES if headers else NAMES[:-1])
