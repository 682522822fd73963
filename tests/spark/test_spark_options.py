"""The source's options: Spark's rules, and errors that say what would be right."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from cordwood.client.raw import READ_COMMITTED
from cordwood.errors import ConfigError
from cordwood.spark.offsets import EARLIEST, LATEST, AtOffsets, AtTimes, Everywhere
from cordwood.spark.option_file import hidden, resolved
from cordwood.spark.option_names import OPTIONS, Use
from cordwood.spark.option_names_kafka import check_kafka_name
from cordwood.spark.option_names_producer import check_producer_name
from cordwood.spark.options import SourceOptions
from cordwood.spark.source import CordwoodSource
from cordwood.spark.subscription import Assign, Subscribe, SubscribePattern

NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def options(use: Use = Use.BATCH, /, **given: str) -> SourceOptions:
    return SourceOptions.of({**NEEDED, **given}, use)


def refusal(use: Use = Use.BATCH, /, **given: str) -> str:
    with pytest.raises(ConfigError) as error:
        options(use, **given)
    return str(error.value)


def dotted(**given: str) -> dict[str, str]:
    """Options whose names have dots: underscores stand for them."""
    return {name.replace("_", "."): value for name, value in given.items()}


def test_a_batch_goes_from_the_earliest_to_the_latest_offset() -> None:
    made = options(Use.BATCH)
    assert (made.starting, made.ending) == (Everywhere(EARLIEST), Everywhere(LATEST))


def test_a_stream_begins_at_the_latest_offset() -> None:
    assert options(Use.STREAM).starting == Everywhere(LATEST)


def test_the_case_of_names_does_not_matter() -> None:
    assert options(FAILONDATALOSS="false").fail_on_data_loss is False


def test_options_can_be_sent_to_another_process() -> None:
    made = options(startingOffsets='{"orders":{"0":1}}', **dotted(kafka_isolation_level="read_committed"))
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.isolation == READ_COMMITTED


def test_topics_may_be_named_with_blanks_and_twice() -> None:
    assert options(subscribe=" a, b,,a ").subscription == Subscribe(("a", "b"))


def test_partitions_can_be_assigned() -> None:
    made = SourceOptions.of({"kafka.bootstrap.servers": "h:1", "assign": '{"a":[0,2]}'}, Use.BATCH)
    assert made.subscription == Assign(frozenset({("a", 0), ("a", 2)}))


def test_a_pattern_is_kept() -> None:
    made = SourceOptions.of({"kafka.bootstrap.servers": "h:1", "subscribePattern": " a.* "}, Use.BATCH)
    assert made.subscription == SubscribePattern("a.*")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"assign": "a"}, ["assign", '{"orders":[0,1]}']),
        ({"assign": "{}"}, ["assign", "no partition"]),
        ({"assign": '{"a":["x"]}'}, ["assign"]),
        ({"subscribe": " , "}, ["subscribe", "no topic"]),
        ({"subscribePattern": "("}, ["subscribePattern", "regular expression"]),
        ({"subscribePattern": " "}, ["subscribePattern", "empty"]),
        ({}, ["assign", "subscribe", "subscribePattern"]),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, ["only one", "assign and subscribe"]),
    ],
)
def test_what_to_read_must_be_said_once(given: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        SourceOptions.of({"kafka.bootstrap.servers": "h:1", **given}, Use.BATCH)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("startingOffset", "startingOffsets"),
        ("subscribes", "subscribe"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("path", "subscribe"),
        ("group.id", "group"),
        ("failOnDataLose", "failOnDataLoss"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.isolation.lvl", "kafka.isolation.level"),
        ("includeHeader", "includeHeaders"),
        ("maxoffsetpertrigger", "maxOffsetsPerTrigger"),
    ],
)
def test_a_wrong_name_gets_the_nearest_right_one(name: str, nearest: str) -> None:
    text = refusal(**{name: "x"})
    assert name in text
    assert f"did you mean {nearest}?" in text


def test_a_name_like_no_other_gets_them_all() -> None:
    text = refusal(zzzzzzz="1")
    assert "zzzzzzz" in text
    assert "startingOffsets" in text


def test_the_servers_are_needed() -> None:
    with pytest.raises(ConfigError, match=r"option kafka\.bootstrap\.servers"):
        SourceOptions.of({"subscribe": "a"}, Use.BATCH)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("auto.offset.reset", "startingOffsets"),
        ("key.deserializer", "bytes"),
        ("value.deserializer", "bytes"),
        ("enable.auto.commit", "group"),
        ("interceptor.classes", "nothing"),
    ],
)
def test_what_spark_forbids_is_refused_with_a_reason(name: str, hint: str) -> None:
    text = refusal(**{f"kafka.{name}": "x"})
    assert f"kafka.{name}" in text
    assert hint in text


@pytest.mark.parametrize("check", [check_kafka_name, check_producer_name])
def test_a_class_that_would_log_in_is_refused_with_a_reason(check: Callable[[str], None]) -> None:
    with pytest.raises(ConfigError, match=r"not supported; there is nothing that would run it.*sasl\.jaas\.config"):
        check("sasl.client.callback.handler.class")


def test_the_rack_says_where_a_query_runs() -> None:
    assert options(**dotted(kafka_client_rack="north")).settings.rack == "north"


def test_settings_without_effect_are_taken() -> None:
    given = {
        "kafka.max.poll.records": "5",
        "kafka.session.timeout.ms": "1",
        "kafka.group.id": "g",
        "groupIdPrefix": "p",
    }
    assert options(**given).group is None


def test_the_smaller_fetch_size_counts() -> None:
    given = {"kafka.fetch.max.bytes": "9000", "kafka.max.partition.fetch.bytes": "7000"}
    assert options(**given).settings.fetch_bytes == 7000


@pytest.mark.parametrize(
    "given",
    [
        {"minPartitions": "0"},
        {"minPartitions": "many"},
        {"minPartitions": "1.5"},
        {"maxRecordsPerPartition": "-1"},
        {"failOnDataLoss": "yes"},
        {"includeHeaders": "1"},
        {"maxTriggerDelay": "soon"},
        {"direct": "always"},
        {"columns": "key,values"},
        {"columns": "key,key"},
        {"columns": ","},
        {"group": " "},
        {"startingTimestamp": "yesterday"},
        {"startingOffsetsByTimestampStrategy": "earliest"},
        {"startingOffsets": "first"},
        {"startingOffsets": '{"orders":{"0":-3}}'},
        {"startingOffsets": '{"orders":{"zero":3}}'},
        {"startingOffsets": '{"orders":[3]}'},
        {"startingOffsets": "[" * 100_000},
        {"endingOffsetsByTimestamp": '{"orders":{"0":"1"}}'},
    ],
)
def test_an_ill_typed_value_is_refused_by_its_options_name(given: dict[str, str]) -> None:
    (name,) = given
    assert f"option {name}" in refusal(**given)


def test_an_ill_typed_setting_of_kafkas_is_refused_by_its_options_name() -> None:
    assert "option kafka.isolation.level" in refusal(**{"kafka.isolation.level": "committed"})
    assert "option kafka.request.timeout.ms" in refusal(**{"kafka.request.timeout.ms": "1s"})
    assert "option kafka.bootstrap.servers: h:x is not an address" in refusal(**{"kafka.bootstrap.servers": "h:x"})


@pytest.mark.parametrize("name", ["startingOffsetsByTimestamp", "endingOffsetsByTimestamp"])
@pytest.mark.parametrize("text", ["yesterday", '{"orders":{"0":"1"}}', '{"orders":{"0":-1}}', '{"orders":{"0":-3}}'])
def test_a_wrong_time_gets_an_example_of_times(name: str, text: str) -> None:
    found = refusal(**{name: text})
    assert f"option {name}" in found
    assert '{"orders":{"0":1700000000000' in found
    assert "latest" not in found


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    assert name in refusal(Use.STREAM, **{name: "latest"})


def test_a_batch_can_not_begin_at_the_latest_offset() -> None:
    assert "startingOffsets" in refusal(startingOffsets="latest")
    assert "orders-1" in refusal(startingOffsets='{"orders":{"0":-2,"1":-1}}')


def test_a_batch_can_not_end_at_the_earliest_offset() -> None:
    assert "endingOffsets" in refusal(endingOffsets="earliest")
    assert "orders-0" in refusal(endingOffsets='{"orders":{"0":-2}}')


def test_both_ends_of_a_batch_name_the_same_partitions() -> None:
    text = refusal(startingOffsets='{"orders":{"0":1}}', endingOffsets='{"orders":{"0":2,"1":2}}')
    assert "orders-1" in text
    assert "endingOffsets" in text


def test_a_batch_ends_after_it_begins() -> None:
    text = refusal(startingOffsets='{"orders":{"0":7}}', endingOffsets='{"orders":{"0":5}}')
    assert all(word in text for word in ("orders-0", "7", "5"))
    times = {"startingOffsetsByTimestamp": '{"o":{"0":7}}', "endingOffsetsByTimestamp": '{"o":{"0":5}}'}
    assert "o-0" in refusal(**times)


def test_the_latest_offset_is_after_every_other() -> None:
    made = options(startingOffsets='{"orders":{"0":7}}', endingOffsets='{"orders":{"0":-1}}')
    assert made.ending == AtOffsets("endingOffsets", {("orders", 0): -1})


def test_one_time_for_all_wins_over_times_and_these_over_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders":{"0":5}}'}
    assert options(**given).starting == AtTimes("startingOffsetsByTimestamp", {("orders", 0): 5}, latest_if_none=False)
    assert options(**given, startingTimestamp="9").starting == AtTimes("startingTimestamp", 9, latest_if_none=False)


def test_partitions_without_young_records_may_begin_at_their_end() -> None:
    made = options(startingTimestamp="9", startingOffsetsByTimestampStrategy="LATEST")
    assert made.starting == AtTimes("startingTimestamp", 9, latest_if_none=True)


def test_an_end_by_time_is_the_latest_offset_if_nothing_is_as_young() -> None:
    assert options(endingTimestamp="9").ending == AtTimes("endingTimestamp", 9, latest_if_none=True)


def test_the_least_is_not_more_than_the_most() -> None:
    text = refusal(Use.STREAM, minOffsetsPerTrigger="10", maxOffsetsPerTrigger="9")
    assert all(word in text for word in ("minOffsetsPerTrigger", "maxOffsetsPerTrigger", "10", "9"))


@pytest.mark.parametrize(("text", "wanted_ms"), [("15m", 900_000), ("90s", 90_000), ("2h", 7_200_000), ("250", 250)])
def test_times_have_units(text: str, wanted_ms: int) -> None:
    assert options(maxTriggerDelay=text).max_trigger_delay_ms == wanted_ms


def test_headers_are_a_column_if_asked_for() -> None:
    assert "headers" not in options().columns.names
    assert options(includeHeaders="true").columns.names[-1] == "headers"
    assert options(columns="value, offset").columns.names == ("value", "offset")
    assert options(columns="value", includeHeaders="true").columns.names == ("value", "headers")


def test_no_two_options_have_the_same_name() -> None:
    names = [option.name.lower() for option in OPTIONS]
    assert len(set(names)) == len(names)


# Options in a file


def test_a_file_adds_options_that_nobody_sees(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text('{"kafka.sasl.password": "hush"}')
    assert resolved({"subscribe": "t", "OPTIONSFILE": str(path)}) == {"subscribe": "t", "kafka.sasl.password": "hush"}
    assert resolved({"subscribe": "t"}) == {"subscribe": "t"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("{", "cannot be read"),
        ("[1]", "not a JSON object of texts"),
        ('{"kafka.retries": 1}', "not a JSON object of texts"),
        ('{"Subscribe": "u"}', "option subscribe is given, and is in optionsFile too"),
        ('{"optionsFile": "other"}', "names another one"),
    ],
)
def test_a_file_of_options_that_can_not_be_used_says_why(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "options.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=reason):
        resolved({"subscribe": "t", "optionsFile": str(path)})


def test_what_is_no_secret_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given = {"kafka.bootstrap.servers": "h:1", "valueFormat": "json", "schema.registry.url": "http://r"}
    assert hidden(given) == given
    assert not list(tmp_path.iterdir())
    found = hidden({**given, "kafka.ssl.key.password": "hush"})
    assert resolved(found) == {**given, "kafka.ssl.key.password": "hush"}
    assert "hush" not in str(found)


HIDES_TWICE = """
from cordwood.spark.option_file import hidden, resolved
for word in ("hush", "hush", "still"):
    found = hidden({"kafka.ssl.key.password": word})
    print(found["optionsFile"])
    assert resolved(found) == {"kafka.ssl.key.password": word}
"""


def test_files_of_secrets_do_not_outlive_the_process(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    made = subprocess.run([sys.executable, "-c", HIDES_TWICE], env=environment, check=True, capture_output=True)
    paths = made.stdout.decode().splitlines()
    assert len(set(paths)) == 3
    assert all(path.startswith(str(tmp_path)) for path in paths)
    assert not list(tmp_path.iterdir())


# Where Spark asks for a stream


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"endingOffsets": "latest"}, "option endingOffsets is for batch queries: a stream has no end"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "1"}, "option minOffsetsPerTrigger is 9"),
    ],
)
def test_a_stream_that_is_refused_says_so_whatever_it_is_asked_first(given: dict[str, str], reason: str) -> None:
    """Spark's process ends in an error of its own if there is no reader at all, and hides the reason."""
    source = CordwoodSource(CaseInsensitiveDict({**NEEDED, **given}))
    reader = source.streamReader(StructType())
    assert isinstance(reader, SupportsTriggerAvailableNow)
    for question in (
        reader.initialOffset,
        reader.getDefaultReadLimit,
        reader.prepareForTriggerAvailableNow,
        reader.reportLatestOffset,
        lambda: reader.latestOffset({}, ReadAllAvailable()),
        lambda: reader.partitions({}, {}),
        lambda: reader.read(InputPartition(None)),
    ):
        with pytest.raises(ConfigError) as error:
            question()
        assert reason in str(error.value)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None
    reader.stop()
