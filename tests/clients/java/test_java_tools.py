"""Kafka's own command-line tools do their work on our broker and on its files."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.java.bridge import Jvm, Ran
from clients.java.client import JavaKafka, Sent
from clients.java.conftest import Target

pytestmark = pytest.mark.java

TOOLS = "org.apache.kafka.tools."
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Tool = Callable[..., str]


@pytest.fixture
def tool(jvm: Jvm, target: Target) -> Tool:
    """Run a tool against the broker; it must end well. Returns what it printed."""

    def run(main: str, *arguments: str, text: str = "", connects: bool = True) -> str:
        address = ("--bootstrap-server", target.bootstrap) if connects else ()
        ran = jvm.run(main, *address, *arguments, text=text)
        assert ran.code == 0, ran
        return ran.out

    return run


def test_topic_command_creates_lists_describes_alters_deletes(tool: Tool, topic: str) -> None:
    main = f"{TOOLS}TopicCommand"
    created = tool(main, "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=1000")
    assert created.strip().endswith(f"Created topic {topic}.")
    assert topic in tool(main, "--list").splitlines()
    tool(main, "--alter", "--topic", topic, "--partitions", "4")
    described = tool(main, "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 4\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=1000", described)
    assert len(re.findall(r"Partition: \d\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 4
    tool(main, "--delete", "--topic", topic)
    assert any(topic not in tool(main, "--list").splitlines() for _ in range(20)), (
        "Kafka itself lists it a moment longer"
    )


def test_topic_command_is_told_why_not(jvm: Jvm, target: Target, topic: str) -> None:
    def create(*arguments: str) -> Ran:
        address = ("--bootstrap-server", target.bootstrap)
        return jvm.run(f"{TOOLS}TopicCommand", *address, "--create", "--topic", topic, *arguments)

    assert create("--replication-factor", "3").code == 1
    assert create().code == 0
    twice = create()
    assert twice.code == 1
    assert f"Topic '{topic}' already exists" in twice.out + twice.err


def test_config_command_alters_a_topic(tool: Tool, topic: str) -> None:
    tool(f"{TOOLS}TopicCommand", "--create", "--topic", topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    main = "kafka.admin.ConfigCommand"
    tool(main, *entity, "--alter", "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    described = tool(main, *entity, "--describe")
    assert "retention.ms=5000 sensitive=false" in described
    assert "cleanup.policy=compact,delete sensitive=false" in described
    tool(main, *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(main, *entity, "--describe")
    assert "max.message.bytes=1048588" in tool(main, *entity, "--describe", "--all")


def test_config_command_alters_a_logger(tool: Tool, java: JavaKafka) -> None:
    [broker] = java.admin("describe-cluster")["brokers"]
    entity = ("--entity-type", "broker-loggers", "--entity-name", str(broker["id"]))
    main = "kafka.admin.ConfigCommand"
    described = re.search(r"\broot=(\w+) sensitive=false", tool(main, *entity, "--describe"))
    assert described is not None
    tool(main, *entity, "--alter", "--add-config", "root=FATAL")
    assert "root=FATAL" in tool(main, *entity, "--describe")
    tool(main, *entity, "--alter", "--add-config", f"root={described[1]}")
    assert f"root={described[1]}" in tool(main, *entity, "--describe")


def test_config_command_alters_a_broker(tool: Tool, java: JavaKafka) -> None:
    [broker] = java.admin("describe-cluster")["brokers"]
    entity = ("--entity-type", "brokers", "--entity-name", str(broker["id"]))
    main = "kafka.admin.ConfigCommand"
    tool(main, *entity, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in tool(main, *entity, "--describe")
    tool(main, *entity, "--alter", "--delete-config", "log.cleaner.threads")
    assert "log.cleaner.threads=2" not in tool(main, *entity, "--describe")


def test_offsets_of_every_partition_are_shown(tool: Tool, java: JavaKafka, topic: str) -> None:
    java.create_topic(topic, partitions=3)
    java.produce(topic, [Sent(b"x", partition=0)] * 5 + [Sent(b"x", partition=2)] * 2)
    main = f"{TOOLS}GetOffsetShell"
    assert tool(main, "--topic", topic).split() == [f"{topic}:0:5", f"{topic}:1:0", f"{topic}:2:2"]
    earliest = tool(main, "--topic-partitions", f"{topic}:0", "--time", "earliest")
    assert earliest.split() == [f"{topic}:0:0"]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_producer_performance_sends_all(tool: Tool, topic: str, acks: str) -> None:
    tool(f"{TOOLS}TopicCommand", "--create", "--topic", topic, "--partitions", "2")
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    out = tool(f"{TOOLS}ProducerPerformance", "--topic", topic, *load, "--command-property", f"acks={acks}")
    assert re.search(r"^20000 records sent, ", out, re.MULTILINE)
    counts = [int(line.rpartition(":")[2]) for line in tool(f"{TOOLS}GetOffsetShell", "--topic", topic).split()]
    assert sum(counts) == 20_000


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer_agree(tool: Tool, topic: str, codec: str) -> None:
    lines = "k1:h1,first\nk2:,second\nk3:,ünïcödé\n"
    tool(f"{TOOLS}TopicCommand", "--create", "--topic", topic)
    produce = (
        "--compression-codec",
        codec,
        "--reader-property",
        "parse.key=true",
        "--reader-property",
        "key.separator=:",
    )
    tool(f"{TOOLS}ConsoleProducer", "--topic", topic, *produce, text=lines)
    consume = ("--partition", "0", "--offset", "earliest", "--max-messages", "3", "--timeout-ms", "15000")
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
    out = tool(f"{TOOLS}consumer.ConsoleConsumer", "--topic", topic, *consume, *shown)
    assert out == lines


def test_records_are_deleted_by_tool(tool: Tool, java: JavaKafka, topic: str, tmp_path: Path) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"x")] * 5)
    wish = tmp_path / "offsets.json"
    wish.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 3}}], "version": 1}}')
    out = tool(f"{TOOLS}DeleteRecordsCommand", "--offset-json-file", str(wish))
    assert "low_watermark: 3" in out


def test_log_dirs_versions_and_cluster_id_are_shown(tool: Tool, jvm: Jvm, java: JavaKafka, topic: str) -> None:
    java.create_topic(topic)
    assert f'"{topic}-0"' in tool(f"{TOOLS}LogDirsCommand", "--describe", "--topic-list", topic)
    versions = tool(f"{TOOLS}BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): \d+ to 13", versions)
    assert re.search(r"Fetch\(1\): 4 to 1[78]", versions)
    ran = jvm.run(f"{TOOLS}ClusterTool", "cluster-id", "--bootstrap-server", java.bootstrap)
    assert ran.out.strip() == f"Cluster ID: {java.admin('describe-cluster')['cluster_id']}"


def test_segment_files_are_dumped_by_kafkas_own_reader(tool: Tool, java: JavaKafka, target: Target, topic: str) -> None:
    java.create_topic(topic, configs={"index.interval.bytes": "100"})
    for number, codec in enumerate(CODECS):
        java.produce(topic, [Sent(b"value", key=b"key-%d" % number)] * 10, compression_type=codec, linger_ms="50")
    files = target.data / f"{topic}-0"
    segment = files / "00000000000000000000.log"
    dump = f"{TOOLS}DumpLogSegments"
    out = tool(dump, "--files", str(segment), "--print-data-log", "--deep-iteration", connects=False)
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", out, re.MULTILINE)] == list(range(50))
    assert set(re.findall(r"compresscodec: (\w+)", out)) == set(CODECS)
    assert "isvalid: false" not in out
    assert out.count("isvalid: true") == out.count("baseOffset: ")
    assert "key: key-4 payload: value" in out


def test_a_segment_that_is_written_to_is_dumped_to_its_end(
    tool: Tool, java: JavaKafka, target: Target, topic: str
) -> None:
    java.create_topic(topic)
    java.produce(topic, [Sent(b"x" * 5_000)] * 150)
    segment = target.data / f"{topic}-0" / "00000000000000000000.log"
    out = tool(f"{TOOLS}DumpLogSegments", "--files", str(segment), "--deep-iteration", connects=False)
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", out, re.MULTILINE)] == list(range(150))
    assert not {word for word in ("isvalid: false", "invalid bytes", "xception") if word in out}


def test_index_files_hold_against_kafkas_own_checks(tool: Tool, java: JavaKafka, target: Target, topic: str) -> None:
    java.create_topic(topic, configs={"segment.bytes": "1048576"})
    sent = [Sent(b"x" * 1_000, timestamp_ms=1_700_000_000_000 + number) for number in range(1_500)]
    java.produce(topic, sent, batch_size="3000")
    files = target.data / f"{topic}-0"
    assert len(list(files.glob("*.log"))) == 2, "the first segment is full, so its indexes are final"
    indexes = [files / f"00000000000000000000.{kind}" for kind in ("index", "timeindex")]
    dump = f"{TOOLS}DumpLogSegments"
    out = tool(dump, "--files", ",".join(map(str, indexes)), "--verify-index-only", connects=False)
    assert "ismatch" not in out
    assert "out of order" not in out
    entries = r"^offset: \d+ position: \d+|^timestamp: \d+ offset: \d+"
    for index in indexes:
        assert len(re.findall(entries, tool(dump, "--files", str(index), connects=False), re.MULTILINE)) > 100
