"""Unions in Avro: the types that Spark's own Avro reader gives them, and in each value the member that was written."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
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
