"""Kafka's Java admin client: topics, configs, offsets, and what it is told when it asks for nonsense."""

import pytest

from clients.java.client import JavaKafka, Sent

pytestmark = pytest.mark.java


def test_new_topic_is_described_as_asked_for(java: JavaKafka, topic: str) -> None:
    made = java.try_create_topic(topic, partitions=3, configs={"retention.ms": "3600000", "cleanup.policy": "compact"})
    assert (made["partitions"], made["replication_factor"]) == (3, 1)
    assert made["configs"]["retention.ms"]["value"] == "3600000"
    assert made["configs"]["cleanup.policy"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert made["configs"]["segment.bytes"]["source"] == "DEFAULT_CONFIG"
    described = java.admin("describe-topic", topic=topic)
    assert described["topic_id"] == made["topic_id"]
    assert described["internal"] is False
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {(partition["replicas"], partition["isr"]) for partition in described["partitions"]} == {(1, 1)}
    assert topic in java.admin("list-topics")


def test_validation_alone_makes_no_topic(java: JavaKafka, topic: str) -> None:
    made = java.try_create_topic(topic, partitions=2, validate_only=True)
    assert made["partitions"] == 2
    assert java.admin("describe-topic", topic=topic)["error"] == "UnknownTopicOrPartitionException"


def test_replicas_may_be_assigned_by_hand(java: JavaKafka, topic: str) -> None:
    [broker] = java.admin("describe-cluster")["brokers"]
    made = java.try_create_topic(topic, assignments=[[broker["id"]], [broker["id"]]])
    assert made["partitions"] == 2
    assert (
        java.try_create_topic(f"{topic}-2", assignments=[[broker["id"] + 7]])["error"]
        == "InvalidReplicaAssignmentException"
    )


def test_topic_defaults_are_the_brokers(java: JavaKafka, topic: str) -> None:
    made = java.try_create_topic(topic, partitions=-1, replication_factor=-1)
    assert (made["partitions"], made["replication_factor"]) == (1, 1)


def test_same_topic_twice_is_refused(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    assert java.try_create_topic(topic)["error"] == "TopicExistsException"


@pytest.mark.parametrize("name", ["..", "a/b", "a b", "é", "x" * 250])
def test_illegal_topic_name_is_refused(java: JavaKafka, name: str) -> None:
    assert java.try_create_topic(name)["error"] == "InvalidTopicException"


def test_name_that_collides_in_metrics_is_refused(java: JavaKafka, topic: str) -> None:
    java.create_topic(f"{topic}.a_b")
    assert java.try_create_topic(f"{topic}.a.b")["error"] == "InvalidTopicException"


def test_impossible_numbers_are_refused(java: JavaKafka, topic: str) -> None:
    assert java.try_create_topic(topic, partitions=0)["error"] == "InvalidPartitionsException"
    assert java.try_create_topic(topic, replication_factor=2)["error"] == "InvalidReplicationFactorException"
    assert java.try_create_topic(topic, configs={"retention.ms": "soon"})["error"] == "InvalidConfigurationException"
    assert java.try_create_topic(topic, configs={"retention.hours": "1"})["error"] == "InvalidConfigurationException"


def test_deleted_topic_is_gone_and_its_name_free(java: JavaKafka, topic: str) -> None:
    made = java.try_create_topic(topic)
    java.produce(topic, [Sent(b"old")])
    assert java.admin("delete-topic", topic=topic) == {}
    assert java.admin("delete-topic", topic=topic)["error"] == "UnknownTopicOrPartitionException"
    again = java.try_create_topic(topic)
    assert again["topic_id"] != made["topic_id"]
    java.produce(topic, [Sent(b"new")])
    assert [record.value for record in java.consume(topic, {0: 0}, 1)] == [b"new"]


def test_topic_is_deleted_by_its_id(java: JavaKafka, topic: str) -> None:
    topic_id = java.try_create_topic(topic)["topic_id"]
    assert java.admin("delete-topic-id", topic_id=topic_id) == {}
    assert java.admin("delete-topic-id", topic_id=topic_id)["error"] == "UnknownTopicIdException"
    assert topic not in java.admin("list-topics")


def test_partitions_are_added_never_removed(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=2)
    assert java.admin("create-partitions", topic=topic, total=5) == {}
    assert len(java.admin("describe-topic", topic=topic)["partitions"]) == 5
    assert java.admin("create-partitions", topic=topic, total=3)["error"] == "InvalidPartitionsException"
    [placed] = java.produce(topic, [Sent(b"x", partition=4)])
    assert (placed.partition, placed.offset) == (4, 0)


def test_config_changes_show_where_they_come_from(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    before = _topic_config(java, topic, "max.message.bytes")
    assert (before["value"], before["source"], before["type"]) == ("1048588", "DEFAULT_CONFIG", "INT")
    assert before["documentation"]
    changes = [["SET", "max.message.bytes", "5000"], ["APPEND", "cleanup.policy", "compact"]]
    assert java.admin("alter-configs", type="TOPIC", name=topic, changes=changes) == {}
    after = _topic_config(java, topic, "max.message.bytes")
    assert (after["value"], after["source"]) == ("5000", "DYNAMIC_TOPIC_CONFIG")
    assert after["synonyms"] == [["max.message.bytes", "DYNAMIC_TOPIC_CONFIG"], ["message.max.bytes", "DEFAULT_CONFIG"]]
    assert _topic_config(java, topic, "cleanup.policy")["value"] == "delete,compact"
    changes = [["DELETE", "max.message.bytes", ""], ["SUBTRACT", "cleanup.policy", "delete"]]
    assert java.admin("alter-configs", type="TOPIC", name=topic, changes=changes) == {}
    assert _topic_config(java, topic, "max.message.bytes")["source"] == "DEFAULT_CONFIG"
    assert _topic_config(java, topic, "cleanup.policy")["value"] == "compact"


def test_changed_limit_holds_at_once(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    java.admin("alter-configs", type="TOPIC", name=topic, changes=[["SET", "max.message.bytes", "1000"]])
    [placed] = java.try_produce(topic, [Sent(b"x" * 2_000)])
    assert placed.error == "RecordTooLargeException"


def test_config_nonsense_is_refused(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)

    def error(*change: str, name: str = topic) -> str:
        return str(java.admin("alter-configs", type="TOPIC", name=name, changes=[change])["error"])

    assert error("SET", "retention.ms", "soon") == "InvalidConfigurationException"
    assert error("SET", "no.such.setting", "1") == "InvalidConfigurationException"
    assert error("APPEND", "retention.ms", "1") == "InvalidConfigurationException"
    assert error("SET", "retention.ms", "1", name=f"{topic}-absent") == "UnknownTopicOrPartitionException"


def test_broker_describes_its_settings(java: JavaKafka) -> None:
    [broker] = java.admin("describe-cluster")["brokers"]
    configs = java.admin("describe-configs", type="BROKER", name=str(broker["id"]))
    assert configs["log.dirs"]["source"] == "STATIC_BROKER_CONFIG"
    assert configs["log.dirs"]["read_only"] is True
    assert configs["message.max.bytes"]["value"] == "1048588"
    assert configs["log.retention.ms"]["read_only"] is False


def test_broker_setting_changes_while_it_runs(java: JavaKafka) -> None:
    [broker] = java.admin("describe-cluster")["brokers"]
    name = str(broker["id"])

    def retention() -> tuple[str, str]:
        entry = java.admin("describe-configs", type="BROKER", name=name)["log.retention.ms"]
        return entry["value"], entry["source"]

    def becomes(wanted: tuple[str, str]) -> bool:
        """Kafka shows a changed setting a moment after it has answered."""
        return any(retention() == wanted for _ in range(100))

    before = retention()
    assert java.admin("alter-configs", type="BROKER", name=name, changes=[["SET", "log.retention.ms", "7200000"]]) == {}
    assert becomes(("7200000", "DYNAMIC_BROKER_CONFIG"))
    assert java.admin("alter-configs", type="BROKER", name=name, changes=[["DELETE", "log.retention.ms", ""]]) == {}
    assert becomes(before)


def test_resources_with_configs_are_listed(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    [broker] = java.admin("describe-cluster")["brokers"]
    listed = java.admin("list-config-resources")
    assert ["TOPIC", topic] in listed
    assert ["BROKER", str(broker["id"])] in listed


def test_offsets_are_listed_by_every_rule(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    times_ms = [1_700_000_000_000, 1_700_000_009_000, 1_700_000_003_000]
    for time_ms in times_ms:
        java.produce(topic, [Sent(b"x", timestamp_ms=time_ms)])

    def found(spec: str | int) -> tuple[int, int]:
        answer = java.admin("list-offsets", topic=topic, partition=0, spec=spec)
        return answer["offset"], answer["timestamp_ms"]

    assert found("earliest") == (0, -1)
    assert found("latest") == (3, -1)
    assert found("earliest-local") == (0, -1)
    assert found("max-timestamp") == (1, times_ms[1])
    assert found(times_ms[0] + 1) == (1, times_ms[1])
    assert found(times_ms[1] + 1) == (-1, -1)


def test_deleted_records_are_never_read_again(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"%d" % number) for number in range(10)])
    assert java.admin("delete-records", topic=topic, partition=0, before=4) == {"low_watermark": 4}
    assert java.admin("list-offsets", topic=topic, partition=0, spec="earliest")["offset"] == 4
    assert [record.offset for record in java.consume(topic, {0: 0}, 6, auto_offset_reset="earliest")] == [
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    assert java.admin("delete-records", topic=topic, partition=0, before=-1) == {"low_watermark": 10}
    assert java.admin("delete-records", topic=topic, partition=0, before=11)["error"] == "OffsetOutOfRangeException"


def test_cluster_is_described(java: JavaKafka) -> None:
    cluster = java.admin("describe-cluster")
    assert cluster["cluster_id"]
    [broker] = cluster["brokers"]
    assert broker["port"] == int(java.bootstrap.rpartition(":")[2])
    assert cluster["controller"] == broker["id"]


def test_log_directories_tell_each_partitions_size(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=2)
    java.produce(topic, [Sent(b"x" * 10_000, partition=1)])
    [broker] = java.admin("describe-cluster")["brokers"]
    sizes = java.admin("describe-log-dirs", broker=broker["id"])
    assert sizes[f"{topic}-0"] == 0
    assert 10_000 < sizes[f"{topic}-1"] < 11_000


def test_idempotent_producers_are_described(java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"x") for _ in range(3)], enable_idempotence="true")
    [producer] = java.admin("describe-producers", topic=topic, partition=0)
    assert producer["producer_id"] >= 0
    assert producer["last_sequence"] == 2


def _topic_config(java: JavaKafka, topic: str, name: str) -> dict[str, object]:
    entry: dict[str, object] = java.admin("describe-configs", type="TOPIC", name=topic)[name]
    return entry
