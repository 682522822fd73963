"""Settings that contradict each other, cost too much to read, or cannot be written."""

from collections.abc import Mapping

import pytest

from attacks.arena import create_topic, produced, read_all
from cordwood.errors import Error
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
)
from support.batches import values_batch
from support.process import BrokerProcess
from support.raw import RawClient, encoded

TOPIC, BROKER = 2, 4
ALL_BROKERS = ""


def change(kind: int, name: str, values: Mapping[str, str | None]) -> IncrementalAlterConfigsRequest:
    configs = [IncrementalAlterConfigsRequestConfig(name=key, config_operation=0, value=v) for key, v in values.items()]
    resource = IncrementalAlterConfigsRequestResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource])


def changed(client: RawClient, kind: int, name: str, values: Mapping[str, str | None]) -> int:
    return client.ask(change(kind, name, values), IncrementalAlterConfigsResponse).responses[0].error_code


def reset_brokers(client: RawClient) -> None:
    for name in (ALL_BROKERS, "1"):
        resource = AlterConfigsRequestResource(resource_type=BROKER, resource_name=name, configs=[])
        answer = client.ask(AlterConfigsRequest(resources=[resource]), AlterConfigsResponse)
        assert answer.responses[0].error_code == Error.NONE


def describe(client: RawClient, kind: int, name: str) -> dict[str, str | None]:
    resource = DescribeConfigsRequestResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    result = client.ask(request, DescribeConfigsResponse).results[0]
    assert result.error_code == Error.NONE
    return {config.name: config.value for config in result.configs}


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1e-999", "0.00000000001", "123456789.123"])
def test_any_number_that_is_taken_can_be_described(client: RawClient, text: str) -> None:
    changed(client, BROKER, ALL_BROKERS, {"log.cleaner.io.max.bytes.per.second": text})
    assert describe(client, BROKER, "1")["log.cleaner.io.max.bytes.per.second"]
    reset_brokers(client)


@pytest.mark.parametrize("text", ["nan", "inf", "Infinity", "0x10", "1_000", "١٢", "9" * 5000, "1" + "0" * 400])
def test_no_text_that_is_no_number_is_taken_for_one(client: RawClient, topic: str, text: str) -> None:
    for setting in ("retention.ms", "min.cleanable.dirty.ratio", "segment.bytes"):
        assert create_topic(client, topic, {setting: text}).error_code == Error.INVALID_CONFIG


def test_a_broker_wide_default_that_contradicts_a_topics_own_setting_does_no_harm(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    assert create_topic(client, topic, {"max.compaction.lag.ms": 50}).error_code == Error.NONE
    changed(client, BROKER, ALL_BROKERS, {"log.cleaner.min.compaction.lag.ms": "100"})
    assert describe(client, TOPIC, topic)["max.compaction.lag.ms"] == "50"
    reset_brokers(client)


def test_settings_for_all_brokers_and_for_one_that_contradict_each_other_do_no_harm(client: RawClient) -> None:
    """Each is good by itself, and both are under way at the same time."""
    for_all = change(BROKER, ALL_BROKERS, {"log.cleaner.min.compaction.lag.ms": "100"})
    for_one = change(BROKER, "1", {"log.cleaner.max.compaction.lag.ms": "50"})
    client.send_bytes(encoded(for_all, version=1) + encoded(for_one, version=1))
    client.receive_frame()
    client.receive_frame()
    describe(client, BROKER, "1")
    reset_brokers(client)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("cleanup.policy", "delete" + " " * 32_000 + "x"),
        ("cleanup.policy", ",".join(" " * 9 for _ in range(3_000))),
        ("min.cleanable.dirty.ratio", "1" * 32_000 + "x"),
        ("min.cleanable.dirty.ratio", "1" * 16_000 + "." + "1" * 16_000 + "e"),
        ("leader.replication.throttled.replicas", "1:1," * 8_000 + "x"),
        ("retention.ms", "1" * 32_000),
        ("message.timestamp.type", " " * 32_000 + "x"),
    ],
)
def test_no_text_takes_long_to_be_refused(client: RawClient, topic: str, setting: str, text: str) -> None:
    """Many at once: the bystander tells whether it had to wait."""
    topics = [
        CreateTopicsRequestTopic(
            name=f"{topic}-{number}",
            num_partitions=1,
            replication_factor=1,
            configs=[CreateTopicsRequestConfig(name=setting, value=text)],
        )
        for number in range(20)
    ]
    answer = client.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    assert {topic.error_code for topic in answer.topics} == {Error.INVALID_CONFIG}


@pytest.mark.parametrize("text", [":1" * 16_000 + "x", " " * 32_000 + "x", "a" * 32_000, "1.1.1.1:1," * 3_000 + "x"])
def test_no_text_for_a_broker_takes_long_to_be_refused(client: RawClient, text: str) -> None:
    assert changed(client, BROKER, ALL_BROKERS, {"max.connections.per.ip.overrides": text}) == Error.INVALID_REQUEST


def test_thousands_of_unknown_settings_are_refused_soon(client: RawClient, topic: str) -> None:
    """Each refusal looks for the nearest name."""
    configs = [CreateTopicsRequestConfig(name="message.timestamp.differences.maximum.milliseconds", value="1")]
    topics = [
        CreateTopicsRequestTopic(name=f"{topic}-{number}", num_partitions=1, replication_factor=1, configs=configs)
        for number in range(1500)
    ]
    answer = client.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    assert {topic.error_code for topic in answer.topics} == {Error.INVALID_CONFIG}


@pytest.mark.parametrize("deleted_first", [True, False])
def test_settings_changed_while_their_topic_is_deleted_leave_nothing_behind(
    client: RawClient, topic: str, deleted_first: bool
) -> None:
    create_topic(client, topic)
    alter = encoded(change(TOPIC, topic, {"retention.ms": "100"}), version=1)
    delete = encoded(DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=topic)]), version=6)
    client.send_bytes(delete + alter if deleted_first else alter + delete)
    client.receive_frame()
    client.receive_frame()
    assert create_topic(client, topic, {"segment.ms": 1000}).error_code == Error.NONE
    assert describe(client, TOPIC, topic)["retention.ms"] == "604800000", "the old topic's setting came back"


def test_a_topic_with_extreme_settings_takes_records(client: RawClient, topic: str) -> None:
    extremes: list[dict[str, object]] = [
        {"segment.index.bytes": 4},
        {"index.interval.bytes": 0},
        {"segment.ms": 1, "segment.jitter.ms": 2**63 - 1},
        {"flush.messages": 1, "flush.ms": 0},
        {"retention.ms": 0, "retention.bytes": 0, "file.delete.delay.ms": 0},
        {"segment.bytes": 2**31 - 1, "segment.ms": 2**63 - 1, "retention.ms": 2**63 - 1, "retention.bytes": 2**63 - 1},
        {"message.timestamp.before.max.ms": 2**63 - 1, "message.timestamp.after.max.ms": 2**63 - 1},
        {"max.message.bytes": 2**31 - 1, "min.insync.replicas": 1},
        {"compression.type": "zstd", "compression.zstd.level": -131072},
        {"compression.type": "zstd", "compression.zstd.level": 22},
        {"compression.type": "gzip", "compression.gzip.level": -1},
        {"compression.type": "gzip", "compression.gzip.level": 9},
        {"compression.type": "lz4", "compression.lz4.level": 1},
        {"compression.type": "lz4", "compression.lz4.level": 17},
        {"compression.type": "snappy"},
        {"compression.type": "uncompressed", "cleanup.policy": "compact,delete"},
        {"cleanup.policy": ""},
    ]
    for number, config in enumerate(extremes):
        name = f"{topic}-{number}"
        assert create_topic(client, name, config).error_code == Error.NONE, config
        for value in (b"one", b"two" * 50_000, b"three"):
            assert produced(client, name, values_batch(value)).error_code == Error.NONE, config
        assert read_all(client, name) == [b"one", b"two" * 50_000, b"three"], config
