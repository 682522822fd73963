"""Our declarations against the facts of Apache Kafka 4.3.1, read from its own definitions by reflection."""

import csv
import re
from pathlib import Path

import pytest

from cordwood.config import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerConfig, Scope, Setting, TopicConfig
from cordwood.config.foreign import is_foreign
from cordwood.errors import ConfigError

_TABLE = Path(__file__).parent / "kafka_4_3_settings.tsv"
FACTS = list(csv.DictReader(_TABLE.read_text().splitlines(), delimiter="\t"))
KNOWN = {"broker": BROKER_SETTINGS, "topic": TOPIC_SETTINGS}
DECLARED = [(KNOWN[f["resource"]][f["name"]], f) for f in FACTS if f["name"] in KNOWN[f["resource"]]]

# Ours is loopback, a directory here, and a number for those who gave none; the order of the map is a hash's in Kafka.
OTHER_DEFAULTS = {
    "broker.id",
    "controller.listener.names",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
}
# Kafka can open and close listeners while it runs.
OTHER_SCOPES = {"listeners", "listener.security.protocol.map"}


def ids(setting: object) -> str | None:
    return setting.name if isinstance(setting, Setting) else ""


def test_every_setting_of_kafka_loads() -> None:
    missing = [f["name"] for f in FACTS if f["name"] not in KNOWN[f["resource"]] and not is_foreign(f["name"])]
    assert missing == []


def test_every_topic_setting_of_kafka_is_declared_and_no_other() -> None:
    assert set(TOPIC_SETTINGS) == {f["name"] for f in FACTS if f["resource"] == "topic"}


def test_every_broker_setting_is_kafkas_or_carries_our_prefix() -> None:
    removed_with_zookeeper = {name for name in BROKER_SETTINGS if name.startswith("zookeeper.")}
    dynamic_only = {"leader.replication.throttled.rate", "follower.replication.throttled.rate"}
    dynamic_only.add("replica.alter.log.dirs.io.max.bytes.per.second")
    kafkas = {f["name"] for f in FACTS if f["resource"] == "broker"} | removed_with_zookeeper | dynamic_only
    assert {n for n in BROKER_SETTINGS if not n.startswith("cordwood.")} <= kafkas


def test_no_declared_setting_is_also_called_foreign() -> None:
    assert [n for n in BROKER_SETTINGS if is_foreign(n)] == []


@pytest.mark.parametrize(("setting", "fact"), DECLARED, ids=ids)
def test_kind_and_default_are_kafkas(setting: Setting, fact: dict[str, str]) -> None:
    assert setting.kind.name == fact["kind"]
    if fact["name"] not in OTHER_DEFAULTS:
        assert (setting.text(setting.default) if setting.default is not None else "null") == fact["default"]


@pytest.mark.parametrize(("setting", "fact"), [d for d in DECLARED if d[1]["range"]], ids=ids)
def test_range_is_kafkas(setting: Setting, fact: dict[str, str]) -> None:
    low, high = re.fullmatch(r"\[(-?\d+),\.\.\.(?:,(\d+))?\]( or -1)?", fact["range"]).group(1, 2)  # type: ignore[union-attr]
    setting.parse(low)
    with pytest.raises(ConfigError, match=re.escape(setting.name)):
        setting.parse(str(int(low) - (2 if "or -1" in fact["range"] and low == "0" else 1)))
    if high:
        setting.parse(high)
        with pytest.raises(ConfigError, match=re.escape(setting.name)):
            setting.parse(str(int(high) + 1))


@pytest.mark.parametrize(("setting", "fact"), [d for d in DECLARED if d[1]["resource"] == "broker"], ids=ids)
def test_what_can_be_altered_is_kafkas_list(setting: Setting, fact: dict[str, str]) -> None:
    if fact["name"] in OTHER_SCOPES:
        assert setting.scope is Scope.READ_ONLY
    else:
        assert setting.scope.value == fact["scope"]


def test_every_declared_default_passes_its_own_check() -> None:
    for setting in [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]:
        if setting.default is not None:
            assert setting.parse(setting.text(setting.default) or "") == setting.default


def test_defaults_without_any_text_are_the_declared_ones() -> None:
    assert BrokerConfig.parse({}) == BrokerConfig()
    assert TopicConfig.parse({}) == TopicConfig()
