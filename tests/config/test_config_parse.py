"""Texts that people write, and what becomes of them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.config import TOPIC_SETTINGS, BrokerConfig, Layers, TopicConfig, without_effect
from cordwood.config.broker import BROKER_SETTINGS
from cordwood.errors import ConfigError

HOUR_MS = 3_600_000


def test_topic_overrides_stand_over_the_brokers_defaults() -> None:
    defaults = TopicConfig(retention_ms=5, segment_bytes=100)
    config = TopicConfig.parse({"retention.ms": "7"}, defaults)
    assert (config.retention_ms, config.segment_bytes) == (7, 100)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("segment.bytes", "100", "segment.bytes is 100; it must be at least 1048576"),
        ("segment.bytes", "3000000000", "segment.bytes is 3000000000; it must be from -2147483648 to 2147483647"),
        ("segment.bytes", "1e7", "segment.bytes is 1e7; it must be a whole number"),
        ("segment.bytes", "1_000_000", "segment.bytes is 1_000_000; it must be a whole number"),
        ("segment.bytes", "٣", "segment.bytes is ٣; it must be a whole number"),
        ("segment.bytes", "", "segment.bytes is empty; it must be a whole number"),
        ("preallocate", "yes", "preallocate is yes; it must be true or false"),
        ("min.cleanable.dirty.ratio", "half", "min.cleanable.dirty.ratio is half; it must be a number"),
        ("min.cleanable.dirty.ratio", "nan", "min.cleanable.dirty.ratio is nan; it must be a number"),
        ("min.cleanable.dirty.ratio", "1.1", "min.cleanable.dirty.ratio is 1.1; it must be from 0 to 1"),
        ("cleanup.policy", "delete,", "cleanup.policy is delete,; it must be a list without empty parts"),
        ("cleanup.policy", "DELETE", "cleanup.policy is DELETE; it must be a list of compact, delete"),
        (
            "compression.type",
            "none",
            "compression.type is none; it must be one of uncompressed, zstd, lz4, snappy, gzip",
        ),
        ("compression.gzip.level", "0", "compression.gzip.level is 0; it must be from 1 to 9, or -1"),
        ("leader.replication.throttled.replicas", "*,0:1", "it must be \\* or a list of partition:broker"),
        ("remote.storage.enable", "true", "there is no tiered storage here yet"),
        ("retention.msec", "1", "unknown topic setting retention.msec; did you mean retention.ms\\?"),
        ("nothing.like.it", "1", "^unknown topic setting nothing.like.it$"),
        ("retention.ms", None, "retention.ms has no value"),
    ],
)
def test_bad_topic_setting_is_refused_by_name(name: str, text: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TopicConfig.parse({name: text})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("segment.bytes", " +2000000 ", 2_000_000),
        ("preallocate", "TRUE", True),
        ("cleanup.policy", "delete , compact", ("delete", "compact")),
        ("cleanup.policy", "delete,delete", ("delete",)),
        ("cleanup.policy", "", ()),
        ("retention.bytes", "-5", -5),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
        ("compression.gzip.level", "-1", -1),
    ],
)
def test_texts_that_kafka_takes_are_taken(name: str, text: str, value: object) -> None:
    assert getattr(TopicConfig.parse({name: text}), name.replace(".", "_")) == value


def test_contradicting_compaction_lags_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"min\.compaction\.lag\.ms is 10; it must be at most max\.compaction\.lag\.ms, 5"
    ):
        TopicConfig.parse({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_internal_segment_bytes_goes_below_the_minimum() -> None:
    assert TopicConfig.parse({"internal.segment.bytes": "100", "segment.bytes": "2000000"}).segment_bytes == 100


@pytest.mark.parametrize(
    ("texts", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_milliseconds_beat_minutes_beat_hours(texts: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig.parse(texts).topic_defaults.retention_ms == retention_ms


def test_hours_altered_later_beat_milliseconds_in_the_file() -> None:
    layers = Layers(static={"log.roll.ms": "5"}, cluster={"log.roll.ms": "6"}, broker={"log.roll.ms": "7"})
    assert BrokerConfig.parse(layers).topic_defaults.segment_ms == 7
    assert BrokerConfig.parse(Layers(static=layers.static, cluster=layers.cluster)).topic_defaults.segment_ms == 6


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"log.retention.hour": "1"}, "unknown setting log.retention.hour; did you mean log.retention.hours\\?"),
        ({"log.retention.ms": "0"}, "log.retention.ms is 0; it must be at least 1, or -1 for no limit"),
        ({"num.partitions": "0"}, "num.partitions is 0; it must be at least 1"),
        ({"node.id": "1", "broker.id": "2"}, "node.id and broker.id differ"),
        (
            {"queued.max.request.bytes": "5"},
            "queued.max.request.bytes is 5; it must be at least socket.request.max.bytes",
        ),
        ({"listeners": "localhost:9092"}, "listeners has localhost:9092; write it as PLAINTEXT://host:9092"),
        ({"listeners": ""}, "listeners is empty; name one for clients, such as PLAINTEXT://127.0.0.1:9092"),
        (
            {"listeners": "PLAINTEXT://:1", "controller.listener.names": "plaintext"},
            "listeners has only PLAINTEXT://:1, and controller.listener.names keeps that from clients; add one",
        ),
        ({"listeners": "PLAINTEXT://:99999"}, "write it as PLAINTEXT://host:9092"),
        ({"listeners": "SASL_SSL://:9092"}, "SASL_SSL is not served yet"),
        ({"listeners": "HOME://:9092"}, "listener.security.protocol.map must say which protocol HOME is"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "only once"),
        ({"listener.security.protocol.map": "A:TLS"}, "known protocols are PLAINTEXT"),
        ({"authorizer.class.name": "kafka.Authorizer"}, "there is no access control here yet"),
        ({"max.connections.per.ip.overrides": "127.0.0.1:x"}, "it must be a list of address:number"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "name a host that clients can reach"),
        ({"advertised.listeners": "SSL://db.example:9093"}, "SSL://db.example:9093; listeners has only PLAINTEXT"),
        ({"inter.broker.listener.name": "nope"}, "listener.name is NOPE; brokers are told only of PLAINTEXT"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip is 0, and max.connections.per.ip.overrides lets"),
        ({"log.segment.bytes": "10"}, "log.segment.bytes is 10; it must be at least 1048576"),
    ],
)
def test_bad_broker_setting_is_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.parse(texts)


def test_broker_id_is_another_name_of_node_id() -> None:
    assert BrokerConfig.parse({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.parse({"broker.id": "7", "node.id": "7"}).node_id == 7


def test_listeners_of_kafkas_controllers_are_not_opened() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "INSIDE://[::1]:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT, CONTROLLER:PLAINTEXT",
            "advertised.listeners": "inside://db.example:19092",
        }
    )
    assert [str(e) for e in config.endpoints()] == ["INSIDE://[::1]:9092"]
    assert [str(e) for e in config.advertised_endpoints()] == ["INSIDE://db.example:19092"]
    assert config.endpoints()[0].protocol == "PLAINTEXT"


def test_names_of_listeners_are_in_capitals_however_they_are_written() -> None:
    texts = {
        "listeners": "PLAINTEXT://:1,home://:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HOME:PLAINTEXT",
        "inter.broker.listener.name": "Home",
        "max.connections.per.ip": "0",
        "max.connections.per.ip.overrides": "127.0.0.1:5",
    }
    assert BrokerConfig.parse(texts).listener_named_for_brokers() == "HOME"
    assert BrokerConfig().listener_named_for_brokers() == ""


def test_two_data_directories_are_refused_where_one_is_needed() -> None:
    config = BrokerConfig.parse({"log.dirs": "/a,/b"})
    with pytest.raises(ConfigError, match=r"log\.dirs names 2 directories"):
        config.data_directory()


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("ssl.keystore.locatoin", "ssl.keystore.location"),
        ("sasl.enabled.mechanism", "sasl.enabled.mechanisms"),
        ("controller.quorum.voter", "controller.quorum.voters"),
        ("group.share.session.timeout", "group.share.session.timeout.ms"),
        ("zookeeper.ssl.client.enabled", "zookeeper.ssl.client.enable"),
        ("num.partition", "num.partitions"),
        ("LOG.RETENTION.HOURS", "log.retention.hours"),
        # What topics have is called something else here, and not what looks alike.
        ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
        ("segment.ms", "log.roll.ms"),
        ("flush.ms", "log.flush.interval.ms"),
    ],
)
def test_a_slip_is_told_from_what_has_no_effect(slip: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"^unknown setting {slip}; did you mean {meant}[?]$"):
        BrokerConfig.parse({slip: "x"})


@pytest.mark.parametrize("name", ["", "inside", "inside.ssl", "inside.ssl.keystore.locatoin", "a.b.c.ssl.protocol"])
def test_a_slip_in_a_listeners_setting_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown setting"):
        BrokerConfig.parse({f"listener.name.{name}": "x"})


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.inside.ssl.keystore.location",
        "listener.name.inside.plain.sasl.jaas.config",
        "listener.name.inside.scram-sha-512.sasl.jaas.config",
        "listener.name.inside.max.connections",
        "config.providers.vault.class",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        "confluent.license",
    ],
)
def test_names_that_others_make_up_load_without_effect(name: str) -> None:
    assert BrokerConfig.parse({name: "x"}) == BrokerConfig()
    assert len(without_effect([name], BROKER_SETTINGS)) == 1


def test_what_has_no_effect_is_reported_with_the_reason() -> None:
    lines = without_effect(
        ["node.id", "process.roles", "transaction.max.timeout.ms", "ssl.keystore.password"], BROKER_SETTINGS
    )
    assert [line.split(":")[0] for line in lines] == [
        "process.roles",
        "transaction.max.timeout.ms, ssl.keystore.password",
    ]


@given(st.sampled_from(sorted(TOPIC_SETTINGS)), st.text(max_size=20))
def test_any_text_parses_or_is_refused(name: str, text: str) -> None:
    with suppress(ConfigError):
        value = TOPIC_SETTINGS[name].parse(text)
        assert TOPIC_SETTINGS[name].parse(TOPIC_SETTINGS[name].text(value) or "") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_survives_javas_way_of_writing_it(value: float) -> None:
    ratio = TOPIC_SETTINGS["min.cleanable.dirty.ratio"]
    assert float((ratio.text(value) or "").replace("E", "e")) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (1e7, "1.0E7"), (1e-4, "1.0E-4"), (1.7976931348623157e308, "1.7976931348623157E308")],
)
def test_numbers_look_as_in_java(value: float, text: str) -> None:
    assert TOPIC_SETTINGS["min.cleanable.dirty.ratio"].text(value) == text
