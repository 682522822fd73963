"""The layout of one version of a message: what native code (``native/``) is told of a declaration.

A layout is ``(class, flexible, plain fields, tagged fields by tag, fields that the version lacks)``. A field is
``(name, letter of its kind, array, nullable, compact, tag or -1, least size, default, layout of its struct or None)``,
where the default is ``list`` for a new list, a message's class for a new instance of it, or else the value itself.
"""

from typing import Final

from .decoding import least_size
from .types import FieldSpec, MessageSpec

_LETTERS: Final = {"16s": "U", "string": "s", "bytes": "y", "records": "r"}
_NO_TAG: Final = -1

Layout = tuple[object, ...]


def layout(spec: MessageSpec, version: int) -> Layout:
    return _layout(spec, version, flexible=version in spec.flexible)


def fields_alone(spec: MessageSpec) -> Layout:
    """A layout for making messages without decoding: every field, and its default."""
    version = spec.versions[0]
    return spec.cls, False, (), (), tuple(_field(field, version, flexible=False) for field in spec.fields)


def _layout(spec: MessageSpec, version: int, *, flexible: bool) -> Layout:
    """*flexible* is passed down because only the outermost message says which versions are flexible."""
    groups = spec.plain(version), [field for _, field in spec.tagged(version)], spec.absent(version)
    fields = (tuple(_field(field, version, flexible=flexible) for field in group) for group in groups)
    return (spec.cls, flexible, *fields)


def _field(field: FieldSpec, version: int, *, flexible: bool) -> Layout:
    kind, inner = field.type, None
    if isinstance(kind, MessageSpec):
        letter, inner = "{", _layout(kind, version, flexible=flexible)
    else:
        letter = _LETTERS.get(kind.code, kind.code)
    return (
        field.name,
        letter,
        field.array,
        version in field.null,
        field.compact,
        _NO_TAG if field.tag is None else field.tag,
        least_size(kind, version, flexible=flexible),
        field.default.cls if isinstance(field.default, MessageSpec) else field.default,
        inner,
    )
