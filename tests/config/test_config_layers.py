"""What clients see of settings, and what their changes make of them."""

import pytest

from cordwood.config import (
    BROKER_SETTINGS,
    Change,
    Entry,
    Given,
    Kind,
    Layers,
    Operation,
    Source,
    alter_broker,
    alter_topic,
    checked_broker,
    checked_topic,
    describe_broker,
    describe_cluster,
    describe_topic,
)
from cordwood.errors import Error, Refused

NOTHING = Layers()
FILE = Layers(static={"log.roll.hours": "24", "log.dir": "/x", "process.roles": "broker"})
ALTERED = Layers(cluster={"log.retention.ms": "6"}, broker={"log.retention.ms": "5"})


def one(entries: list[Entry]) -> Entry:
    (entry,) = entries
    return entry


def topic(name: str, layers: Layers = NOTHING, **overrides: str) -> Entry:
    return one(describe_topic({k.replace("_", "."): v for k, v in overrides.items()}, layers, [name]))


def broker(name: str, layers: Layers = NOTHING) -> Entry:
    return one(describe_broker(layers, [name]))


def test_a_topics_own_setting_comes_before_the_brokers() -> None:
    entry = topic("segment.bytes", segment_bytes=" 2000000")
    assert (entry.value, entry.source, entry.kind, entry.read_only) == ("2000000", Source.TOPIC, Kind.INT, False)
    assert entry.synonyms == (
        Given("segment.bytes", "2000000", Source.TOPIC),
        Given("log.segment.bytes", "1073741824", Source.DEFAULT),
    )


def test_altered_layers_come_in_kafkas_order() -> None:
    entry = topic("retention.ms", ALTERED)
    assert (entry.value, entry.source) == ("5", Source.DYNAMIC_BROKER)
    assert [s.source for s in entry.synonyms] == [Source.DYNAMIC_BROKER, Source.DYNAMIC_CLUSTER, Source.DEFAULT]


def test_a_topics_time_from_the_brokers_hours_is_in_milliseconds_and_static() -> None:
    entry = topic("segment.ms", FILE)
    assert (entry.value, entry.source) == ("86400000", Source.STATIC)
    assert entry.synonyms[0] == Given("log.roll.hours", "24", Source.STATIC)


def test_a_topic_setting_without_a_brokers_setting_is_a_default() -> None:
    entry = topic("leader.replication.throttled.replicas")
    assert (entry.value, entry.source, entry.synonyms) == ("", Source.DEFAULT, ())


def test_internal_settings_show_only_where_set() -> None:
    assert "internal.segment.bytes" not in {e.name for e in describe_topic({}, NOTHING)}
    assert topic("internal.segment.bytes", internal_segment_bytes="100").value == "100"


def test_an_empty_list_of_names_asks_for_all() -> None:
    assert describe_topic({}, NOTHING, []) == describe_topic({}, NOTHING)
    assert len(describe_topic({}, NOTHING)) == 33  # as many as Apache Kafka 4.3 shows


def test_a_brokers_setting_shows_its_own_value_not_its_synonyms() -> None:
    hours = broker("log.retention.hours", ALTERED)
    assert (hours.value, hours.source, hours.read_only) == ("168", Source.DEFAULT, True)
    milliseconds = broker("log.retention.ms", ALTERED)
    assert (milliseconds.value, milliseconds.source, milliseconds.read_only) == ("5", Source.DYNAMIC_BROKER, False)
    assert broker("log.roll.ms", FILE).source is Source.DEFAULT


def test_an_alias_gives_its_value_to_the_name() -> None:
    assert (broker("log.dirs", FILE).value, broker("log.dirs", FILE).source) == ("/x", Source.STATIC)
    assert broker("log.dir", FILE).value == "/x"


def test_a_foreign_setting_is_listed_without_its_value() -> None:
    entry = broker("process.roles", FILE)
    assert (entry.value, entry.sensitive, entry.source) == (None, True, Source.STATIC)


def test_all_of_a_brokers_settings_are_listed() -> None:
    shown = {s.name for s in BROKER_SETTINGS.values() if not s.internal}
    assert {e.name for e in describe_broker(NOTHING)} == shown


def test_the_cluster_shows_only_what_was_altered_for_all() -> None:
    entry = one(describe_cluster(ALTERED))
    assert (entry.name, entry.value, entry.synonyms) == (
        "log.retention.ms",
        "6",
        (Given("log.retention.ms", "6", Source.DYNAMIC_CLUSTER),),
    )


def change(name: str, operation: int, value: str | None = None) -> Change:
    return Change(name, operation, value)


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        ({}, Operation.SET, "compact", {"cleanup.policy": "compact"}),
        ({}, Operation.APPEND, "compact", {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact"}, Operation.APPEND, "delete,compact", {"cleanup.policy": "compact,delete"}),
        ({"cleanup.policy": "compact,delete"}, Operation.SUBTRACT, "delete", {"cleanup.policy": "compact"}),
        ({}, Operation.SUBTRACT, "delete,compact", {"cleanup.policy": ""}),
        ({"cleanup.policy": "compact", "segment.ms": "5"}, Operation.DELETE, None, {"segment.ms": "5"}),
        ({}, Operation.DELETE, None, {}),
    ],
)
def test_incremental_changes(before: dict[str, str], operation: int, value: str | None, after: dict[str, str]) -> None:
    assert alter_topic(before, [change("cleanup.policy", operation, value)], NOTHING) == after


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([change("segment.bytes", 0, "5")], Error.INVALID_CONFIG),
        ([change("nope", 0, "5")], Error.INVALID_CONFIG),
        ([change("segment.ms", 2, "5")], Error.INVALID_CONFIG),
        ([change("nope", 3, "5")], Error.INVALID_CONFIG),
        ([change("cleanup.policy", 2, "")], Error.INVALID_CONFIG),
        ([change("cleanup.policy", 2, "bad")], Error.INVALID_CONFIG),
        ([change("segment.ms", 0, None)], Error.INVALID_REQUEST),
        ([change("segment.ms", 9, "5")], Error.INVALID_REQUEST),
        ([change("segment.ms", 0, "5"), change("segment.ms", 0, "6")], Error.INVALID_REQUEST),
    ],
)
def test_refused_changes_of_a_topic(changes: list[Change], error: Error) -> None:
    with pytest.raises(Refused) as refused:
        alter_topic({}, changes, NOTHING)
    assert refused.value.error is error


@pytest.mark.parametrize(
    ("changes", "for_all", "error"),
    [
        ([change("log.retention.hours", 0, "3")], False, Error.INVALID_REQUEST),
        ([change("node.id", 0, "3")], True, Error.INVALID_REQUEST),
        ([change("log.retention.ms", 0, "x")], False, Error.INVALID_REQUEST),
        ([change("log.retention.ms", 0, "0")], False, Error.INVALID_REQUEST),
        ([change("log.segment.bytes", 0, "10")], False, Error.INVALID_REQUEST),
        ([change("ssl.key.password", 0, "x")], False, Error.INVALID_REQUEST),
        ([change("nope", 0, "3")], False, Error.INVALID_REQUEST),
        ([change("log.cleaner.threads", 2, "3")], False, Error.INVALID_CONFIG),
    ],
)
def test_refused_changes_of_a_broker(changes: list[Change], for_all: bool, error: Error) -> None:
    with pytest.raises(Refused) as refused:
        alter_broker(changes, NOTHING, for_all=for_all)
    assert refused.value.error is error


def test_a_brokers_change_falls_into_the_layer_it_is_meant_for() -> None:
    append = [change("log.cleanup.policy", Operation.APPEND, "compact")]
    assert alter_broker(append, ALTERED, for_all=False) == {
        "log.retention.ms": "5",
        "log.cleanup.policy": "delete,compact",
    }
    assert alter_broker(append, ALTERED, for_all=True) == {
        "log.retention.ms": "6",
        "log.cleanup.policy": "delete,compact",
    }


def test_a_whole_new_set_of_settings_is_checked_too() -> None:
    assert checked_topic({"segment.ms": "5"}, NOTHING) == {"segment.ms": "5"}
    assert checked_broker({"log.retention.ms": "5"}, NOTHING, for_all=True) == {"log.retention.ms": "5"}
    with pytest.raises(Refused, match=r"segment\.ms has no value"):
        checked_topic({"segment.ms": None}, NOTHING)
