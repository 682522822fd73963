"""Converts Spark's types as text to Arrow's and back, without a JVM: a data source's processes on the driver have none.

>>> parse("id BIGINT, tags array<string>")
StructType(struct<id: int64, tags: list<element: string>>)
>>> render(parse("id BIGINT, tags array<string>"))
'struct<`id`:bigint,`tags`:array<string>>'
"""

import re
from difflib import get_close_matches
from typing import Final, NoReturn

import pyarrow as pa

from cordwood.errors import ConfigError

_SIMPLE: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_ALIASES: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_NESTED: Final = ("array", "decimal", "map", "struct")
_NAMES: Final = {kind: name for name, kind in _SIMPLE.items()}
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|'((?:[^'\\]|\\.)*)'|([A-Za-z_0-9]+)|([<>(),:]))")
_DECIMAL_DIGITS: Final = 38


def array_of(element: pa.DataType) -> pa.DataType:
    """A list as Spark wants it in Arrow: the name of the elements matters."""
    return pa.list_(pa.field("element", element))


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def parse(text: str, *, option: str = "the schema") -> pa.DataType:
    """A type, or the fields of a struct. Every field may be null, whatever the schema says, because a record that
    cannot be decoded is.

    Raises:
        ConfigError: it is neither; the text says where it stops making sense.
    """
    return _nullable(parse_strict(text, option=option))


def parse_strict(text: str, *, option: str = "the schema") -> pa.DataType:
    """The same, with fields that may not be null where the text says NOT NULL."""
    return _Parser(text, option).whole()


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _nullable(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return map_of(_nullable(kind.key_type), _nullable(kind.item_type))
    return array_of(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def render(kind: pa.DataType) -> str:
    """A type as Spark reads it."""
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{_quoted(field.name)}:{render(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{render(kind.key_type)},{render(kind.item_type)}>"
    assert pa.types.is_list(kind), kind
    return f"array<{render(kind.value_type)}>"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Parser:
    """One pass from left to right, looking one token ahead."""

    def __init__(self, text: str, option: str) -> None:
        self._text = text
        self._option = option
        self._at = 0
        self._kind, self._token = "", ""
        self._next()

    def whole(self) -> pa.DataType:
        is_field = self._kind in ("word", "name") and self._looks_like_field()
        found = self._fields(end="") if is_field else self._type()
        if self._kind:
            self._fail(f"{self._token!r} is too much")
        return found

    def _looks_like_field(self) -> bool:
        """A name is a field's if it is followed by anything but a type's arguments."""
        rest = self._text[self._at :].lstrip()
        return self._kind == "name" or (bool(rest) and rest[0] not in "<(,")

    def _fields(self, end: str) -> pa.DataType:
        fields: dict[str, pa.Field] = {}
        while self._token != end or self._kind != ("mark" if end else ""):
            field = self._field()
            if field.name.lower() in {name.lower() for name in fields}:
                self._fail(f"the field {field.name} is there twice")
            fields[field.name] = field
            if not self._take(","):
                break
        return pa.struct(list(fields.values()))

    def _field(self) -> pa.Field:
        if self._kind not in ("word", "name"):
            self._fail("a field's name is missing")
        name = self._token
        self._next()
        self._take(":")
        kind = self._type()
        is_required = self._take_word("not")
        if is_required and not self._take_word("null"):
            self._fail("NOT is without its NULL")
        if self._take_word("comment"):
            self._next()
        return pa.field(name, kind, nullable=not is_required)

    def _type(self) -> pa.DataType:
        name = self._token.lower() if self._kind == "word" else ""
        name = _ALIASES.get(name, name)
        if name in ("varchar", "char"):
            self._next()
            self._numbers(1)
            return pa.string()
        if name not in _SIMPLE and name not in _NESTED:
            near = get_close_matches(name, [*_SIMPLE, *_NESTED], 1)
            self._fail(f"{self._token!r} is no type" + (f"; did you mean {near[0]}?" if near else ""))
        self._next()
        return _SIMPLE[name] if name in _SIMPLE else self._nested(name)

    def _nested(self, name: str) -> pa.DataType:
        if name == "decimal":
            precision, scale = [*(self._numbers(2) or [10, 0]), 0][:2]
            if not 0 < precision <= _DECIMAL_DIGITS or scale > precision:
                self._fail(f"decimal({precision},{scale}) is not possible: at most {_DECIMAL_DIGITS} digits")
            return pa.decimal128(precision, scale)
        self._expect("<")
        if name == "struct":
            found = self._fields(end=">")
        else:
            found = self._type()
            if name == "map":
                self._expect(",")
                found = map_of(found, self._type())
            else:
                found = array_of(found)
        self._expect(">")
        return found

    def _numbers(self, most: int) -> list[int]:
        found: list[int] = []
        if self._take("("):
            while len(found) < most:
                if not self._token.isdigit():
                    self._fail("a number is missing")
                found.append(int(self._token))
                self._next()
                if not self._take(","):
                    break
            self._expect(")")
        return found

    def _next(self) -> None:
        if not self._text[self._at :].strip():
            self._kind, self._token = "", ""
            return
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self._fail("this cannot be read")
        assert found.lastindex is not None
        self._at = found.end()
        self._kind = ("name", "text", "word", "mark")[found.lastindex - 1]
        self._token = found[found.lastindex].replace("``", "`")

    def _take(self, mark: str) -> bool:
        if self._kind == "mark" and self._token == mark:
            self._next()
            return True
        return False

    def _take_word(self, word: str) -> bool:
        if self._kind == "word" and self._token.lower() == word:
            self._next()
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            self._fail(f"{mark} is missing")

    def _fail(self, reason: str) -> NoReturn:
        place = f"at {self._text[: self._at][-30:]!r}"
        raise ConfigError(
            f"{self._option}: {reason}, {place}; write it as Spark does, such as id BIGINT, tags ARRAY<STRING>"
        )
