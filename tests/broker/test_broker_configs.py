"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

import pytest

from broker.cluster_harness import Cluster
from broker.harness import Client, Harness
from cordwood.errors import Error, StorageError
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestConfig,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseConfig,
    DescribeConfigsResponseResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
OF_TOPIC, OF_BROKER, OF_CLUSTER, STATIC, DEFAULT, OF_LOGGER = 1, 2, 3, 4, 5, 6

Answer = tuple[int, str | None]


def describe(
    client: Client,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResponseResource:
    wanted = DescribeConfigsRequestResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms, include_documentation=documentation)
    (answer,) = client.ask(request, version, DescribeConfigsResponse).results
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


def entry(client: Client, kind: int, name: str, key: str, *, synonyms: bool = False) -> DescribeConfigsResponseConfig:
    (found,) = describe(client, kind, name, [key], synonyms=synonyms).configs
    return found


def incremental(
    client: Client, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> Answer:
    resource = IncrementalAlterConfigsRequestResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = client.ask(request, 1, IncrementalAlterConfigsResponse).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer.error_code, answer.error_message


def replace(
    client: Client, kind: int, name: str, *texts: tuple[str, str | None], version: int = 2, validate_only: bool = False
) -> Answer:
    resource = AlterConfigsRequestResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterConfigsRequestConfig(name=key, value=value) for key, value in texts],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = client.ask(request, version, AlterConfigsResponse).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer.error_code, answer.error_message


# ---------------------------------------------------------------------- describing


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("keys", [None, []])
def test_all_settings_of_a_topic_are_described(version: int, keys: list[str] | None) -> None:
    harness = Harness()
    harness.topic("t", retention_ms=1234)
    answer = describe(harness.connect(), TOPIC, "t", keys, version=version)
    assert answer.error_code == Error.NONE
    by_name = {config.name: config for config in answer.configs}
    assert len(by_name) > 25
    assert (by_name["retention.ms"].value, by_name["retention.ms"].config_source) == ("1234", OF_TOPIC)
    assert (by_name["segment.bytes"].value, by_name["segment.bytes"].config_source) == ("1073741824", DEFAULT)
    assert by_name["retention.ms"].config_type == (5 if version >= 3 else 0)
    assert by_name["retention.ms"].synonyms == []
    assert by_name["retention.ms"].documentation is None
    assert not by_name["retention.ms"].read_only


def test_named_settings_are_described_and_unknown_names_left_out() -> None:
    harness = Harness()
    harness.topic("t")
    answer = describe(harness.connect(), TOPIC, "t", ["cleanup.policy", "no.such.thing"])
    assert [config.name for config in answer.configs] == ["cleanup.policy"]


def test_what_is_asked_for_twice_is_told_once() -> None:
    harness = Harness()
    harness.topic("t")

    def wanted(*keys: str) -> DescribeConfigsRequestResource:
        return DescribeConfigsRequestResource(resource_type=TOPIC, resource_name="t", configuration_keys=list(keys))

    def names(*resources: DescribeConfigsRequestResource) -> list[str]:
        request = DescribeConfigsRequest(resources=list(resources))
        (answer,) = harness.connect().ask(request, 4, DescribeConfigsResponse).results
        return [config.name for config in answer.configs]

    assert names(wanted("segment.ms"), wanted("segment.bytes")) == ["segment.bytes", "segment.ms"]
    assert len(names(wanted("segment.ms"), wanted())) > 25
    assert len(names(wanted(), wanted("segment.ms"))) > 25


def test_documentation_comes_if_asked_for() -> None:
    harness = Harness()
    harness.topic("t")
    answer = describe(harness.connect(), TOPIC, "t", ["cleanup.policy"], documentation=True)
    assert answer.configs[0].documentation


def test_synonyms_show_every_place_a_value_could_come_from() -> None:
    harness = Harness(log_retention_ms=500)
    harness.topic("t", retention_ms=1234)
    client = harness.connect()
    incremental(client, BROKER, "", ("log.retention.ms", SET, "600"))
    incremental(client, BROKER, "1", ("log.retention.ms", SET, "700"))
    found = entry(client, TOPIC, "t", "retention.ms", synonyms=True)
    assert found.value == "1234"
    assert [(s.name, s.value, s.source) for s in found.synonyms] == [
        ("retention.ms", "1234", OF_TOPIC),
        ("log.retention.ms", "700", OF_BROKER),
        ("log.retention.ms", "600", OF_CLUSTER),
        ("log.retention.ms", "500", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]


def test_a_broker_is_described_by_its_number() -> None:
    harness = Harness(node_id=7, num_partitions=3)
    found = entry(harness.connect(), BROKER, "7", "num.partitions")
    assert (found.value, found.config_source, found.read_only) == ("3", STATIC, True)


def test_no_name_describes_what_was_altered_for_all_brokers() -> None:
    harness = Harness()
    client = harness.connect()
    assert describe(client, BROKER, "").configs == []
    incremental(client, BROKER, "", ("log.retention.ms", SET, "600"))
    (found,) = describe(client, BROKER, "").configs
    assert (found.name, found.value, found.config_source) == ("log.retention.ms", "600", OF_CLUSTER)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "no", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", Error.INVALID_TOPIC),
        (BROKER, "2", Error.INVALID_REQUEST),
        (BROKER, "x", Error.INVALID_REQUEST),
        (0, "t", Error.INVALID_REQUEST),
        (GROUP, "", Error.INVALID_REQUEST),
        (99, "t", Error.INVALID_REQUEST),
    ],
)
def test_what_has_no_settings_is_refused_everywhere(kind: int, name: str, error: Error) -> None:
    harness = Harness()
    client = harness.connect()
    answer = describe(client, kind, name)
    assert answer.error_code == error
    assert answer.error_message
    assert answer.configs == []
    assert incremental(client, kind, name, ("retention.ms", SET, "1"))[0] == error
    assert replace(client, kind, name, ("retention.ms", "1"))[0] == error


def test_topics_have_no_default_that_could_be_altered() -> None:
    client = Harness().connect()
    assert describe(client, TOPIC, "").error_code == Error.INVALID_TOPIC
    assert incremental(client, TOPIC, "", ("retention.ms", SET, "1"))[0] == Error.INVALID_REQUEST
    assert replace(client, TOPIC, "", ("retention.ms", "1"))[0] == Error.INVALID_REQUEST


# ---------------------------------------------------------------------- groups

OF_GROUP = 8


def test_a_group_has_the_brokers_settings_until_it_has_its_own() -> None:
    harness = Harness(group_consumer_session_timeout_ms=50_000)
    client = harness.connect()
    found = entry(client, GROUP, "a/b ü", "consumer.session.timeout.ms")
    assert (found.value, found.config_source) == ("50000", STATIC)
    assert incremental(client, GROUP, "a/b ü", ("consumer.session.timeout.ms", SET, "60000")) == (Error.NONE, None)
    found = entry(client, GROUP, "a/b ü", "consumer.session.timeout.ms")
    assert (found.value, found.config_source) == ("60000", OF_GROUP)
    assert entry(client, GROUP, "a/b", "consumer.session.timeout.ms").value == "50000"


def test_a_groups_settings_outlive_a_restart_and_are_listed() -> None:
    harness = Harness()
    client = harness.connect()
    incremental(client, GROUP, "a/b ü", ("consumer.heartbeat.interval.ms", SET, "7000"))
    harness.stop()
    harness.start()
    client = harness.connect()
    assert entry(client, GROUP, "a/b ü", "consumer.heartbeat.interval.ms").value == "7000"
    assert listed_groups(client) == ["a/b ü"]


def test_a_group_without_settings_of_its_own_is_not_listed() -> None:
    harness = Harness()
    client = harness.connect()
    key, text = "consumer.heartbeat.interval.ms", "7000"
    for name in ("by itself", "with all"):
        assert incremental(client, GROUP, name, (key, SET, text))[0] == Error.NONE
    assert listed_groups(client) == ["by itself", "with all"]
    assert incremental(client, GROUP, "by itself", (key, DELETE, None))[0] == Error.NONE
    assert replace(client, GROUP, "with all")[0] == Error.NONE
    assert listed_groups(client) == []
    assert incremental(client, GROUP, "never had any", (key, DELETE, None))[0] == Error.NONE
    assert replace(client, GROUP, "never had any")[0] == Error.NONE
    assert "never had any" not in harness.broker.image.group_configs
    assert incremental(client, GROUP, "by itself", (key, SET, text))[0] == Error.NONE
    assert listed_groups(client) == ["by itself"]


def listed_groups(client: Client) -> list[str]:
    request = ListConfigResourcesRequest(resource_types=[GROUP])
    response = client.ask(request, 1, ListConfigResourcesResponse)
    assert {found.resource_type for found in response.config_resources} <= {GROUP}
    return [found.resource_name for found in response.config_resources]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("consumer.session.timeout.ms", "44999", "from 45000 to 60000"),
        ("consumer.session.timeout.ms", "60001", "from 45000 to 60000"),
        ("consumer.heartbeat.interval.ms", "soon", "a whole number"),
        ("consumer.sesion.timeout.ms", "45000", "consumer.session.timeout.ms"),
    ],
)
def test_a_groups_bad_setting_is_refused(name: str, text: str, words: str) -> None:
    harness = Harness()
    error, message = incremental(harness.connect(), GROUP, "g", (name, SET, text))
    assert error == Error.INVALID_CONFIG
    assert message is not None
    assert words in message


def test_a_group_is_held_to_limits_that_were_narrowed_later() -> None:
    harness = Harness()
    client = harness.connect()
    replace(client, GROUP, "g", ("consumer.session.timeout.ms", "60000"))
    harness.stop()
    harness.static["group.consumer.max.session.timeout.ms"] = "50000"
    harness.start()
    assert entry(harness.connect(), GROUP, "g", "consumer.session.timeout.ms").value == "50000"


# ---------------------------------------------------------------------- altering


def test_an_altered_setting_takes_effect_on_the_live_log_and_stays() -> None:
    harness = Harness()
    harness.topic("t", partitions=2, max_message_bytes=5000)
    client = harness.connect()
    assert incremental(client, TOPIC, "t", ("retention.ms", SET, "77")) == (Error.NONE, None)
    for partition in range(2):
        assert harness.partition("t", partition).log.config.retention_ms == 77
        assert harness.partition("t", partition).log.config.max_message_bytes == 5000
    harness.kill()
    harness.start()
    assert harness.partition("t").log.config.retention_ms == 77


def test_a_deleted_setting_falls_back_to_the_brokers() -> None:
    harness = Harness(log_retention_ms=500)
    harness.topic("t", retention_ms=77)
    client = harness.connect()
    assert incremental(client, TOPIC, "t", ("retention.ms", DELETE, None)) == (Error.NONE, None)
    assert harness.partition("t").log.config.retention_ms == 500


def test_lists_grow_and_shrink() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    incremental(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact"))
    assert harness.partition("t").log.config.cleanup_policy == ("delete", "compact")
    incremental(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert harness.partition("t").log.config.cleanup_policy == ("compact",)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("no.such.thing", SET, "1"), Error.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), Error.INVALID_CONFIG),
        (("retention.ms", SET, None), Error.INVALID_REQUEST),
        (("retention.ms", APPEND, "1"), Error.INVALID_CONFIG),
        (("retention.ms", 9, "1"), Error.INVALID_REQUEST),
    ],
)
def test_a_bad_change_changes_nothing(change: tuple[str, int, str | None], error: Error) -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    code, message = incremental(client, TOPIC, "t", ("max.message.bytes", SET, "9"), change)
    assert code == error
    assert message
    assert harness.broker.image.topics[TopicName("t")].config == {}


def test_a_setting_changed_twice_in_one_request_is_refused() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    twice = ("retention.ms", SET, "1"), ("retention.ms", SET, "2")
    assert incremental(client, TOPIC, "t", *twice)[0] == Error.INVALID_REQUEST
    assert replace(client, TOPIC, "t", ("retention.ms", "1"), ("retention.ms", "2"))[0] == Error.INVALID_REQUEST
    assert harness.broker.image.topics[TopicName("t")].config == {}


def test_validation_alters_nothing() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    assert incremental(client, TOPIC, "t", ("retention.ms", SET, "1"), validate_only=True) == (0, None)
    assert replace(client, TOPIC, "t", ("retention.ms", "1"), validate_only=True) == (0, None)
    assert incremental(client, TOPIC, "t", ("retention.ms", SET, "x"), validate_only=True)[0] == Error.INVALID_CONFIG
    assert harness.broker.image.topics[TopicName("t")].config == {}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_old_way_replaces_everything(version: int) -> None:
    harness = Harness()
    harness.topic("t", retention_ms=5, max_message_bytes=9)
    client = harness.connect()
    assert replace(client, TOPIC, "t", ("retention.bytes", "7"), version=version) == (Error.NONE, None)
    assert harness.broker.image.topics[TopicName("t")].config == {"retention.bytes": "7"}
    assert replace(client, TOPIC, "t", ("retention.bytes", None), version=version)[0] == Error.INVALID_REQUEST


def test_resources_are_altered_each_by_itself_and_none_twice() -> None:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")

    def resource(name: str, value: str) -> IncrementalAlterConfigsRequestResource:
        change = IncrementalAlterConfigsRequestConfig(name="retention.ms", config_operation=SET, value=value)
        return IncrementalAlterConfigsRequestResource(resource_type=TOPIC, resource_name=name, configs=[change])

    request = IncrementalAlterConfigsRequest(
        resources=[resource("a", "1"), resource("no", "1"), resource("b", "2"), resource("b", "3")]
    )
    response = harness.connect().ask(request, 1, IncrementalAlterConfigsResponse)
    assert {r.resource_name: r.error_code for r in response.responses} == {
        "a": Error.NONE,
        "no": Error.UNKNOWN_TOPIC_OR_PARTITION,
        "b": Error.INVALID_REQUEST,
    }
    assert harness.partition("a").log.config.retention_ms == 1


def test_two_clients_that_alter_one_topic_do_not_undo_each_other() -> None:
    harness = Harness()
    harness.topic("t")
    harness.hold_metadata = True
    clients = [harness.connect(), harness.connect()]
    for client, key in zip(clients, ("retention.ms", "retention.bytes"), strict=True):
        change = IncrementalAlterConfigsRequestConfig(name=key, config_operation=SET, value="5")
        resource = IncrementalAlterConfigsRequestResource(resource_type=TOPIC, resource_name="t", configs=[change])
        client.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    harness.release()
    assert harness.broker.image.topics[TopicName("t")].config == {"retention.bytes": "5", "retention.ms": "5"}


def test_a_store_that_fails_is_told_for_every_resource() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    harness.store_error = StorageError("full")
    assert incremental(client, TOPIC, "t", ("retention.ms", SET, "1")) == (Error.UNKNOWN_SERVER_ERROR, "full")
    assert replace(client, TOPIC, "t", ("retention.ms", "1")) == (Error.UNKNOWN_SERVER_ERROR, "full")


# ---------------------------------------------------------------------- a broker's settings


def test_a_brokers_altered_setting_takes_effect_on_all_logs_that_have_none_of_their_own() -> None:
    harness = Harness()
    harness.topic("own", retention_ms=5)
    harness.topic("default")
    client = harness.connect()
    assert incremental(client, BROKER, "", ("log.retention.ms", SET, "600")) == (Error.NONE, None)
    assert harness.partition("own").log.config.retention_ms == 5
    assert harness.partition("default").log.config.retention_ms == 600
    assert replace(client, BROKER, "1", ("log.retention.ms", "700")) == (Error.NONE, None)
    assert harness.partition("default").log.config.retention_ms == 700
    harness.kill()
    harness.start()
    assert harness.partition("default").log.config.retention_ms == 700
    assert incremental(harness.connect(), BROKER, "1", ("log.retention.ms", DELETE, None)) == (Error.NONE, None)
    assert harness.partition("default").log.config.retention_ms == 600


def test_loggers_are_described_with_their_levels() -> None:
    client = Harness().connect()
    answer = describe(client, BROKER_LOGGER, "1")
    assert {config.name: config.value for config in answer.configs} == {"cordwood": "INFO", "root": "WARN"}
    assert {(config.config_source, config.read_only) for config in answer.configs} == {(OF_LOGGER, False)}
    assert [config.name for config in describe(client, BROKER_LOGGER, "1", ["root", "none"]).configs] == ["root"]


def test_the_level_of_a_logger_changes_at_once_and_is_not_stored() -> None:
    harness = Harness()
    harness.hold_metadata = True
    client = harness.connect()
    assert incremental(client, BROKER_LOGGER, "1", ("cordwood", SET, "TRACE")) == (Error.NONE, None)
    assert entry(client, BROKER_LOGGER, "1", "cordwood").value == "TRACE"
    assert incremental(client, BROKER_LOGGER, "1", ("cordwood", DELETE, None)) == (Error.NONE, None)
    assert entry(client, BROKER_LOGGER, "1", "cordwood").value == "WARN", "the root's"
    assert not harness.held


def test_a_change_of_a_logger_is_only_checked_if_that_is_asked_for() -> None:
    client = Harness().connect()
    change = ("cordwood", SET, "ERROR")
    assert incremental(client, BROKER_LOGGER, "1", change, validate_only=True) == (Error.NONE, None)
    assert entry(client, BROKER_LOGGER, "1", "cordwood").value == "INFO"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("cordwood", SET, "LOUD"), Error.INVALID_CONFIG),
        (("cordwood", SET, "info"), Error.INVALID_CONFIG),
        (("cordwood", SET, None), Error.INVALID_REQUEST),
        (("none", SET, "INFO"), Error.INVALID_CONFIG),
        (("none", DELETE, None), Error.INVALID_CONFIG),
        (("root", DELETE, None), Error.INVALID_REQUEST),
        (("cordwood", APPEND, "INFO"), Error.INVALID_REQUEST),
        (("cordwood", SUBTRACT, "INFO"), Error.INVALID_REQUEST),
        (("cordwood", 9, "INFO"), Error.INVALID_REQUEST),
    ],
)
def test_a_change_of_a_logger_that_makes_no_sense_is_refused(change: tuple[str, int, str | None], error: Error) -> None:
    client = Harness().connect()
    good = ("root", SET, "FATAL") if change[0] != "root" else ("cordwood", SET, "FATAL")
    code, message = incremental(client, BROKER_LOGGER, "1", good, change)
    assert code == error
    assert message
    assert entry(client, BROKER_LOGGER, "1", good[0]).value != "FATAL", "all of it is refused"


@pytest.mark.parametrize("name", ["", "2", "one"])
def test_loggers_are_those_of_the_broker_that_is_asked(name: str) -> None:
    client = Harness().connect()
    assert describe(client, BROKER_LOGGER, name).error_code == Error.INVALID_REQUEST
    assert incremental(client, BROKER_LOGGER, name, ("root", SET, "INFO"))[0] == Error.INVALID_REQUEST


def test_loggers_and_settings_may_change_in_one_request() -> None:
    harness = Harness()
    harness.topic("t")
    wanted = [
        (BROKER_LOGGER, "1", "cordwood", "DEBUG"),
        (TOPIC, "t", "retention.ms", "5"),
        (BROKER_LOGGER, "", "root", "INFO"),
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequestResource(
                resource_type=kind,
                resource_name=name,
                configs=[IncrementalAlterConfigsRequestConfig(name=key, config_operation=SET, value=value)],
            )
            for kind, name, key, value in wanted
        ]
    )
    client = harness.connect()
    response = client.ask(request, 1, IncrementalAlterConfigsResponse)
    assert {(r.resource_type, r.resource_name): r.error_code for r in response.responses} == {
        (BROKER_LOGGER, "1"): Error.NONE,
        (TOPIC, "t"): Error.NONE,
        (BROKER_LOGGER, ""): Error.INVALID_REQUEST,
    }
    assert entry(client, BROKER_LOGGER, "1", "cordwood").value == "DEBUG"
    assert entry(client, TOPIC, "t", "retention.ms").value == "5"


def test_a_limit_on_connections_can_be_altered_while_running() -> None:
    harness = Harness()
    client = harness.connect()
    incremental(client, BROKER, "", ("max.connections", SET, "1"))
    assert harness.broker.wait_to_accept_ms("PLAINTEXT", harness.now) > 0


@pytest.mark.parametrize(
    "change",
    [
        ("node.id", SET, "9"),
        ("no.such.thing", SET, "9"),
        ("log.retention.ms", SET, "soon"),
        # Nobody could come and alter these back, not even after a restart.
        ("max.connections", SET, "0"),
        ("max.connections.per.ip", SET, "0"),
        ("max.connection.creation.rate", SET, "0"),
        ("log.cleaner.threads", SET, "0"),
    ],
)
def test_what_can_not_be_altered_while_running_is_refused(change: tuple[str, int, str]) -> None:
    harness = Harness()
    code, message = incremental(harness.connect(), BROKER, "" if "max" in change[0] else "1", change)
    assert code == Error.INVALID_REQUEST
    assert message
    assert harness.broker.image.broker_configs == {}


# ---------------------------------------------------------------------- listing


def test_version_0_asks_for_client_metrics_of_which_there_are_none() -> None:
    harness = Harness()
    harness.topic("t")
    response = harness.connect().ask(ListConfigResourcesRequest(), 0, ListConfigResourcesResponse)
    assert (response.error_code, response.config_resources) == (Error.NONE, [])


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ([TOPIC], [(TOPIC, "a"), (TOPIC, "b")]),
        ([BROKER], [(BROKER, "1")]),
        ([GROUP, BROKER_LOGGER], [(BROKER_LOGGER, "1")]),
        ([], [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1"), (BROKER_LOGGER, "1")]),
    ],
)
def test_what_has_settings_is_listed(kinds: list[int], found: list[tuple[int, str]]) -> None:
    harness = Harness()
    harness.topic("b")
    harness.topic("a")
    request = ListConfigResourcesRequest(resource_types=kinds)
    response = harness.connect().ask(request, 1, ListConfigResourcesResponse)
    assert [(r.resource_type, r.resource_name) for r in response.config_resources] == found


def test_kinds_that_nobody_knows_are_refused() -> None:
    response = Harness().connect().ask(ListConfigResourcesRequest(resource_types=[3]), 1, ListConfigResourcesResponse)
    assert response.error_code == Error.UNSUPPORTED_VERSION


# ---------------------------------------------------------------------- settings that contradict each other


def test_a_brokers_default_that_contradicts_a_topic_stops_nobody() -> None:
    harness = Harness()
    harness.topic("t", min_compaction_lag_ms=100)
    client = harness.connect()
    assert incremental(client, BROKER, "", ("log.cleaner.max.compaction.lag.ms", SET, "50")) == (Error.NONE, None)
    assert harness.partition("t").log.config.min_compaction_lag_ms == 100
    assert entry(client, TOPIC, "t", "min.compaction.lag.ms").value == "100"
    assert entry(client, TOPIC, "t", "max.compaction.lag.ms").value == "50"
    assert incremental(client, TOPIC, "t", ("retention.ms", SET, "5"))[0] == Error.INVALID_CONFIG
    harness.kill()
    harness.start()
    assert harness.partition("t").log.config.min_compaction_lag_ms == 100


def altering_broker(name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    change = IncrementalAlterConfigsRequestConfig(name=key, config_operation=SET, value=value)
    resource = IncrementalAlterConfigsRequestResource(resource_type=BROKER, resource_name=name, configs=[change])
    return IncrementalAlterConfigsRequest(resources=[resource])


def test_of_two_alterations_that_contradict_each_other_the_weaker_layer_is_kept() -> None:
    """Each was made through another broker, which did not know of the other."""
    cluster = Cluster(2)
    cluster.topic("t")
    member = cluster[1]
    member.hold_metadata = True
    member.connect().send(altering_broker("1", "log.cleaner.max.compaction.lag.ms", "50"), 1)
    cluster[2].connect().send(altering_broker("", "log.cleaner.min.compaction.lag.ms", "100"), 1)
    member.hold_metadata = False
    member.release()
    cluster.run()
    assert "they contradict others" in member.logger
    assert member.partition("t").log.config.min_compaction_lag_ms == 100
    assert member.partition("t").log.config.max_compaction_lag_ms > 100
    member.kill()
    member.start()
    assert member.partition("t").log.config.min_compaction_lag_ms == 100


def test_a_file_that_contradicts_what_was_altered_wins() -> None:
    harness = Harness()
    harness.topic("t")
    incremental(harness.connect(), BROKER, "", ("log.cleaner.min.compaction.lag.ms", SET, "100"))
    harness.kill()
    harness.static["log.cleaner.max.compaction.lag.ms"] = "50"
    harness.start()
    assert "they contradict others" in harness.logger
    assert harness.partition("t").log.config.min_compaction_lag_ms == 0


def test_a_list_never_grows_beyond_what_an_answer_can_carry() -> None:
    harness = Harness()
    topic = harness.topic("t")
    client = harness.connect()
    name = "leader.replication.throttled.replicas"
    first = ",".join(f"{number}:1" for number in range(4000))
    more = ",".join(f"{number}:2" for number in range(4000))
    assert incremental(client, TOPIC, topic, (name, SET, first)) == (Error.NONE, None)
    error, message = incremental(client, TOPIC, topic, (name, APPEND, more))
    assert error == Error.INVALID_CONFIG
    assert message is not None
    assert "32767" in message
    assert entry(client, TOPIC, topic, name).value == first
