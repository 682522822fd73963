"""What a setting is: its name, kind, default, valid range, scope and one line of documentation, declared once.

A class of settings is declared like a dataclass, and ``mypy`` sees it as one::

    @settings
    class TopicConfig:
        segment_bytes: Int = setting(default=1 << 30, check=at_least(1 << 20), doc="…")

The attribute's name is Kafka's name with ``_`` for ``.``; the annotation says which of Kafka's kinds it is. An instance
is frozen. Building one directly is unchecked, so that a test can have segments of 100 bytes; texts that people write go
through ``Setting.parse``, which checks kind and range.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import UnionType
from typing import Annotated, Final, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from cordwood.errors import ConfigError


class Kind(IntEnum):
    """Kafka's kinds of values, with the codes that DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """When a setting may change: at start only, at runtime for one broker, or at runtime for all brokers at once."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


Bool = Annotated[bool, Kind.BOOLEAN]
Str = Annotated[str, Kind.STRING]
Int = Annotated[int, Kind.INT]
Short = Annotated[int, Kind.SHORT]
Long = Annotated[int, Kind.LONG]
Double = Annotated[float, Kind.DOUBLE]
List = Annotated[tuple[str, ...], Kind.LIST]
Class = Annotated[str, Kind.CLASS]
Password = Annotated[str, Kind.PASSWORD]

Value = bool | int | float | str | tuple[str, ...] | None

OURS: Final = "cordwood."

LONG_MAX: Final = (1 << 63) - 1
INT_MAX: Final = (1 << 31) - 1

_WIDTH_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on a value, and its wording: "at least 1"."""

    accepts: Callable[[Value], bool]
    words: str


def at_least(low: int) -> Check:
    return Check(lambda value: isinstance(value, int | float) and not value < low, f"at least {low}")


def between(low: int, high: int) -> Check:
    return Check(lambda value: isinstance(value, int | float) and low <= value <= high, f"from {low} to {high}")


def one_of(*words: str) -> Check:
    return Check(lambda value: value in words, f"one of {', '.join(words)}")


def each_of(*words: str) -> Check:
    """For lists: any of the words, in any order, or none at all."""
    allowed = frozenset(words)
    return Check(lambda value: isinstance(value, tuple) and allowed.issuperset(value), f"a list of {', '.join(words)}")


def some_of(*words: str) -> Check:
    """For lists: at least one of the words, in any order."""
    check = each_of(*words)
    return Check(lambda value: bool(value) and check.accepts(value), check.words)


def either(value: Value, check: Check) -> Check:
    return Check(lambda given: given == value or check.accepts(given), f"{check.words}, or {value}")


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker's setting that gives a topic's setting its default. ``unit_ms`` converts its number to milliseconds."""

    name: str
    unit_ms: int = 1
    default: Value = None
    kind: Kind = Kind.LONG
    check: Check | None = None
    scope: Scope = Scope.READ_ONLY
    negative_is_endless: bool = False

    def topic_text(self, text: str) -> str:
        """The text of the topic's setting for this text of the broker's."""
        if self.unit_ms == 1 and not self.negative_is_endless:
            return text
        number = int(text)
        return "-1" if number < 0 and self.negative_is_endless else str(number * self.unit_ms)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    ``brokers`` are the broker's settings behind a topic's, the strongest first. ``later`` marks a setting that is
    checked and kept, but has no effect yet.
    """

    name: str
    kind: Kind
    default: Value
    doc: str
    check: Check | None = None
    scope: Scope = Scope.READ_ONLY
    nullable: bool = False
    internal: bool = False
    brokers: tuple[Synonym, ...] = ()
    alias: str | None = None
    later: bool = False

    @property
    def attribute(self) -> str:
        return self.name.removeprefix(OURS).replace(".", "_")

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> Value:
        """The value that *text* stands for.

        Raises:
            ConfigError: the text is not of this kind, or its value is out of range.

        >>> Setting("segment.bytes", Kind.INT, 1 << 30, "", at_least(1 << 20)).parse("100")
        Traceback (most recent call last):
        cordwood.errors.ConfigError: segment.bytes is 100; it must be at least 1048576
        """
        value = _PARSERS[self.kind](self, text.strip())
        if self.check is not None and not self.check.accepts(value):
            raise self.refusal(text, self.check.words)
        return value

    def refusal(self, text: str, wanted: str) -> ConfigError:
        shown = "hidden" if self.sensitive else text.strip() or "empty"
        return ConfigError(f"{self.name} is {shown}; it must be {wanted}")

    def text(self, value: Value) -> str | None:
        """A value as Kafka shows it."""
        match value:
            case None:
                return None
            case bool():
                return "true" if value else "false"
            case float():
                return _java_double(value)
            case tuple():
                return ",".join(value)
        return str(value)


def _parse_boolean(setting: Setting, text: str) -> Value:
    if text.lower() not in ("true", "false"):
        raise setting.refusal(text, "true or false")
    return text.lower() == "true"


def _parse_integer(setting: Setting, text: str) -> Value:
    limit = 1 << (_WIDTH_BITS[setting.kind] - 1)
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        raise setting.refusal(text, "a whole number")
    if not -limit <= (value := int(text)) < limit:
        raise setting.refusal(text, f"from {-limit} to {limit - 1}")
    return value


def _parse_double(setting: Setting, text: str) -> Value:
    # Each digit can be matched in only one way: clients send these texts, and backtracking would take seconds.
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise setting.refusal(text, "a number")
    if not math.isfinite(value := float(text)):
        raise setting.refusal(text, "a number below 1.8E308")
    return value


def _parse_list(setting: Setting, text: str) -> Value:
    """Comma-separated; repeats are dropped; an empty text is the empty list."""
    words = [word.strip() for word in text.split(",")] if text else []
    if "" in words:
        raise setting.refusal(text, "a list without empty parts")
    return tuple(dict.fromkeys(words))


def _parse_string(setting: Setting, text: str) -> Value:
    return text


_PARSERS: Final[Mapping[Kind, Callable[[Setting, str], Value]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: _parse_string,
    Kind.INT: _parse_integer,
    Kind.SHORT: _parse_integer,
    Kind.LONG: _parse_integer,
    Kind.DOUBLE: _parse_double,
    Kind.LIST: _parse_list,
    Kind.CLASS: _parse_string,
    Kind.PASSWORD: _parse_string,
}


def _java_double(value: float) -> str:
    """A number as Java writes it: 0.5, 1.0E7. Tools compare these texts."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = f"{value:e}".split("e")
    for precision in range(1, 17):
        digits, exponent = f"{value:.{precision}e}".split("e")
        if float(f"{digits}e{exponent}") == value:
            break
    return f"{digits}E{int(exponent)}"


T = TypeVar("T")


def setting(
    *,
    default: T,
    check: Check | None = None,
    doc: str,
    scope: Scope = Scope.READ_ONLY,
    broker: str | tuple[Synonym, ...] = (),
    internal: bool = False,
    alias: str | None = None,
    ours: bool = False,
    later: bool = False,
) -> T:
    """Declare a setting.

    A plain name for *broker* is the broker's setting of the same kind, default and range. An *alias* is an older name
    for the same setting. A setting that is *ours* does not exist in Kafka, and gets the prefix ``cordwood.`` One that
    takes effect *later* is accepted, and reported.
    """
    flags = {"internal": internal, "alias": alias, "later": later}
    facts = {"check": check, "doc": doc, "scope": scope, "broker": broker, **flags}
    prefix = OURS if ours else ""
    return dataclasses.field(default=default, metadata={"setting": facts, "prefix": prefix})


C = TypeVar("C")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, dataclasses.field))
def settings(cls: type[C]) -> type[C]:
    """Turn a class whose fields are settings into a frozen, slotted dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True, repr=False, match_args=False)(cls)


def settings_of(cls: type) -> dict[str, Setting]:
    """The settings that a class declares, by Kafka's name, in order of declaration."""
    hints = get_type_hints(cls, include_extras=True)
    fields = [f for f in dataclasses.fields(cls) if "setting" in f.metadata]
    declared = [_declared(f, *_kind_of(hints[f.name])) for f in fields]
    return {s.name: s for s in declared}


def _declared(field: "dataclasses.Field[Value]", kind: Kind, nullable: bool) -> Setting:
    facts = field.metadata["setting"]
    assert field.default is not dataclasses.MISSING
    broker = facts["broker"]
    if isinstance(broker, str):
        broker = (Synonym(broker, 1, field.default, kind, facts["check"], Scope.CLUSTER_WIDE),)
    return Setting(
        name=field.metadata["prefix"] + field.name.replace("_", "."),
        kind=kind,
        default=field.default,
        doc=facts["doc"],
        check=facts["check"],
        scope=facts["scope"],
        nullable=nullable,
        internal=facts["internal"],
        brokers=broker,
        alias=facts["alias"],
        later=facts["later"],
    )


def _kind_of(hint: object) -> tuple[Kind, bool]:
    """The kind in an annotation such as ``Int`` or ``Long | None``, and whether None is allowed."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [_kind_of(part)[0] for part in get_args(hint) if part is not type(None)]
        return kinds[0], True
    kind = get_args(hint)[-1]
    assert isinstance(kind, Kind), hint
    return kind, False
