"""Topics and settings through each client's admin API, and what each is told when it asks for nonsense."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import OffsetSpec

from clients.admins import (
    ADMINS,
    DEFAULT_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    Admin,
    AiokafkaAdmin,
    Config,
    KafkaPythonAdmin,
    LibrdkafkaAdmin,
    only,
    refusal,
)
from clients.drivers import Librdkafka, MakeTopic, Sent
from support.waiting import eventually

INCREMENTAL = (LibrdkafkaAdmin, KafkaPythonAdmin)

# What librdkafka and the two Python clients call an error.
EXISTS = ("TOPIC_ALREADY_EXISTS", "TopicAlreadyExistsError")
UNKNOWN = ("UNKNOWN_TOPIC_OR_PART", "UnknownTopicOrPartitionError")
INVALID_TOPIC = ("TOPIC_EXCEPTION", "InvalidTopicError")
INVALID_CONFIG = ("INVALID_CONFIG", "InvalidConfigurationError")
INVALID_REPLICATION = ("INVALID_REPLICATION_FACTOR", "InvalidReplicationFactorError")
INVALID_PARTITIONS = ("INVALID_PARTITIONS", "InvalidPartitionsError")
OUT_OF_RANGE = ("OFFSET_OUT_OF_RANGE", "OffsetOutOfRangeError")


@pytest.fixture(params=ADMINS, ids=lambda admin: admin.name)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Admin:
    """Each of the clients in turn."""
    admin: Admin = request.param(bootstrap)
    return admin


@pytest.fixture(params=INCREMENTAL, ids=lambda admin: admin.name)
def incremental_admin(request: pytest.FixtureRequest, bootstrap: str) -> LibrdkafkaAdmin | KafkaPythonAdmin:
    """Each of those that change one setting and leave the others; aiokafka cannot."""
    admin: LibrdkafkaAdmin | KafkaPythonAdmin = request.param(bootstrap)
    return admin


def refused(admin: Admin | LibrdkafkaAdmin, error: tuple[str, str], call: Callable[[], object]) -> bool:
    """Did the call fail with this error, as this client calls it?"""
    expected = error[0] if isinstance(admin, LibrdkafkaAdmin) else error[1]
    assert refusal(call) == expected
    return True


def known(admin: Admin, topic: str, *, partitions: int = 1) -> bool:
    """Wait until the topic shows: Apache Kafka says that it is made a moment earlier."""
    return eventually(
        lambda: topic in admin.topics() and admin.partitions(topic) == list(range(partitions)), what=f"{topic} to show"
    )


def shown(admin: Admin | LibrdkafkaAdmin, topic: str, expected: dict[str, Config]) -> bool:
    """Wait until these settings show: so too with settings."""
    return eventually(lambda: expected.items() <= admin.configs("TOPIC", topic).items(), what=f"{expected} to show")


def test_new_topic_is_described_as_asked_for(admin: Admin, name: str) -> None:
    admin.create(name, partitions=3, configs={"retention.ms": "3600000", "cleanup.policy": "compact"})
    assert known(admin, name, partitions=3)
    configs = admin.configs("TOPIC", name)
    assert configs["retention.ms"] == Config("3600000", DYNAMIC_TOPIC_CONFIG)
    assert configs["cleanup.policy"] == Config("compact", DYNAMIC_TOPIC_CONFIG)
    assert configs["max.message.bytes"] == Config("1048588", DEFAULT_CONFIG)


def test_validation_alone_makes_no_topic(admin: Admin, name: str) -> None:
    admin.create(name, validate_only=True)
    assert name not in admin.topics()


def test_deleted_topic_is_gone_and_its_name_free(admin: Admin, bootstrap: str, name: str) -> None:
    admin.create(name)
    assert known(admin, name)
    Librdkafka(bootstrap).produce(name, [Sent(b"old")])
    admin.delete(name)
    eventually(lambda: name not in admin.topics(), what="the topic to go")
    admin.create(name)
    assert known(admin, name)
    assert Librdkafka(bootstrap).ends(name, [0]) == {0: (0, 0)}


def test_partitions_are_added_never_removed(admin: Admin, bootstrap: str, name: str) -> None:
    admin.create(name, partitions=2)
    assert known(admin, name, partitions=2)
    admin.grow(name, total=5)
    assert known(admin, name, partitions=5)
    assert refused(admin, INVALID_PARTITIONS, lambda: admin.grow(name, total=3))
    [placed] = Librdkafka(bootstrap).produce(name, [Sent(b"x", partition=4)])
    assert (placed.partition, placed.offset) == (4, 0)


def test_topic_that_exists_is_refused(admin: Admin, topic: str) -> None:
    assert refused(admin, EXISTS, lambda: admin.create(topic))


def test_topic_that_does_not_exist_is_refused(admin: Admin, name: str) -> None:
    assert refused(admin, UNKNOWN, lambda: admin.delete(name))
    assert refused(admin, UNKNOWN, lambda: admin.grow(name, total=3))
    assert name not in admin.topics()


@pytest.mark.parametrize("illegal", ["..", "a/b", "a b", "x" * 250])
def test_illegal_name_is_refused(admin: Admin, illegal: str) -> None:
    assert refused(admin, INVALID_TOPIC, lambda: admin.create(illegal))


@pytest.mark.parametrize("configs", [{"retention.ms": "soon"}, {"retention.hours": "1"}, {"cleanup.policy": "burn"}])
def test_illegal_setting_is_refused(admin: Admin, name: str, topic: str, configs: dict[str, str]) -> None:
    assert refused(admin, INVALID_CONFIG, lambda: admin.create(f"{name}-2", configs=configs))
    assert refused(admin, INVALID_CONFIG, lambda: admin.replace_configs(topic, configs))


def test_impossible_replicas_are_refused(admin: Admin, name: str) -> None:
    assert refused(admin, INVALID_REPLICATION, lambda: admin.create(name, replication_factor=3))


@pytest.mark.parametrize("driver", [AiokafkaAdmin, KafkaPythonAdmin])  # librdkafka would not ask
def test_topic_without_partitions_is_refused(driver: Callable[[str], Admin], bootstrap: str, name: str) -> None:
    admin = driver(bootstrap)
    assert refused(admin, INVALID_PARTITIONS, lambda: admin.create(name, partitions=0))


def test_settings_are_replaced_as_a_whole(admin: Admin, topic: str) -> None:
    admin.replace_configs(topic, {"retention.ms": "1000", "max.message.bytes": "5000"})
    admin.replace_configs(topic, {"max.message.bytes": "6000"})
    expected = {
        "max.message.bytes": Config("6000", DYNAMIC_TOPIC_CONFIG),
        "retention.ms": Config("604800000", DEFAULT_CONFIG),
    }
    assert shown(admin, topic, expected)


def test_settings_change_one_by_one(incremental_admin: LibrdkafkaAdmin | KafkaPythonAdmin, topic: str) -> None:
    admin = incremental_admin
    admin.change_configs(topic, [("SET", "max.message.bytes", "5000"), ("APPEND", "cleanup.policy", "compact")])
    admin.change_configs(topic, [("SET", "retention.ms", "1000")])
    expected = {
        "max.message.bytes": Config("5000", DYNAMIC_TOPIC_CONFIG),
        "cleanup.policy": Config("delete,compact", DYNAMIC_TOPIC_CONFIG),
        "retention.ms": Config("1000", DYNAMIC_TOPIC_CONFIG),
    }
    assert shown(admin, topic, expected)
    admin.change_configs(topic, [("DELETE", "max.message.bytes", ""), ("SUBTRACT", "cleanup.policy", "delete")])
    expected |= {
        "max.message.bytes": Config("1048588", DEFAULT_CONFIG),
        "cleanup.policy": Config("compact", DYNAMIC_TOPIC_CONFIG),
    }
    assert shown(admin, topic, expected)


def test_illegal_change_is_refused(incremental_admin: LibrdkafkaAdmin | KafkaPythonAdmin, topic: str) -> None:
    admin = incremental_admin
    for change in [("SET", "retention.ms", "soon"), ("SET", "no.such.thing", "1"), ("APPEND", "retention.ms", "1")]:
        assert refused(admin, INVALID_CONFIG, partial(admin.change_configs, topic, [change]))
    assert refused(admin, UNKNOWN, lambda: admin.change_configs(f"{topic}-2", [("SET", "retention.ms", "1")]))
    assert admin.configs("TOPIC", topic)["retention.ms"].source == DEFAULT_CONFIG


def test_settings_of_the_broker_are_described(admin: Admin) -> None:
    [node] = admin.cluster().brokers
    configs = admin.configs("BROKER", str(node))
    assert configs["num.partitions"].value == "4"
    assert configs["message.max.bytes"] == Config("1048588", DEFAULT_CONFIG)
    assert configs["node.id"].value == str(node)


def test_cluster_is_described(admin: Admin, bootstrap: str) -> None:
    cluster = admin.cluster()
    [(node, address)] = cluster.brokers.items()
    assert cluster.controller_id == node
    assert address == bootstrap


def test_records_are_deleted_up_to_an_offset(admin: Admin, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    client = Librdkafka(bootstrap)
    client.produce(topic, [Sent(b"x", partition=number % 2) for number in range(20)])
    assert admin.delete_records(topic, {0: 4, 1: -1}) == {0: 4, 1: 10}
    assert client.ends(topic, [0, 1]) == {0: (4, 10), 1: (10, 10)}
    assert [record.offset for record in client.consume(topic, {0: 4}, 6)] == [4, 5, 6, 7, 8, 9]
    assert refused(admin, OUT_OF_RANGE, lambda: admin.delete_records(topic, {0: 11}))


def test_offsets_are_listed_by_librdkafka(bootstrap: str, topic: str) -> None:
    times_ms = [3_000, 9_000, 5_000]
    Librdkafka(bootstrap).produce(topic, [Sent(b"x", timestamp_ms=time_ms) for time_ms in times_ms])
    client = LibrdkafkaAdmin(bootstrap).client

    def find(spec: OffsetSpec) -> tuple[int, int]:
        found = only(client.list_offsets({confluent_kafka.TopicPartition(topic, 0): spec}))
        return found.offset, found.timestamp

    assert find(OffsetSpec.earliest()) == (0, -1)
    assert find(OffsetSpec.latest()) == (3, -1)
    assert find(OffsetSpec.max_timestamp()) == (1, 9_000)
    assert find(OffsetSpec.for_timestamp(4_000)) == (1, 9_000)
    assert find(OffsetSpec.for_timestamp(9_001)) == (-1, -1)


def test_offsets_are_listed_by_kafka_python(bootstrap: str, topic: str) -> None:
    Librdkafka(bootstrap).produce(topic, [Sent(b"x", timestamp_ms=time_ms) for time_ms in [3_000, 9_000, 5_000]])
    place = kafka.TopicPartition(topic, 0)
    spec = kafka.admin.OffsetSpec
    asked = [spec.EARLIEST, spec.LATEST, spec.MAX_TIMESTAMP, spec.EARLIEST_LOCAL, 4_000, 9_001]
    with KafkaPythonAdmin(bootstrap).client() as client:
        found = [client.list_partition_offsets({place: one})[place] for one in asked]
    assert [(one.offset, one.timestamp) for one in found] == [
        (0, -1),
        (3, -1),
        (1, 9_000),
        (0, -1),
        (1, 9_000),
        (-1, -1),
    ]
    assert found[1].leader_epoch == 0


def test_topic_is_described_and_deleted_by_its_id(bootstrap: str, topic: str) -> None:
    admin = LibrdkafkaAdmin(bootstrap)
    described = only(admin.client.describe_topics(confluent_kafka.TopicCollection([topic])))
    with KafkaPythonAdmin(bootstrap).client() as client:
        [by_name] = client.describe_topics([topic])
        topic_id = UUID(by_name["topic_id"])
        assert described.topic_id.get_least_significant_bits() == _signed(topic_id.int & (1 << 64) - 1)
        [by_id] = client.describe_topics([topic_id])
        assert by_id["name"] == topic
        client.delete_topics([topic_id])
        eventually(lambda: topic not in client.list_topics(), what="the topic to go")
        assert refusal(lambda: client.delete_topics([topic_id])) == "UnknownTopicIdError"


def _signed(number: int) -> int:
    """64 bits as Java has them."""
    return number - (1 << 64) if number >> 63 else number


def test_pages_of_partitions_follow_one_another(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=5)
    seen: list[int] = []
    cursor = None
    with KafkaPythonAdmin(bootstrap).client() as client:
        while True:
            page = client.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
            seen += [partition["partition_index"] for partition in page["topics"][0]["partitions"]]
            if (cursor := page["next_cursor"]) is None:
                break
    assert seen == [0, 1, 2, 3, 4]


def test_log_directories_are_described(bootstrap: str, topic: str) -> None:
    Librdkafka(bootstrap).produce(topic, [Sent(b"x" * 1_000)])
    with KafkaPythonAdmin(bootstrap).client() as client:
        [broker] = client.describe_log_dirs({topic: [0]})
    [directory] = broker["log_dirs"]
    [found] = directory["topics"]
    assert found["name"] == topic
    assert 1_000 < found["partitions"][0]["partition_size"] < 2_000


def test_named_resources_are_listed(bootstrap: str, topic: str) -> None:
    with KafkaPythonAdmin(bootstrap).client() as client:
        found = client.list_config_resources(["TOPIC", "BROKER"])
        [node] = client.describe_cluster()["brokers"]
    assert topic in found["topic"]
    assert str(node["broker_id"]) in found["broker"]
