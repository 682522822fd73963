"""No record is so odd that it stops a query: it has the value that Spark would read, or a reason."""

import json
import pickle
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from cordwood.errors import ConfigError
from cordwood.spark.values import ValueDecoder, ddl, make
from cordwood.spark.values.formats import one_by_one
from cordwood.spark.values.json_infer import infer
from cordwood.spark.values.json_values import Json
from cordwood.spark.values.registry import RegistryError
from cordwood.spark.values.times import zone_of

MANY_DIGITS = b"9" * 5000
WHOLE_NUMBER = "the field i should be a whole number of 64 bits, and is "


def decoder(options: Mapping[str, str]) -> ValueDecoder:
    made = make(options)
    assert made is not None
    return made


def json_decoded(schema: str, record: bytes) -> tuple[object, str | None]:
    """One record, between enough others for the fast road, and alone: both must say the same."""
    format_ = Json(ddl.parse(schema))
    data = pa.array([b"{}"] * 20 + [record] + [b"{}"] * 20, pa.binary())
    found = []
    for values, errors in (format_.decode(data), format_._each(data)):
        assert values.null_count == (values[20].as_py() is None)
        assert errors is None or errors.null_count == 40
        found.append((values[20].as_py(), None if errors is None else errors[20].as_py()))
    assert found[0] == found[1]
    return found[0]


# JSON


@pytest.mark.parametrize(
    ("schema", "record", "expected"),
    [
        ("id BIGINT, name STRING", rb'{"id":2,"name":"\ud83d"}', {"id": 2, "name": "?"}),
        ("name STRING", rb'{"name":"a\uDFFF\uD800b"}', {"name": "a??b"}),
        ("name STRING", rb'{"name":"\ud83d\ud83d\ude00"}', {"name": "?\U0001f600"}),
        ("name STRING", rb'{"name":"\\ud83d"}', {"name": r"\ud83d"}),
        ("name STRING", rb'{"name":{"\ud83d":["\ude00"]}}', {"name": '{"?":["?"]}'}),
        ("a STRUCT<b: ARRAY<STRING>>", rb'{"a":{"b":["\ud83d"]}}', {"a": {"b": ["?"]}}),
        ("m MAP<STRING,STRING>", rb'{"m":{"\ud83d":"\ud83d"}}', {"m": [("?", "?")]}),
        ("name STRING", rb'{"other":"\ud83d","name":"x"}', {"name": "x"}),
    ],
)
def test_half_a_character_is_a_question_mark_as_spark_has_it(schema: str, record: bytes, expected: object) -> None:
    assert json_decoded(schema, record) == (expected, None)


@pytest.mark.parametrize(
    ("schema", "record", "reason"),
    [
        ("i BIGINT", rb'{"i":"\ud800"}', WHOLE_NUMBER + '"?"'),
        ("t TIMESTAMP", rb'{"t":"\ud800"}', 'the field t should be a time, such as 2026-01-31T12:00:00Z, and is "?"'),
        ("b BINARY", rb'{"b":"\ud800"}', 'the field b should be text in base64, and is "?"'),
        (
            "m MAP<STRING,INT>",
            rb'{"m":{"\ud800":true}}',
            "the field m.? should be a whole number of 32 bits, and is true",
        ),
        ("m MAP<STRING,STRING>", rb'{"m":{"\ud800":1,"\ud801":2}}', "the field m.? is there twice"),
        ("i BIGINT", rb'{"i":"\ud800"', "not JSON: Expecting ',' delimiter, at character 13, ''"),
    ],
)
def test_half_a_character_can_be_told_in_a_reason(schema: str, record: bytes, reason: str) -> None:
    assert json_decoded(schema, record) == (None, reason)


@pytest.mark.parametrize(
    ("schema", "record", "expected"),
    [
        ("i BIGINT", b'{"i":1,"big":%s}', {"i": 1}),
        ("i BIGINT", b'{"i":1,"big":[{"x":-%s}]}', {"i": 1}),
        ("i DOUBLE", b'{"i":%s}', {"i": float("inf")}),
        ("i DOUBLE", b'{"i":-%s}', {"i": float("-inf")}),
        ("i STRING", b'{"i":%s}', {"i": MANY_DIGITS.decode()}),
        ("i STRING", b'{"i":{"x":[-%s,1,"y"]}}', {"i": f'{{"x":[-{MANY_DIGITS.decode()},1,"y"]}}'}),
    ],
)
def test_a_number_of_many_digits_is_no_error_of_its_own(schema: str, record: bytes, expected: object) -> None:
    assert json_decoded(schema, record % MANY_DIGITS) == (expected, None)


def test_a_whole_number_beyond_doubles_is_infinite_on_both_roads() -> None:
    assert json_decoded("i DOUBLE", b'{"i":%s}' % MANY_DIGITS[:400]) == ({"i": float("inf")}, None)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ("i BIGINT", "a whole number of 64 bits"),
        ("i DECIMAL(10,2)", "a number of at most 10 digits, 2 of them after the point"),
        ("i BOOLEAN", "true or false"),
        ("i DATE", "a date, such as 2026-01-31"),
        ("i BINARY", "text in base64"),
        ("i ARRAY<INT>", "an array"),
    ],
)
def test_a_number_of_many_digits_in_its_column_is_a_bad_record(schema: str, wanted: str) -> None:
    reason = f"the field i should be {wanted}, and is {MANY_DIGITS[:60].decode()}…"
    assert json_decoded(schema, b'{"i":%s}' % MANY_DIGITS) == (None, reason)


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("DECIMAL(38,2)", b"12345678901234567.89", Decimal("12345678901234567.89")),
        ("DECIMAL(38,18)", b"-0.123456789012345678", Decimal("-0.123456789012345678")),
        ("DECIMAL(38,0)", b"1.2345678901234567890123e22", Decimal(12345678901234567890123)),
        ("DECIMAL(6,2)", b"1.5000", Decimal("1.50")),
        ("DECIMAL(6,2)", b"0e-999999999", Decimal(0)),
        ("DECIMAL(6,2)", b"9999.99", Decimal("9999.99")),
        ("DOUBLE", b"12345678901234567.89", 12345678901234567.89),
        ("FLOAT", b"1.10", 1.100000023841858),
        ("DOUBLE", b"-1e999", float("-inf")),
        ("STRING", b"1.10", "1.10"),
        ("STRING", b"1E2", "1E2"),
        ("STRING", b"1e999", "1e999"),
        ("STRING", b'{"x":[1.10,-2.0e3,"y",null,{}]}', '{"x":[1.10,-2.0e3,"y",null,{}]}'),
    ],
)
def test_a_number_is_what_is_written(kind: str, number: bytes, expected: object) -> None:
    """Spark's JSON source has it so: decimals are exact, and a number that becomes text is the text that it was."""
    assert json_decoded(f"i {kind}", b'{"i":%s}' % number) == ({"i": expected}, None)


@pytest.mark.parametrize(
    "number",
    b'1e30 1e-9 123456789.5 1e999999999 1e-999999999 "1e-999999999" 1e9999999999999999999 NaN "NaN" -Infinity'.split(),
)
def test_a_number_that_is_too_large_or_too_fine_for_a_decimal_is_a_bad_record(number: bytes) -> None:
    wanted = "a number of at most 10 digits, 2 of them after the point"
    reason = f"the field i should be {wanted}, and is {number.decode()}"
    assert json_decoded("i DECIMAL(10,2)", b'{"i":%s}' % number) == (None, reason)


@pytest.mark.parametrize(
    ("zone", "text", "expected"),
    [
        ("UTC", "2026-07-31T12:00:00", "2026-07-31T12:00:00Z"),
        ("Europe/Berlin", "2026-07-31T12:00:00", "2026-07-31T10:00:00Z"),
        ("Europe/Berlin", "2026-01-31T12:00:00", "2026-01-31T11:00:00Z"),
        ("Europe/Berlin", "2026-01-31", "2026-01-30T23:00:00Z"),
        ("Europe/Berlin", "2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
        ("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ("Europe/Berlin", "2026-07-31T12:00:00-05:00", "2026-07-31T17:00:00Z"),
        ("+05:30", "2026-07-31T12:00:00", "2026-07-31T06:30:00Z"),
    ],
)
def test_a_time_without_a_zone_is_that_of_the_option(zone: str, text: str, expected: str) -> None:
    """As Spark's JSON source has it, also in the hour that a summer's begin leaves out, or its end repeats."""
    made = decoder({"valueFormat": "json", "valueSchema": "t TIMESTAMP, n TIMESTAMP_NTZ", "timeZone": zone})
    made = pickle.loads(pickle.dumps(made))
    values, errors = made.decode(pa.array([b'{"t":"%s","n":"2026-07-31T12:00:00"}' % text.encode()] * 20))
    assert errors is None
    found = {"t": datetime.fromisoformat(expected), "n": datetime(2026, 7, 31, 12)}
    assert values.to_pylist() == [found] * 20


@pytest.mark.parametrize(
    ("zone", "schema", "matters"),
    [
        ("Europe/Berlin", "t TIMESTAMP", True),
        ("Europe/Berlin", "a ARRAY<STRUCT<t: TIMESTAMP>>", True),
        ("Europe/Berlin", "d DATE, n TIMESTAMP_NTZ", False),
        *((zone, "t TIMESTAMP", False) for zone in ("UTC", "Z", "GMT", "Etc/UTC", "+00:00")),
    ],
)
def test_records_are_read_one_by_one_only_where_the_zone_matters(zone: str, schema: str, matters: bool) -> None:
    assert (Json(ddl.parse(schema), zone=zone_of(zone))._read_as is None) == matters


@pytest.mark.parametrize("zone", ["Europe/Berln", "America", "", "../etc/passwd", "+5"])
def test_a_zone_that_is_none_is_an_error_of_its_option(zone: str) -> None:
    with pytest.raises(ConfigError, match="timeZone is"):
        make({"valueFormat": "json", "valueSchema": "t TIMESTAMP", "timeZone": zone})
    with pytest.raises(ConfigError, match="timeZone is for the format json"):
        make({"valueFormat": "string", "timeZone": "UTC"})


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+14:00", "0000-12-31"])
def test_times_beyond_the_years_that_spark_has_are_bad_records(kind: str, text: str) -> None:
    value, reason = json_decoded(f"t {kind}", b'{"t":"%s"}' % text.encode())
    assert value is None
    assert str(reason).endswith(f'and is "{text}"')


def test_times_out_of_range_are_found_wherever_they_are() -> None:
    schema = "a ARRAY<STRUCT<t: TIMESTAMP>>"
    value, reason = json_decoded(schema, b'{"a":[{"t":"2026-01-01T00:00:00Z"},{"t":"9999-12-31T23:59:59-01:00"}]}')
    assert value is None
    assert str(reason).startswith("the field a[1].t should be a time")


def test_the_first_and_the_last_time_are_read() -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    for time in (first, last):
        assert json_decoded("t TIMESTAMP", b'{"t":"%s"}' % time.isoformat().encode()) == ({"t": time}, None)


@pytest.mark.parametrize(
    ("schema", "record", "expected"),
    [
        ("i BIGINT", b'{"i":1,"z":1,"z":2}', ({"i": 1}, None)),
        ("i BIGINT", b'{"i":1,"z":[{"i":1,"i":2}]}', ({"i": 1}, None)),
        ("i BIGINT", b'{"i":1,"z":1,"i":2}', (None, "the field i is there twice")),
        ("i BIGINT", b'{"i":null,"i":null}', (None, "the field i is there twice")),
        ("i STRING", b'{"i":"a","i":"a"}', (None, "the field i is there twice")),
        ("i STRING", b'{"i":{"z":1,"z":2}}', (None, "a field is there twice")),
        ("i ARRAY<STRUCT<j: DATE>>", b'{"i":[{"j":null,"j":null}]}', (None, "the field i[0].j is there twice")),
        ("i STRUCT<j: TIMESTAMP>", b'{"i":{"z":1,"z":2}}', ({"i": {"j": None}}, None)),
    ],
)
def test_twins_are_bad_where_they_are_read(schema: str, record: bytes, expected: object) -> None:
    """Arrow does not see others, and one record must not be judged by its neighbours."""
    assert json_decoded(schema, record) == expected


STRICT = "id BIGINT NOT NULL, o STRUCT<x: INT NOT NULL, `y y`: INT>, l ARRAY<STRUCT<z: DATE NOT NULL>>"


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (b"{}", "id"),
        (b'{"id":null}', "id"),
        (b'{"id":2,"o":{"y y":1}}', "o.x"),
        (b'{"id":2,"l":[{"z":"2026-01-31"},null,{"z":null}]}', "l[2].z"),
        (b'{"id":2,"o":null,"l":[null]}', None),
        (b'{"id":2,"o":{"x":1},"l":[]}', None),
        (b"null", None),
    ],
)
@pytest.mark.parametrize("schema", [STRICT, STRICT + ", m MAP<STRING, STRUCT<x: INT NOT NULL>>"])
def test_a_field_without_a_value_is_a_bad_record_if_the_schema_says_not_null(
    schema: str, record: bytes, field: str | None
) -> None:
    """Both for the fast road, and for a schema that has none."""
    made = decoder({"valueFormat": "json", "valueSchema": schema})
    assert made.value_type == ddl.parse(schema.replace(" NOT NULL", ""))
    made = pickle.loads(pickle.dumps(made))
    values, errors = made.decode(pa.array([b'{"id":1}'] * 20 + [record] + [b'{"id":1}'] * 20))
    expected = None if field is None else f"the field {field} is null, and the schema says NOT NULL"
    found = pa.nulls(41) if errors is None else errors
    assert found.to_pylist() == [*[None] * 20, expected, *[None] * 20]
    assert values.null_count == (field is not None or record == b"null")


@pytest.mark.parametrize("depth", [1500, 50_000])
def test_both_roads_refuse_what_is_nested_too_deep(depth: int) -> None:
    record = b'{"i":1,"other":' + b"[" * depth + b"]" * depth + b"}"
    assert json_decoded("i BIGINT", record) == (None, "not JSON that can be read: it is nested too deep")


def test_types_are_inferred_in_spite_of_odd_records() -> None:
    records = [b'{"id":1,"big":%s}' % MANY_DIGITS, rb'{"\ud800":"\ud800"}']
    assert infer(records) == ddl.parse("`?` string, big double, id bigint")


@pytest.mark.parametrize(("before", "after"), [(b'{"id":', b"}"), (b"[", b"]"), (b'[{"x":', b"}]")])
def test_types_are_inferred_in_spite_of_deep_records(before: bytes, after: bytes) -> None:
    deep = b'{"id":1,"deep":' + before * 400 + b"1" + after * 400 + b"}"
    kind = infer([deep, b'{"id":1}'])
    assert kind.field("id").type == pa.int64()
    values, errors = Json(kind).decode(pa.array([deep]))
    assert (values[0].is_valid, errors) == (True, None)


# Protobuf


@pytest.fixture(scope="module")
def event(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Callable[..., bytes]]:
    """The options for a message with a time in it, and what makes one."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="t", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Event")
    message.field.add(name="at", number=1, type=kinds.TYPE_MESSAGE, label=1, type_name=".google.protobuf.Timestamp")
    message.field.add(name="name", number=2, type=kinds.TYPE_STRING, label=1)
    message.field.add(name="sizes", number=3, type=kinds.TYPE_UINT64, label=3)
    time_file = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(time_file)
    path = tmp_path_factory.mktemp("protobuf") / "e.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[time_file, file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    for entry in (time_file, file):
        pool.Add(entry)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Event"))

    def written(seconds: int, nanos: int = 0) -> bytes:
        found: bytes = made(at={"seconds": seconds, "nanos": nanos}, name="x", sizes=[1, 2]).SerializeToString()
        return found

    return {"valueFormat": "protobuf", "descriptorFile": str(path), "messageName": "t.Event"}, written


@pytest.mark.parametrize("seconds", [2**63 - 1, -(2**63), 253402300800, -62135596801])
def test_a_protobuf_time_out_of_range_is_a_bad_record(
    event: tuple[dict[str, str], Callable[..., bytes]], seconds: int
) -> None:
    options, written = event
    values, errors = decoder(options).decode(pa.array([written(1), written(seconds), written(2)]))
    assert [value.is_valid for value in values] == [True, False, True]
    assert errors is not None
    time = f"a time of {seconds} seconds and 0 nanoseconds"
    reason = f"not a message t.Event: {time}, which is not within the years 1 to 9999"
    assert errors.to_pylist() == [None, reason, None]


# The net under all of them


def test_whatever_a_decoder_raises_is_its_records_reason_alone() -> None:
    def halves(record: bytes) -> object:
        return 1 // (len(record) - 1)

    values, errors = one_by_one(pa.array([b"", None, b"x", b"xx"]), halves, pa.int64())
    assert values.to_pylist() == [-1, None, None, 1]
    assert errors is not None
    assert errors.to_pylist() == [
        None,
        None,
        "cannot be decoded: ZeroDivisionError: integer division or modulo by zero",
        None,
    ]


def test_a_value_that_does_not_fit_its_column_is_its_records_reason_alone() -> None:
    given: dict[bytes, object] = {b"a": "x", b"b": "\ud800", b"c": 5, b"d": "y"}
    values, errors = one_by_one(pa.array(list(given)), given.__getitem__, pa.string())
    assert values.to_pylist() == ["x", None, None, "y"]
    assert errors is not None
    beginning = "the value does not fit the columns' schema: "
    assert [str(error).startswith(beginning) for error in errors.to_pylist()] == [False, True, True, False]


def test_a_reason_can_always_be_written() -> None:
    def refuse(record: bytes) -> object:
        raise ValueError("\ud800" * 10_000)

    _, errors = one_by_one(pa.array([b"x"]), refuse, pa.int64())
    assert errors is not None
    assert errors[0].as_py().startswith("cannot be decoded: ValueError: ????")
    assert len(errors[0].as_py()) < 1000


@pytest.mark.parametrize("kind", [RegistryError, ConfigError])
def test_what_is_no_records_fault_stops_the_query(kind: type[Exception]) -> None:
    def refuse(record: bytes) -> object:
        raise kind("nobody answers")

    with pytest.raises(kind, match="nobody answers"):
        one_by_one(pa.array([b"x"]), refuse, pa.int64())


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "either", "type": ["null", "int", "string", {"type": "map", "values": "double"}]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def avro_record() -> bytes:
    out = BytesIO()
    value = {
        "at": 1,
        "local": 1,
        "day": 1,
        "time": 1,
        "uid": "12345678-1234-5678-1234-567812345678",
        "price": b"\x01\x00",
        "either": {"x": 1.5},
        "kind": "B",
        "tags": ["a", "b"],
    }
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(AVRO)), value)
    return out.getvalue()


def damaged(chance: random.Random, record: bytes) -> bytes:
    """A record with some bytes changed, left out or put in."""
    made = bytearray(record)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(made) + 1)
        made[at : at + chance.randrange(3)] = chance.choice(
            [chance.randbytes(chance.randrange(4)), b"\xff" * 9, b"\\ud800", b"9" * 30, b"1e999", b'"']
        )
    return bytes(made)


@pytest.mark.parametrize("format_", ["json", "avro", "protobuf", "string"])
def test_damaged_records_cost_only_themselves(
    format_: str, event: tuple[dict[str, str], Callable[..., bytes]], tmp_path: Path
) -> None:
    schema = "t TIMESTAMP, d DATE, s STRING, n DECIMAL(6,2), m MAP<STRING, DOUBLE>, b BINARY, i INT"
    good, options = {
        "json": (
            b'{"t":"2026-01-31T12:00:00Z","d":"2026-01-31","s":"x","n":1.5,"m":{"k":1},"b":"AAE=","i":1}',
            {"valueSchema": schema},
        ),
        "avro": (avro_record(), {"valueSchema": json.dumps(AVRO)}),
        "protobuf": (event[1](5), event[0]),
        "string": ("é".encode(), {}),
    }[format_]
    made = decoder({**options, "valueFormat": format_})
    chance = random.Random(7)
    records = [record for _ in range(1000) for record in (good, damaged(chance, good))]
    values, errors = made.decode(pa.array(records, pa.binary()))
    assert errors is not None
    values.validate(full=True)
    errors.validate(full=True)
    assert all(value is not None for value in values.to_pylist()[::2])
    assert not any(errors.to_pylist()[::2])
    assert values.is_null().equals(errors.is_valid())
