"""Typed values: what they are, what is wrong with them, and where the bad ones go."""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from cordwood.client.raw import RawSettings
from cordwood.errors import ConfigError
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.schema import Columns
from cordwood.spark.values import ValueDecoder, ddl, make
from cordwood.spark.values.framing import after_indexes
from cordwood.spark.values.json_infer import infer
from cordwood.spark.values.json_values import Json
from cordwood.spark.values.registry import Registry, RegistryError
from cordwood.testing import Broker
from spark.fake_registry import FakeRegistry
from spark.spark_topics import Kafka

Load = Callable[..., DataFrame]
NOBODY = RawSettings("127.0.0.1:1")


def decoder(**options: str) -> ValueDecoder:
    made = make({name.replace("_", "."): value for name, value in options.items()})
    assert made is not None
    return made


def decoded(decoder: ValueDecoder, *records: bytes | None) -> tuple[list[object], list[str | None]]:
    values, errors = decoder.decode(pa.array(records, pa.binary()))
    assert values.type == decoder.value_type
    return values.to_pylist(), [None] * len(records) if errors is None else errors.to_pylist()


# Types as text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", pa.int64()),
        ("id INT", pa.struct([("id", pa.int32())])),
        ("a long, b: string NOT NULL COMMENT 'it''s'", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("`odd name` decimal(10,2)", pa.struct([("odd name", pa.decimal128(10, 2))])),
        ("array<struct<x:double>>", ddl.array_of(pa.struct([("x", pa.float64())]))),
        ("m MAP<STRING, ARRAY<DATE>>", pa.struct([("m", ddl.map_of(pa.string(), ddl.array_of(pa.date32())))])),
        ("t timestamp, n timestamp_ntz, v varchar(5)", None),
    ],
)
def test_types_are_read_and_written(text: str, expected: pa.DataType | None) -> None:
    found = ddl.parse(text.replace("it''s", "its"))
    assert expected is None or found == expected
    assert ddl.parse(ddl.render(found)) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a strin", "did you mean string?"),
        ("a int,, b int", "a field's name is missing"),
        ("a array<int", "> is missing"),
        ("a int, A long", "the field A is there twice"),
        ("a decimal(40,1)", "at most 38 digits"),
        ("a int; b int", "cannot be read"),
        ("array<int> x", "is too much"),
    ],
)
def test_a_schema_that_is_none_says_where(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match="valueSchema: ") as error:
        ddl.parse(text, option="valueSchema")
    assert reason in str(error.value)


# Options


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"valueFormat": "jsn"}, "did you mean json"),
        ({"valueFormat": "protobuf"}, "descriptorFile"),
        ({"valueFormat": "avro"}, "schema.registry.url"),
        ({"valueFormat": "string", "valueSchema": "a INT"}, "json and avro"),
        ({"deadLetterTopic": "bad"}, "needs a valueFormat"),
        ({"valueFormat": "json", "sampleRecords": "0", "valueSchema": "a INT"}, "at least 1"),
        ({"valueFormat": "json"}, "needs valueSchema"),
        ({"valueFormat": "avro", "valueSchema": "/nowhere.avsc"}, "nor a file"),
        ({"valueFormat": "avro", "valueSchema": '{"type":"recrd"}'}, "cannot be read"),
        ({"valueFormat": "protobuf", "descriptorFile": "/nowhere", "messageName": "a.B"}, "descriptorFile /nowhere"),
    ],
)
def test_wrong_options_say_what_is_right(options: Mapping[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        make(options)
    assert reason in str(error.value)


def test_bytes_need_no_decoder() -> None:
    assert make({"valueFormat": "raw", "subscribe": "orders"}) is None


def test_the_columns_are_typed_and_reasons_come_last() -> None:
    made = decoder(valueFormat="json", valueSchema="id BIGINT", keyformat="string")
    assert made.fields == [("key", "string"), ("value", "struct<`id`:bigint>"), ("_error", "string")]
    assert made.schema(Columns.of(["offset", "value"])).names == ["offset", "value", "_error"]
    assert made.schema(Columns.of(["offset"])).names == ["offset"]
    letters = decoder(valueFormat="string", deadLetterTopic="bad")
    assert letters.fields == [("value", "string")]
    assert set(letters.needed(Columns.of(["value"])).names) >= {"key", "topic", "partition", "offset", "timestamp"}


def test_a_decoder_travels() -> None:
    made = decoder(valueFormat="json", valueSchema="id BIGINT")
    made.decode(pa.array([b"{}"]))
    again = pickle.loads(pickle.dumps(made))
    assert decoded(again, b'{"id":1}') == ([{"id": 1}], [None])


# Text


def test_text_that_is_not_utf_8_is_null_with_a_reason() -> None:
    assert decoded(decoder(valueFormat="string"), "é".encode(), None, b"a\xff") == (
        ["é", None, None],
        [None, None, "not UTF-8: byte 1 is 0xff"],
    )


def test_a_bad_key_has_a_reason_too() -> None:
    made = decoder(keyFormat="string")
    rows = pa.record_batch({"key": pa.array([b"a", b"\xff", None]), "value": pa.array([b"1", b"\xff", None])})
    (found,) = made.rows([rows], Columns.of(["key", "value"]), NOBODY)
    assert found.to_pydict() == {
        "key": ["a", None, None],
        "value": [b"1", b"\xff", None],
        "_error": [None, "key: not UTF-8: byte 0 is 0xff", None],
    }


# JSON

ORDER = "id BIGINT, user STRING, amount DOUBLE, paid BOOLEAN, tags ARRAY<STRING>, at TIMESTAMP, day DATE"
GOOD = (
    b'{"id":1,"user":"\\u00e9","amount":2,"paid":true,"tags":["a",null],"at":"2026-01-31T12:00:00+02:00",'
    b'"day":"2026-01-31","more":{"x":[1]}}'
)
READ = {
    "id": 1,
    "user": "é",
    "amount": 2.0,
    "paid": True,
    "tags": ["a", None],
    "at": datetime(2026, 1, 31, 10, tzinfo=UTC),
    "day": date(2026, 1, 31),
}
NOTHING = dict.fromkeys(READ)


@pytest.mark.parametrize("count", [1, 50])
def test_json_is_read_alike_in_bulk_and_one_by_one(count: int) -> None:
    made = decoder(valueFormat="json", valueSchema=ORDER)
    records = [GOOD, None, b" {\n} ", b"null"] * count
    assert decoded(made, *records) == ([READ, None, NOTHING, None] * count, [None] * 4 * count)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b'{"id":"1"}', 'the field id should be a whole number of 64 bits, and is "1"'),
        (b'{"id":1.5}', "the field id should be a whole number of 64 bits, and is 1.5"),
        (b'{"id":9223372036854775808}', "the field id should be a whole number"),
        (b'{"tags":[1,[]],"paid":0}', "the field paid should be true or false, and is 0"),
        (b'{"tags":"a"}', 'the field tags should be an array, and is "a"'),
        (b'{"day":"31.1.2026"}', "the field day should be a date"),
        (b'{"at":5}', "the field at should be a time"),
        (b'{"id":1,"id":2}', "the field id is there twice"),
        (b'{"id":1', "not JSON"),
        (b"", "not JSON"),
        (b"[1]", "the value should be an object, and is [1]"),
        (b'{"id":1}{"id":2}', "not JSON: Extra data"),
        (b'{"user":"\xff"}', "not UTF-8: byte 9 is 0xff"),
        (b"[" * 100_000, "nested too deep"),
    ],
)
@pytest.mark.parametrize("others", [0, 1500])
def test_a_bad_json_record_is_null_and_says_which_field(record: bytes, reason: str, others: int) -> None:
    made = decoder(valueFormat="json", valueSchema=ORDER)
    values, errors = decoded(made, *[GOOD] * others, record, *[GOOD] * others)
    assert values == [READ] * others + [None] + [READ] * others
    assert (errors[others] or "").startswith(reason) or reason in (errors[others] or "")
    assert errors.count(None) == 2 * others


def test_records_can_not_reach_into_each_other() -> None:
    made = decoder(valueFormat="json", valueSchema="a ARRAY<BIGINT>")
    records = [b'{"a":[1,', b"2]}", b'{"a":[3]}{"a":[4]}', *[b'{"a":[5]}'] * 40]
    values, errors = decoded(made, *records)
    assert values == [None, None, None, *[{"a": [5]}] * 40]
    assert None not in errors[:3]


@pytest.mark.parametrize(
    "record",
    [
        b'{"a":1},"z":2',
        b'{"a":1},"z":{}',
        b'{"a":1} , "v":{"a":2}',
        b'null,"z":"}"',
        b'{"a":1}}\n{"v":{"a":2}',
        b'{"a":1}},{"v":{"a":2}',
        b'"\\",","z":1',
    ],
)
def test_what_follows_a_value_is_an_error_of_its_record_alone(record: bytes) -> None:
    data = pa.array([b'{"a":7,"b":",}"}'] * 20 + [record] + [b'{"a":8}'] * 20, pa.binary())
    found = Json(ddl.parse("a BIGINT")).decode(data)
    assert found.errors is not None
    assert [number for number, text in enumerate(found.errors.to_pylist()) if text is not None] == [20]
    assert found.values.to_pylist() == [{"a": 7}] * 20 + [None] + [{"a": 8}] * 20


def test_a_string_field_takes_any_json() -> None:
    made = decoder(valueFormat="json", valueSchema="a STRING")
    values, errors = decoded(made, *[b'{"a":{"b":[1,2]}}', b'{"a":1}', b'{"a":"x"}'] * 20)
    assert values == [{"a": '{"b":[1,2]}'}, {"a": "1"}, {"a": "x"}] * 20
    assert not any(errors)


def test_maps_decimals_and_binaries_are_read() -> None:
    made = decoder(valueFormat="json", valueSchema="m MAP<STRING,INT>, d DECIMAL(6,2), b BINARY")
    values, errors = decoded(made, b'{"m":{"x":1},"d":12.5,"b":"AAE="}', b'{"d":1.234}', b'{"m":{"x":"y"}}')
    assert values[0] == {"m": [("x", 1)], "d": Decimal("12.50"), "b": b"\x00\x01"}
    assert errors[1:] == [
        "the field d should be a number of at most 6 digits, 2 of them after the point, and is 1.234",
        'the field m.x should be a whole number of 32 bits, and is "y"',
    ]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(JSON_VALUES.map(lambda v: json.dumps(v).encode()) | st.binary(max_size=8), min_size=17, max_size=40))
@settings(max_examples=150, deadline=None)
def test_both_roads_of_json_agree(records: list[bytes]) -> None:
    kind = ddl.parse("a BIGINT, b DOUBLE, c STRUCT<a: STRING, b: ARRAY<DOUBLE>>, d ARRAY<BOOLEAN>")
    format_ = Json(kind)
    data = pa.array(records, pa.binary())
    bulk, each = format_.decode(data), format_._each(data)
    assert bulk.values.equals(each.values)
    assert (bulk.errors is None) == (each.errors is None)
    assert bulk.errors is None or bulk.errors.equals(each.errors)


def test_types_are_inferred_alike_whatever_the_order() -> None:
    records = [
        b'{"b":1,"a":{"x":null,"y":[1]}}',
        b'{"a":{"y":[2.5],"x":"t"},"c":true}',
        b"not json",
        b'{"c":"text","d":null,"b":2}',
    ]
    expected = ddl.parse("a struct<x:string,y:array<double>>, b bigint, c string, d string")
    assert infer(records) == infer(reversed(records)) == expected


STRAYS = [b"[1]", b'"text"', b"5", b"not json", b"null", b"", b"\xff"]


@pytest.mark.parametrize("stray", STRAYS)
def test_a_few_strays_do_not_take_the_columns_from_objects(stray: bytes) -> None:
    records = [b'{"id":%d}' % number for number in range(50)]
    kind = ddl.parse("id BIGINT")
    for place in (0, 25, 50):
        assert infer([*records[:place], stray, *records[place:]]) == kind
    values, errors = Json(kind).decode(pa.array([*records, stray]))
    assert values.null_count == 1
    assert (errors is None) == (stray == b"null")


def test_objects_have_the_columns_if_they_are_more_than_half() -> None:
    assert infer([b'{"a":1}'] * 3 + [b"[1]", b"5", *[b"not json"] * 9]) == ddl.parse("a BIGINT")
    assert infer([b'{"a":1}'] * 2 + [b"[1]", b"5"]) == pa.string()
    assert infer([b"5", b"6.5", b"null"]) == pa.float64()


def test_nothing_to_infer_from_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="valueSchema"):
        infer([b"nonsense", b"null"])


# Avro and the registry

USER = {
    "type": "record",
    "name": "User",
    "namespace": "t",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "either", "type": ["int", "string"]},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
UID = "12345678-1234-5678-1234-567812345678"
PERSON = {
    "id": 1,
    "name": "x",
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "either": "s",
    "counts": {"a": 1},
    "kind": "B",
    "uid": UID,
}
PERSON_READ = {**PERSON, "either": {"member0": None, "member1": "s"}, "counts": [("a", 1)]}


def avro(schema: Mapping[str, object], value: object) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(dict(schema)), value)
    return out.getvalue()


def framed(number: int, payload: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + payload


def test_avro_is_read_by_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "user.avsc"
    file.write_text(json.dumps(USER))
    record = avro(USER, PERSON)
    for schema in (json.dumps(USER), str(file)):
        made = decoder(valueFormat="avro", valueSchema=schema)
        values, errors = decoded(made, record, None, record[:-3], record + b"x")
        assert values == [PERSON_READ, None, None, None]
        assert errors[:2] == [None, None]
        assert "not Avro of this schema" in str(errors[2])
        assert "1 bytes are left" in str(errors[3])


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    running = FakeRegistry()
    yield running
    running.close()


def record_schema(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def test_schemas_come_from_the_registry_once_and_old_records_are_read_into_the_newest(registry: FakeRegistry) -> None:
    old = record_schema({"name": "a", "type": "int"})
    new = record_schema({"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "none"})
    registry.add(1, old)
    registry.add(2, new)
    registry.answers["/subjects/orders-value/versions/latest"] = {"schema": json.dumps(new), "id": 2, "version": 2}
    options = {"valueFormat": "avro", "schema.registry.url": registry.url}
    made = make(options, topic="orders")
    assert made is not None
    records = [framed(1, avro(old, {"a": 1})), framed(2, avro(new, {"a": 2, "b": "x"}))] * 3
    values, errors = decoded(pickle.loads(pickle.dumps(made)), *records)
    assert values == [{"a": 1, "b": "none"}, {"a": 2, "b": "x"}] * 3
    assert not any(errors)
    assert registry.asked.count("/schemas/ids/1") == registry.asked.count("/schemas/ids/2") == 1


def test_a_schema_that_is_settled_stays_when_the_registry_has_a_newer_one(registry: FakeRegistry) -> None:
    new = record_schema({"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "none"})
    registry.add(2, new)
    registry.answers["/subjects/orders-value/versions/latest"] = registry.answers["/schemas/ids/2"]
    settled = pa.struct([("a", pa.int64())])
    made = make({"valueFormat": "avro", "schema.registry.url": registry.url}, topic="orders", value_type=settled)
    assert made is not None
    assert decoded(made, framed(2, avro(new, {"a": 2, "b": "x"}))) == ([{"a": 2}], [None])


def test_records_without_a_known_schema_are_bad_and_do_not_flood_the_registry(registry: FakeRegistry) -> None:
    registry.add(1, "long")
    made = decoder(valueFormat="avro", valueSchema='"long"', schema_registry_url=registry.url)
    values, errors = decoded(made, framed(1, b"\x04"), *[framed(9, b"\x04")] * 5, b"{}", framed(1, b""))
    assert values == [2, *[None] * 7]
    assert errors[1] == "the registry does not know schema 9"
    assert str(errors[6]).startswith("no schema's number before the value: it begins with 7b 7d")
    assert registry.asked.count("/schemas/ids/9") == 1


def test_a_schema_that_refers_to_another_is_resolved(registry: FakeRegistry) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
    outer = record_schema({"name": "inner", "type": "Inner"})
    registry.answers["/subjects/inner/versions/3"] = {"schema": json.dumps(inner)}
    registry.add(1, outer, references=[{"name": "Inner", "subject": "inner", "version": 3}])
    registry.answers["/subjects/s/versions/latest"] = registry.answers["/schemas/ids/1"]
    made = decoder(valueFormat="avro", schema_registry_url=registry.url, schema_registry_subject="s")
    assert decoded(made, framed(1, b"\x06")) == ([{"inner": {"x": 3}}], [None])


def test_a_registry_that_is_away_for_a_moment_is_asked_again(registry: FakeRegistry) -> None:
    registry.add(1, "long")
    registry.failures = 1
    assert Registry(registry.url).by_id(1).text == '"long"'
    registry.answers["/schemas/ids/2"] = {}
    with pytest.raises(RegistryError, match="no schema in it"):
        Registry(registry.url).by_id(2)


def test_a_record_that_contains_itself_has_no_type() -> None:
    schema = record_schema({"name": "next", "type": ["null", "R"]})
    with pytest.raises(ConfigError, match="contains itself, at next"):
        decoder(valueFormat="avro", valueSchema=json.dumps(schema))


# Protobuf


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=1)
    message.field.add(name="big", number=2, type=kinds.TYPE_UINT64, label=1)
    message.field.add(name="note", number=3, type=kinds.TYPE_STRING, label=1, proto3_optional=True, oneof_index=0)
    message.oneof_decl.add(name="_note")
    message.field.add(name="tags", number=4, type=kinds.TYPE_STRING, label=3)
    message.field.add(name="line", number=5, type=kinds.TYPE_MESSAGE, label=1, type_name=".t.Line")
    message.field.add(name="data", number=6, type=kinds.TYPE_BYTES, label=1)
    file.message_type.add(name="Line").field.add(name="count", number=1, type=kinds.TYPE_UINT32, label=1)
    path = tmp_path_factory.mktemp("protobuf") / "t.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return path


def order_bytes(descriptors: Path) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes()).file:
        pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Order"))
    message = order(id=5, big=2**64 - 1, tags=["a", "b"], data=b"\xff")
    message.line.count = 2**32 - 1
    made: bytes = message.SerializeToString()
    return made


def test_protobuf_is_read_by_its_descriptors(descriptors: Path) -> None:
    made = decoder(valueFormat="protobuf", descriptorFile=str(descriptors), messageName="t.Order")
    values, errors = decoded(made, order_bytes(descriptors), b"", b"\xff")
    assert values == [
        {
            "id": 5,
            "big": Decimal(2**64 - 1),
            "note": None,
            "tags": ["a", "b"],
            "line": {"count": 2**32 - 1},
            "data": b"\xff",
        },
        {"id": 0, "big": Decimal(0), "note": None, "tags": [], "line": None, "data": b""},
        None,
    ]
    assert "not a message t.Order" in str(errors[2])


def test_protobuf_with_a_registrys_frame(descriptors: Path) -> None:
    made = make(
        {
            "valueFormat": "protobuf",
            "descriptorFile": str(descriptors),
            "messageName": "t.Order",
            "schema.registry.url": "http://127.0.0.1:1",
        }
    )
    assert made is not None
    values, errors = decoded(made, framed(7, b"\0" + order_bytes(descriptors)), b"\0\0\0\0\1", b"x")
    assert values[0] is not None
    assert values[1:] == [None, None]
    assert "message indexes" in str(errors[1])
    assert after_indexes(b"\x04\x02\x00rest") == b"rest"


def test_a_message_that_is_not_there_says_which_are(descriptors: Path) -> None:
    with pytest.raises(ConfigError, match=r"t\.Order, t\.Line"):
        decoder(valueFormat="protobuf", descriptorFile=str(descriptors), messageName="t.Ordr")


# Dead letters


def test_bad_records_go_to_their_topic_with_where_they_come_from(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    made = decoder(valueFormat="json", valueSchema="a INT", deadLetterTopic=name)
    columns = Columns.of(["value"])
    rows = pa.record_batch(
        {
            "value": pa.array([b'{"a":1}', b"bad", None, b'{"a":"x"}']),
            "key": pa.array([b"k1", b"k2", b"k3", None]),
            "topic": pa.array(["orders"] * 4),
            "partition": pa.array([3] * 4, pa.int32()),
            "offset": pa.array([10, 11, 12, 13]),
            "timestamp": pa.array([5_000_000] * 4, pa.timestamp("us", tz="UTC")),
            "headers": pa.nulls(4, HEADERS_TYPE),
        }
    )
    (found,) = made.rows([rows], columns, RawSettings(broker.bootstrap))
    assert found.to_pydict() == {"value": [{"a": 1}, None]}
    letters = kafka.read(name)
    assert [(letter.key, letter.value, letter.timestamp_ms) for letter in letters] == [
        (b"k2", b"bad", 5000),
        (None, b'{"a":"x"}', 5000),
    ]
    assert letters[1].headers == (
        ("cordwood.origin.topic", b"orders"),
        ("cordwood.origin.partition", b"3"),
        ("cordwood.origin.offset", b"13"),
        ("cordwood.reason", b'the field a should be a whole number of 32 bits, and is "x"'),
    )


# With Spark


def test_every_type_reaches_spark(spark: SparkSession, kafka: Kafka, name: str, load: Load) -> None:
    kafka.make(name)
    kafka.produce(
        name,
        [
            b'{"i":1,"t":true,"f":1.5,"s":"x","b":"AAE=","d":"2026-01-31","at":"2026-01-31T12:00:00Z","n":"2026-01-31T12:00",'
            b'"dec":1.25,"l":[{"odd name":1}],"m":{"k":[1]}}',
            b"bad",
        ],
    )
    schema = (
        "i INT, t BOOLEAN, f FLOAT, s STRING, b BINARY, d DATE, at TIMESTAMP, n TIMESTAMP_NTZ, dec DECIMAL(10,3), "
        "l ARRAY<STRUCT<`odd name`: TINYINT>>, m MAP<STRING, ARRAY<BIGINT>>"
    )
    frame = load(subscribe=name, valueFormat="json", valueSchema=schema, columns="offset,value")
    assert frame.columns == ["offset", "value", "_error"]
    assert frame.schema["value"].dataType.simpleString().startswith("struct<i:int,t:boolean,f:float,")
    good, bad = sorted(frame.collect())
    found = good["value"].asDict(recursive=True)
    assert found.pop("at").timestamp() == datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()
    assert found == {
        "i": 1,
        "t": True,
        "f": 1.5,
        "s": "x",
        "b": b"\x00\x01",
        "d": date(2026, 1, 31),
        "n": datetime(2026, 1, 31, 12),
        "dec": Decimal("1.250"),
        "l": [{"odd name": 1}],
        "m": {"k": [1]},
    }
    assert (bad["value"], bad["_error"]) == (None, "not JSON: Expecting value, at character 0, 'bad'")
    counted = load(subscribe=name, valueFormat="json").selectExpr("value.i", "_error").collect()
    assert sorted((row["i"], row["_error"] is None) for row in counted if row["i"]) == [(1, True)]
