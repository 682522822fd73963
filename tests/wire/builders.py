"""Messages of every kind, made from their declarations."""

from functools import cache
from types import ModuleType
from uuid import UUID

from hypothesis import strategies as st

from cordwood.group import stored, stored_offsets
from cordwood.wire.messages import consumer_protocol, headers
from cordwood.wire.registry import APIS
from cordwood.wire.types import BYTES, RECORDS, STRING, UUID_BYTES, FieldSpec, MessageSpec, Scalar, span, spec_of

# Requests and responses of all APIs.
MESSAGES: list[type] = [cls for api in APIS.values() for cls in (api.request, api.response)]


def _declared(module: ModuleType) -> list[type]:
    """The messages that a module declares: structs inside of others say nothing of versions."""
    found = (cls for cls in vars(module).values() if isinstance(getattr(cls, "__wire__", None), MessageSpec))
    return [cls for cls in found if cls.__module__ == module.__name__ and spec_of(cls).versions != span("0+")]


# What belongs to no API: headers, what consumers tell each other, what groups are stored as.
OTHERS: list[type] = [
    cls for module in (headers, consumer_protocol, stored, stored_offsets) for cls in _declared(module)
]

_RANGES = {"b": (-128, 127), "h": (-(2**15), 2**15 - 1), "i": (-(2**31), 2**31 - 1), "q": (-(2**63), 2**63 - 1)}
_RANGES |= {"H": (0, 2**16 - 1), "I": (0, 2**32 - 1)}

# Lengths around the limits of one and two bytes of a varint are where codecs go wrong.
_TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["", "x" * 126, "x" * 127, "é" * 64, "x" * 300]))
_BYTES = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"x" * 126, b"x" * 127, b"x" * 17000]))
_UUIDS = st.one_of(st.just(UUID(int=0)), st.uuids())


def _scalars(kind: Scalar) -> st.SearchStrategy[object]:
    if kind is STRING:
        return _TEXTS
    if kind in (BYTES, RECORDS):
        return _BYTES
    if kind is UUID_BYTES:
        return _UUIDS
    if kind.code == "?":
        return st.booleans()
    if kind.code == "d":
        return st.floats(allow_nan=False, allow_infinity=False)
    low, high = _RANGES[kind.code]
    return st.integers(low, high)


def _values(spec: FieldSpec) -> st.SearchStrategy[object]:
    kind = spec.type
    one = _structs(kind) if isinstance(kind, MessageSpec) else _scalars(kind)
    if spec.array and isinstance(kind, Scalar) and kind.fixed:
        found: st.SearchStrategy[object] = st.one_of(st.lists(one, max_size=3), one.map(lambda item: [item] * 130))
    elif spec.array:
        found = st.lists(one, max_size=2)
    else:
        found = one
    return st.none() | found if spec.null or spec.default is None else found


def _structs(spec: MessageSpec) -> st.SearchStrategy[object]:
    return st.builds(spec.cls, **{field.name: _values(field) for field in spec.fields})


@cache  # a strategy is looked through when it is first drawn from, which takes longer than to draw
def messages(cls: type) -> st.SearchStrategy[object]:
    """Messages with something in every field, whatever the version: see ``fit``."""
    return _structs(spec_of(cls))


def fit(message: object, version: int) -> object:
    """The same message with what *version* can carry: what it lacks has its default, null only where it may be."""
    spec = spec_of(type(message))
    values = {field.name: _fit_field(field, getattr(message, field.name), version) for field in spec.fields}
    return spec.cls(**values)


def _fit_field(field: FieldSpec, value: object, version: int) -> object:
    if version not in field.versions:
        return field.fresh_default()
    if isinstance(value, list):
        return [fit(item, version) for item in value] if isinstance(field.type, MessageSpec) else value
    if isinstance(field.type, MessageSpec) and not field.array:
        return _fit_struct(field, value, version)
    if value is None and version not in field.null:
        return [] if field.array else {STRING: "", BYTES: b"", RECORDS: b""}[field.type]  # type: ignore[index]
    return value


def _fit_struct(field: FieldSpec, value: object, version: int) -> object:
    assert isinstance(field.type, MessageSpec)
    if value is not None:
        found = fit(value, version)
        return None if field.tag is not None and found == field.type.cls() else found
    return None if field.tag is not None or version in field.null else field.type.cls()


def versions(cls: type) -> range:
    return spec_of(cls).versions


def sample(cls: type) -> object:
    """A message in which every field of every version differs from its default."""
    return _sample_struct(spec_of(cls), count=2)


def _sample_struct(spec: MessageSpec, *, count: int) -> object:
    return spec.cls(**{field.name: _sample_value(field, count) for field in spec.fields})


def _sample_value(field: FieldSpec, count: int) -> object:
    kind = field.type
    one = _sample_struct(kind, count=1) if isinstance(kind, MessageSpec) else _sample_scalar(kind, field.default)
    return [one] * count if field.array else one


def _sample_scalar(kind: Scalar, default: object) -> object:
    others = {STRING: "abc", BYTES: b"abcd", RECORDS: b"batches", UUID_BYTES: UUID(int=2**127 + 5)}
    if kind in others:
        return others[kind]
    return not default if kind.code == "?" else 5
