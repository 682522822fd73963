"""How a message is declared: one typed class for all of its versions.

A declaration reads like Kafka's documentation of the message, and is an ordinary slotted class that mypy understands as
a dataclass with keyword-only fields::

    @message(key=0, versions="3-13", flexible="9+")
    class ProduceRequest:
        transactional_id: str | None = None
        acks: i16 = 0
        ...

    @message
    class ProduceRequestTopic:
        name: str = v("3-12")
        topic_id: UUID = v("13+")
        ...

Every field has a default, and a field that a version lacks keeps it, so a handler sees one type whatever the version.
The default is Kafka's, or else the type's zero: ``0``, ``False``, ``""``, an empty list, the zero UUID, ``None`` where
the annotation allows it. A *tagged struct* is annotated ``| None``: None stands for "not sent".

``compiler.py`` compiles the declarations; a class knows nothing of how it is encoded.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, overload
from uuid import UUID

from cordwood.ports import Chunk

T = TypeVar("T")

VERSION_MAX: Final = 32767
API_VERSIONS_KEY: Final = 18
NO_UUID: Final = UUID(int=0)

# Authorized operations are sent as a bit field; this value means "not asked for".
OPERATIONS_UNKNOWN: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value on the wire that is not a struct: a format letter of the ``struct`` module, or one of the names below."""

    code: str
    size: int = 0

    @property
    def fixed(self) -> bool:
        return self.size > 0


STRING: Final = Scalar("string")
BYTES: Final = Scalar("bytes")
RECORDS: Final = Scalar("records")
UUID_BYTES: Final = Scalar("16s", 16)
BOOL: Final = Scalar("?", 1)

i8 = Annotated[int, Scalar("b", 1)]
i16 = Annotated[int, Scalar("h", 2)]
i32 = Annotated[int, Scalar("i", 4)]
i64 = Annotated[int, Scalar("q", 8)]
u16 = Annotated[int, Scalar("H", 2)]
u32 = Annotated[int, Scalar("I", 4)]
f64 = Annotated[float, Scalar("d", 8)]

# Record batches: decoded to a memoryview of the frame, never copied; encoded from bytes, from a slice of a file (which
# is sent without being read), or from several of these in a row.
Records = Annotated[Chunk | Sequence[Chunk], RECORDS]

_SCALARS: Final[dict[object, Scalar]] = {bool: BOOL, str: STRING, bytes: BYTES, UUID: UUID_BYTES}
_ZEROS: Final[dict[str, object]] = {"?": False, "d": 0.0, "string": "", "bytes": b"", "records": b"", "16s": NO_UUID}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a message, as the compiler sees it."""

    name: str
    type: "Scalar | MessageSpec"
    array: bool
    versions: range
    null: range
    tag: int | None
    default: object
    compact: bool

    def fresh_default(self) -> object:
        """The value of this field where a version lacks it; never shared if it is mutable."""
        if self.default is list:
            return []
        if isinstance(self.default, MessageSpec):
            return self.default.cls()
        return self.default


@dataclass(frozen=True, slots=True, eq=False)
class MessageSpec:
    """A declared message, or a struct inside one."""

    cls: type
    name: str
    key: int | None
    versions: range
    flexible: range
    fields: tuple[FieldSpec, ...]

    def present(self, version: int) -> list[FieldSpec]:
        return [spec for spec in self.fields if version in spec.versions]

    def plain(self, version: int) -> list[FieldSpec]:
        return [spec for spec in self.present(version) if spec.tag is None]

    def tagged(self, version: int) -> list[tuple[int, FieldSpec]]:
        """The tagged fields of a version with their tags, in the order in which they are sent."""
        found = [(spec.tag, spec) for spec in self.present(version) if spec.tag is not None]
        return sorted(found, key=lambda pair: pair[0])

    def absent(self, version: int) -> list[FieldSpec]:
        return [spec for spec in self.fields if version not in spec.versions]


def spec_of(cls: type) -> MessageSpec:
    """What ``@message`` has recorded about a class."""
    spec = getattr(cls, "__wire__", None)
    assert isinstance(spec, MessageSpec), f"{cls.__name__} is not declared with @message"
    return spec


def span(text: str) -> range:
    """Versions as Kafka writes them.

    >>> span("3+"), span("0-12"), span("7"), span("none")
    (range(3, 32768), range(0, 13), range(7, 8), range(0, 0))
    """
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), VERSION_MAX + 1)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


@dataclass(frozen=True, slots=True)
class _Options:
    versions: range
    default: object
    tag: int | None
    null: range | None
    compact: bool


# Returns Any, because it is used in place of the default of a field of any type.
def v(
    versions: str = "0+",
    *,
    default: object = MISSING,
    tag: int | None = None,
    null: str | None = None,
    compact: bool = True,
) -> Any:  # noqa: ANN401
    """Describe a field that is more than simply present in all versions.

    Args:
        versions: the versions that have it.
        default: its value in other versions, and in a message that is built without naming it.
        tag: its number among the tagged fields; it is sent only if it differs from the default.
        null: the versions in which None may be sent (all, if the annotation allows None). For a tagged struct this must
            be given explicitly: None there usually means that the tag is not sent, but a nullable one is always sent.
        compact: False for the one string that keeps its 2-byte length even in flexible versions.
    """
    return _Options(span(versions), default, tag, None if null is None else span(null), compact)


_PLAIN: Final = _Options(span("0+"), MISSING, None, None, True)


@overload
def message(cls: type[T], /) -> type[T]: ...
@overload
def message(*, key: int | None = None, versions: str, flexible: str = "none") -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(kw_only_default=True)
def message(
    cls: type[T] | None = None, /, *, key: int | None = None, versions: str = "0+", flexible: str = "none"
) -> type[T] | Callable[[type[T]], type[T]]:
    """Declare a message (with its versions, which of them are flexible, and its API key) or, bare, a struct in one."""
    if cls is not None:
        return _declare(cls, None, span(versions), span(flexible))
    return lambda found: _declare(found, key, span(versions), span(flexible))


def _declare(cls: type[T], key: int | None, versions: range, flexible: range) -> type[T]:
    specs = tuple(_field(cls, name, hint) for name, hint in get_annotations(cls).items())
    for spec in specs:
        setattr(cls, spec.name, _as_dataclass_field(spec))
    for name, method in (("__init__", _compile_init), ("__eq__", _equal), ("__hash__", None), ("__repr__", _represent)):
        setattr(cls, name, method)
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise dataclass() would spell out a signature, which is slow
    # The stock __init__, __repr__ and __eq__ are compiled for each class at import, which would add 0.1 s to a broker's
    # start for some 350 classes; ours are shared, or compiled at first use.
    made = dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=True, slots=True)(cls)
    made.__wire__ = MessageSpec(made, cls.__name__, key, versions, flexible, specs)  # type: ignore[attr-defined]
    return made


def _field(cls: type, name: str, hint: object) -> FieldSpec:
    given = cls.__dict__.get(name, MISSING)
    options = given if isinstance(given, _Options) else _PLAIN
    kind, array, nullable = _classify(hint)
    tagged_struct = options.tag is not None and isinstance(kind, MessageSpec) and not array
    assert nullable or not tagged_struct, f"{cls.__name__}.{name}: a tagged struct is `| None`"
    null = options.null if options.null is not None else span("0+" if nullable and not tagged_struct else "none")
    default = options.default if isinstance(given, _Options) else given
    if default is MISSING:
        default = _zero(kind, array=array, nullable=nullable)
    return FieldSpec(
        name=name,
        type=kind,
        array=array,
        versions=options.versions,
        null=null,
        tag=options.tag,
        default=list if default == [] else default,
        compact=options.compact,
    )


def _classify(hint: object) -> tuple[Scalar | MessageSpec, bool, bool]:
    """What one annotation says: (the kind, is it an array of that, may it be None)."""
    nullable = array = False
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (arg for arg in get_args(hint) if arg is not NoneType)
        nullable = True
    if get_origin(hint) is list:
        (hint,) = get_args(hint)
        array = True
    if get_origin(hint) is Annotated:
        return cast(Scalar, get_args(hint)[1]), array, nullable
    if hint in _SCALARS:
        return _SCALARS[hint], array, nullable
    assert isinstance(hint, type)
    return spec_of(hint), array, nullable


def _zero(kind: Scalar | MessageSpec, *, array: bool, nullable: bool) -> object:
    if nullable:
        return None
    if array:
        return []
    if isinstance(kind, MessageSpec):
        return kind
    return _ZEROS.get(kind.code, 0)


def _as_dataclass_field(spec: FieldSpec) -> Field[object]:
    if spec.default is list or isinstance(spec.default, MessageSpec):
        return cast(Field[object], field(default_factory=spec.fresh_default))
    return cast(Field[object], field(default=spec.default))


def generated_maker(cls: type[T]) -> type[T]:
    """A function that can be called like *cls* itself."""
    lines, constants = _assignments(cls)
    constants |= {"new": object.__new__, "cls": cls}
    return cast(type[T], _function(cls, "make", ["self = new(cls)", *lines, "return self"], constants))


def _compile_init(self: object, **values: object) -> None:
    """The ``__init__`` of a class until its first call, which compiles the real one."""
    cls = type(self)
    made = _function(cls, "__init__", *_assignments(cls))
    setattr(cls, "__init__", made)  # noqa: B010
    made(self, **values)


def _assignments(cls: type) -> tuple[list[str], dict[str, object]]:
    """The lines that give each field its value or its default, and the constants that they refer to."""
    lines: list[str] = []
    constants: dict[str, object] = {}
    for spec in spec_of(cls).fields:
        made_anew = spec.default is list or isinstance(spec.default, MessageSpec)
        constants[f"d_{spec.name}"] = MISSING if made_anew else spec.default
        constants[f"new_{spec.name}"] = spec.fresh_default
        fresh = "[]" if spec.default is list else f"new_{spec.name}()"
        anew = f" if {spec.name} is not d_{spec.name} else {fresh}" if made_anew else ""
        lines.append(f"self.{spec.name} = {spec.name}{anew}")
    return lines, constants


def _function(cls: type, name: str, lines: list[str], constants: dict[str, Any]) -> Callable[..., object]:
    """A function with all fields of the class as keyword arguments; ``__init__`` also gets the object."""
    first = "self, *, " if name == "__init__" else "*, "
    head = f"def {name}({first}{', '.join(f'{spec.name}=d_{spec.name}' for spec in spec_of(cls).fields)}):"
    text = "\n    ".join([head, *(lines or ["pass"])])
    exec(compile(text, f"<{cls.__name__}.{name}>", "exec"), constants)
    return cast(Callable[..., object], constants[name])


def _values(self: object) -> tuple[object, ...]:
    return tuple(getattr(self, spec.name) for spec in spec_of(type(self)).fields)


def _equal(self: object, other: object) -> bool:
    return type(self) is type(other) and _values(self) == _values(other)


def _represent(self: object) -> str:
    shown = (f"{spec.name}={getattr(self, spec.name)!r}" for spec in spec_of(type(self)).fields)
    return f"{type(self).__name__}({', '.join(shown)})"
