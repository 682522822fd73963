"""Unions in Avro: the types that Spark's own Avro reader gives them, and in each value the member that was written."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO

import fastavro
import pyarrow as pa
import pytest

from cordwood.spark.values.avro_types import arrow_type
from cordwood.spark.values.avro_values import Avro, parse_schema
from cordwood.spark.values.settings import ValueSettings
from spark.fake_registry import FakeRegistry

A = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
B = {"type": "record", "name": "B", "fields": [{"name": "x", "type": "int"}]}
KIND = {"type": "enum", "name": "Kind", "symbols": ["ONE", "TWO"]}
ID = {"type": "fixed", "name": "Id", "size": 2}
TIME = {"type": "long", "logicalType": "timestamp-millis"}


def record(*types: object, names: str = "abcdefgh", name: str = "R") -> object:
    fields = [{"name": field, "type": type_} for field, type_ in zip(names, types, strict=False)]
    return {"type": "record", "name": name, "fields": fields}


def written(schema: object, value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def read(schema: object, *values: object) -> list[object]:
    """What comes of values that were written by this schema. A tuple says which member of a union it is."""
    settings = ValueSettings("avro", schema=json.dumps(schema))
    parsed = parse_schema(json.dumps(schema))
    found = Avro(settings, arrow_type(*parsed)).decode(pa.array([written(schema, value) for value in values]))
    assert found.errors is None, found.errors
    return list(found.values.to_pylist())


def member(number: int, value: object, of: int) -> dict[str, object]:
    return {f"member{n}": value if n == number else None for n in range(of)}


@pytest.mark.parametrize(
    ("union", "kind", "values"),
    [
        (["null", "int", "long"], pa.int64(), [None, 1, 2**40, -(2**63)]),
        (["long", "int"], pa.int64(), [1, 2**40]),
        (["float", "double"], pa.float64(), [("float", 0.5), ("double", 1e300), ("double", 0.1)]),
        (["double", "null", "float"], pa.float64(), [None, ("double", 1e300)]),
        (["int", {"type": "long"}], pa.int64(), [2**40]),
        (["null", "int", TIME], pa.int64(), [("int", 1), ("long", 2**40)]),
    ],
)
def test_two_kinds_of_numbers_are_the_wider_one(union: list[object], kind: pa.DataType, values: list[object]) -> None:
    schema = record(union)
    assert arrow_type(*parse_schema(json.dumps(schema))) == pa.struct([("a", kind)])
    expected = [value[1] if isinstance(value, tuple) else value for value in values]
    assert read(schema, *({"a": value} for value in values)) == [{"a": value} for value in expected]


WIDE = ["null", "int", "long", "float", "double", "string", "boolean", "bytes", KIND, ID]


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("int", 5, 0),
        ("long", 5, 1),
        ("long", 2**40, 1),
        ("float", 0.5, 2),
        ("double", 0.5, 3),
        ("double", 1e300, 3),
        ("string", "ONE", 4),
        ("boolean", True, 5),
        ("bytes", b"ab", 6),
        ("Kind", "ONE", 7),
        ("Id", b"ab", 8),
    ],
)
def test_a_value_is_the_member_that_was_written(name: str, value: object, number: int) -> None:
    schema = record(WIDE)
    assert read(schema, {"a": (name, value)}, {"a": None}) == [{"a": member(number, value, 9)}, {"a": None}]


def test_records_with_equal_fields_are_told_apart_wherever_they_are() -> None:
    """In unions, in arrays and maps of them, beside null; and the same types where there is no union are themselves."""
    schema = record(
        [A, B],
        {"type": "array", "items": ["null", "A", "B"]},
        {"type": "map", "values": ["A", "B"]},
        "B",
        ["null", "A"],
    )
    one, two = {"x": 1}, {"x": 2}
    value = {"a": ("B", one), "b": [("A", one), None, ("B", two)], "c": {"k": ("B", two)}, "d": one, "e": two}
    first, second = {"member0": one, "member1": None}, {"member0": None, "member1": two}
    assert read(schema, value) == [
        {"a": member(1, one, 2), "b": [first, None, second], "c": [("k", second)], "d": one, "e": two}
    ]


def test_a_union_within_a_member_is_found() -> None:
    inner = record(["int", "string", KIND], name="Inner")
    schema = record(["string", inner, A], ["null", "Inner"])
    value = {"a": ("Inner", {"a": ("Kind", "ONE")}), "b": {"a": ("string", "ONE")}}
    assert read(schema, value) == [
        {"a": member(1, {"a": member(2, "ONE", 3)}, 3), "b": {"a": member(1, "ONE", 3)}},
    ]


def test_logical_types_are_members_too() -> None:
    day, price = {"type": "int", "logicalType": "date"}, {"type": "bytes", "logicalType": "decimal", "precision": 4}
    schema = record([day, TIME, price, "string"])
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert read(schema, {"a": ("long", moment)}, {"a": ("int", moment.date())}, {"a": ("string", "x")}) == [
        {"a": member(1, moment, 4)},
        {"a": member(0, moment.date(), 4)},
        {"a": member(3, "x", 4)},
    ]


# Values of older schemas


def with_b_first(union: list[object]) -> object:
    """A type that is defined before the union that it is a member of."""
    before = {"name": "z", "type": ["null", B], "default": None}
    return {"type": "record", "name": "R", "fields": [before, {"name": "a", "type": union}]}


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    running = FakeRegistry()
    yield running
    running.close()


@pytest.mark.parametrize(
    ("reader", "writer", "value", "expected"),
    [
        (record(["null", A, B]), record(["null", B]), {"a": {"x": 1}}, member(1, {"x": 1}, 2)),
        (record([A, B]), record([B, A]), {"a": ("B", {"x": 1})}, member(1, {"x": 1}, 2)),
        (record([A, B]), record(B), {"a": {"x": 1}}, member(1, {"x": 1}, 2)),
        (with_b_first(["null", A, "B"]), record([A, B]), {"a": ("B", {"x": 1})}, member(1, {"x": 1}, 2)),
        (record([A, B]), with_b_first([A, "B"]), {"z": None, "a": ("B", {"x": 1})}, member(1, {"x": 1}, 2)),
        (with_b_first([A, "B"]), with_b_first(["B", A]), {"z": None, "a": ("B", {"x": 1})}, member(1, {"x": 1}, 2)),
        (record(["string", KIND]), record(KIND), {"a": "ONE"}, member(1, "ONE", 2)),
        (record(["string", KIND, "int", "long"]), record("long"), {"a": 2**40}, member(3, 2**40, 4)),
        (record(["string", "int", "long"]), record(["long", "string"]), {"a": 5}, member(2, 5, 3)),
        (record(["string", "double", "float"]), record(["null", "long"]), {"a": 5}, member(1, 5.0, 3)),
        (record(["string", "float", "double"]), record("double"), {"a": 1e300}, member(2, 1e300, 3)),
        (record("double"), record(["int", "long", "string"]), {"a": ("long", 5)}, 5.0),
        (record(["int", "long"]), record(["int", "long", "string"]), {"a": ("long", 2**40)}, 2**40),
        (record(B), record([A, B]), {"a": ("B", {"x": 1})}, {"x": 1}),
        (record(["null", B]), record([A, B]), {"a": ("B", {"x": 1})}, {"x": 1}),
    ],
)
def test_a_member_of_an_older_schema_is_the_same_one_in_the_new_one(
    reader: object, writer: object, value: object, expected: object, registry: FakeRegistry
) -> None:
    registry.add(7, writer)
    schema = json.dumps(reader)
    made = Avro(ValueSettings("avro", schema=schema, registry_url=registry.url), arrow_type(*parse_schema(schema)))
    found = made.decode(pa.array([b"\0\0\0\0\7" + written(writer, value)]))
    assert found.errors is None, found.errors
    assert found.values.to_pylist()[0]["a"] == expected


DATE = {"type": "int", "logicalType": "date"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
AMOUNT = {"type": "fixed", "name": "Amount", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 4}
TEXT_ID = {"type": "string", "logicalType": "uuid"}
BYTES_ID = {"type": "fixed", "name": "Uuid", "size": 16, "logicalType": "uuid"}
MILLIS = {"type": "int", "logicalType": "time-millis"}
MICROS = {"type": "long", "logicalType": "time-micros"}
MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOME_ID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def of(schema: Mapping[str, object], logical: str) -> dict[str, object]:
    return {**schema, "logicalType": logical}


def read_into(reader: object, registry: FakeRegistry, writer: object, value: object) -> tuple[object, object]:
    """What comes of a value that another schema wrote, and what is wrong with it."""
    registry.add(7, writer)
    schema = json.dumps(reader)
    made = Avro(ValueSettings("avro", schema=schema, registry_url=registry.url), arrow_type(*parse_schema(schema)))
    found = made.decode(pa.array([b"\0\0\0\0\7" + written(writer, value)]))
    return found.values.to_pylist()[0], None if found.errors is None else found.errors.to_pylist()[0]


@pytest.mark.parametrize(
    ("union", "value", "expected"),
    [
        (["double", "long"], ("long", 2**53 + 1), member(1, 2**53 + 1, 2)),
        (["float", "string", "long"], ("long", 2**53 + 1), member(2, 2**53 + 1, 3)),
        (["bytes", "string"], ("string", "a"), member(1, "a", 2)),
        (["string", "bytes"], ("bytes", b"a"), member(1, b"a", 2)),
        (["long", "int", "string"], ("int", 3), member(1, 3, 3)),
        ([PRICE, "string"], ("string", "a"), member(1, "a", 2)),
    ],
)
def test_a_type_that_both_schemas_have_is_not_promoted(
    union: list[object], value: object, expected: object, registry: FakeRegistry
) -> None:
    """Whatever else the schemas differ in, and whichever member comes first."""
    extra = {"name": "more", "type": "int", "default": 0}
    reader = {"type": "record", "name": "R", "fields": [{"name": "a", "type": union}, extra]}
    assert read_into(reader, registry, record(union), {"a": value}) == ({"a": expected, "more": 0}, None)
    assert read_into(record([*union, KIND]), registry, record(union), {"a": value}) == (
        {"a": {**expected, f"member{len(union)}": None}},  # type: ignore[dict-item]
        None,
    )


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"),
    [
        ("long", 1000, [TIME, "string"], member(0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 2)),
        ("int", 1, [DATE, "string"], member(0, date(1970, 1, 2), 2)),
        (DATE, date(1970, 1, 2), ["int", "string"], member(0, 1, 2)),
        (TEXT_ID, SOME_ID, ["string", "int"], member(0, SOME_ID, 2)),
        ("bytes", b"\x01\x00", [PRICE, "string"], member(0, Decimal("2.56"), 2)),
        ("long", 3, ["int", "long", "string"], member(1, 3, 3)),
        ("long", 2**40, ["int", "long", "string"], member(1, 2**40, 3)),
        ("int", 3, ["float", "double", "string"], member(1, 3.0, 3)),
        (TIME, MOMENT, {"type": "long", "logicalType": "timestamp-micros"}, MOMENT),
        (MILLIS, time(0, 0, 1), MICROS, 1_000_000),
        ({**PRICE, "scale": 1}, Decimal("2.5"), PRICE, Decimal("2.50")),
        ("int", 1, ["null", "double"], 1.0),
        ("string", "a", "bytes", b"a"),
        ({"type": "array", "items": "int"}, [1, 2], {"type": "array", "items": "double"}, [1.0, 2.0]),
        ({"type": "map", "values": "int"}, {"k": 1}, {"type": "map", "values": ["int", "string"]}, "map"),
    ],
)
def test_a_value_is_what_the_columns_say(
    writer: object, value: object, reader: object, expected: object, registry: FakeRegistry
) -> None:
    if expected == "map":
        expected = [("k", member(0, 1, 2))]
    assert read_into(record(reader), registry, record(writer), {"a": value}) == ({"a": expected}, None)


@pytest.mark.parametrize(
    ("writer", "value", "reader"),
    [
        ("string", "a", ["int", "long"]),
        ("string", "a", ["int", "boolean"]),
        (["int", "string"], "a", ["int", "boolean"]),
        (["null", "int"], None, ["int", "boolean"]),
        (["null", "int"], None, "int"),
        ("double", 0.5, "long"),
        (A, {"x": 1}, {**A, "name": "C"}),
        (ID, b"ab", {**ID, "size": 3}),
        (KIND, "TWO", {**KIND, "symbols": ["ONE"]}),
        ("bytes", b"\xff", ["string", "int"]),
        ({"type": "long", "logicalType": "timestamp-millis"}, 2**60, [TIME, "string"]),
    ],
)
def test_a_value_that_the_columns_can_not_have_is_bad(
    writer: object, value: object, reader: object, registry: FakeRegistry
) -> None:
    found, reason = read_into(record(reader), registry, record(writer), {"a": value})
    assert found is None
    assert reason is not None


@pytest.mark.parametrize(
    ("union", "values", "expected"),
    [
        ([PRICE, AMOUNT], [("bytes", Decimal("1.5"))], [(0, Decimal("1.50"))]),
        ([PRICE, AMOUNT], [("Amount", Decimal("1.5"))], [(1, Decimal("1.5000"))]),
        ([PRICE, AMOUNT], [("Amount", Decimal("123456.7891"))], [(1, Decimal("123456.7891"))]),
        ([PRICE, AMOUNT], [("Amount", Decimal("-123456.7891"))], [(1, Decimal("-123456.7891"))]),
        ([MILLIS, MICROS, "string"], [("int", time(1)), ("long", time(1))], [(0, 3_600_000), (1, 3_600_000_000)]),
        ([of(A, "one"), of(B, "two")], [("B", {"x": 1})], [(1, {"x": 1})]),
        ([of(ID, "one"), "bytes"], [("bytes", b"ab"), ("Id", b"ab")], [(1, b"ab"), (0, b"ab")]),
        (["string", of(KIND, "one")], [("Kind", "ONE"), ("string", "ONE")], [(1, "ONE"), (0, "ONE")]),
        ([BYTES_ID, "string"], [("Uuid", b"0123456789abcdef")], [(0, b"0123456789abcdef")]),
        (
            [{"type": "array", "items": ["int", "long", "string"]}, "string"],
            [("array", [("long", 1)])],
            [(0, [member(1, 1, 3)])],
        ),
    ],
)
def test_members_with_logical_types_are_told_apart(
    union: list[object], values: list[object], expected: list[tuple[int, object]]
) -> None:
    found = read(record(union), *({"a": value} for value in values))
    assert found == [{"a": member(number, value, len(union))} for number, value in expected]


def test_a_uuid_of_sixteen_bytes_is_bytes() -> None:
    schema = record(BYTES_ID)
    assert arrow_type(*parse_schema(json.dumps(schema))) == pa.struct([("a", pa.binary())])
    assert read(schema, {"a": b"0123456789abcdef"}) == [{"a": b"0123456789abcdef"}]


@pytest.mark.parametrize(
    ("type_", "default", "expected"),
    [
        (["null", "int", "string"], None, None),
        (["int", "string", "null"], 1, member(0, 1, 2)),
        (["int", "boolean"], True, member(1, True, 2)),
        (["string", A], {"x": 1}, member(1, {"x": 1}, 2)),
        ("bytes", "\u00ff", b"\xff"),
        ("double", 1, 1.0),
        (DATE, 1, date(1970, 1, 2)),
        (A, {"x": 1}, {"x": 1}),
        ({"type": "array", "items": "int"}, [1], [1]),
        ({"type": "map", "values": "int"}, {"k": 1}, [("k", 1)]),
        (["int", "long"], 1, 1),
    ],
)
def test_a_field_that_was_not_written_has_its_default(
    type_: object, default: object, expected: object, registry: FakeRegistry
) -> None:
    new = {"name": "b", "type": type_, "default": default}
    reader = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, new]}
    assert read_into(reader, registry, record("int"), {"a": 1}) == ({"a": 1, "b": expected}, None)


def test_a_field_without_a_default_must_be_written(registry: FakeRegistry) -> None:
    found, reason = read_into(record("int", "int"), registry, record("int"), {"a": 1})
    assert found is None
    assert "b" in str(reason)


def test_fields_types_and_symbols_have_other_names(registry: FakeRegistry) -> None:
    new = {"type": "enum", "name": "n.Sort", "aliases": ["Kind"], "symbols": ["ONE", "NONE"], "default": "NONE"}
    reader = {"type": "record", "name": "n.R", "fields": [{"name": "b", "aliases": ["a"], "type": ["string", new]}]}
    assert read_into(reader, registry, record(KIND), {"a": "TWO"}) == ({"b": member(1, "NONE", 2)}, None)


def test_a_record_that_contains_itself_is_read_without_that(registry: FakeRegistry) -> None:
    """The columns' schema cannot have it; the writer's may."""
    again = {"name": "next", "type": ["null", "R", "string"]}
    writer = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}, again]}
    value = {"a": 1, "next": ("R", {"a": "x", "next": None})}
    assert read_into(record(["int", "string"]), registry, writer, value) == ({"a": member(0, 1, 2)}, None)


def test_a_whole_value_may_be_a_union(registry: FakeRegistry) -> None:
    assert read([A, B, "string"], ("B", {"x": 1}), "x") == [member(1, {"x": 1}, 3), member(2, "x", 3)]
    assert read_into(["string", A, B], registry, [A, B], ("B", {"x": 1})) == (member(2, {"x": 1}, 3), None)


def test_of_two_names_in_other_namespaces_the_full_one_counts(registry: FakeRegistry) -> None:
    one, two = {**A, "name": "one.A"}, {**A, "name": "two.A"}
    found = read_into(record([one, two, "int"]), registry, record([one, two]), {"a": ("two.A", {"x": 1})})
    assert found == ({"a": member(1, {"x": 1}, 3)}, None)
