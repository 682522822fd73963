"""Java's properties files, against what Java itself reads."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.config import BROKER_SETTINGS, BrokerConfig, parse_properties, without_effect
from cordwood.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("# x=1\n! y=2\n\n   \nz=3", {"z": "3"}),
        ("a=1\\\n   2", {"a": "12"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a\\ b\\=c = d", {"a b=c": "d"}),
        ("a=\\u00e9\\t\\q", {"a": "é\tq"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("=1", {"": "1"}),
    ],
)
def test_lines(text: str, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


def test_broken_escape_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\\u00g1"):
        parse_properties("a=\\u00g1")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        assert all("\n" not in name or "\\" in text for name in parse_properties(text))


@given(
    st.dictionaries(
        st.text("ab.= :#!\\\n\té", min_size=1, max_size=6), st.text("ab = :#!\\\n\té", max_size=6), max_size=4
    )
)
def test_what_is_escaped_comes_back(pairs: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(c):04x}" for c in text)

    assert parse_properties("\n".join(f"{escaped(k)}={escaped(v)}" for k, v in pairs.items())) == pairs


KRAFT = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
log.dirs=/tmp/kraft-combined-logs
share.coordinator.state.topic.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
"""

ZOOKEEPER = """
broker.id=0
num.network.threads=3
socket.send.buffer.bytes=102400
log.dirs=/tmp/kafka-logs
num.partitions=1
offsets.topic.replication.factor=1
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
inter.broker.protocol.version=2.8
log.message.format.version=2.8
"""


def test_a_kraft_brokers_file_loads() -> None:
    texts = parse_properties(KRAFT)
    config = BrokerConfig.parse(texts)
    assert (config.node_id, config.log_dirs, [e.port for e in config.endpoints()]) == (
        1,
        ("/tmp/kraft-combined-logs",),
        [9092],
    )
    reported = [line.split(":")[0] for line in without_effect(texts, BROKER_SETTINGS)]
    assert reported == [
        "process.roles, controller.quorum.bootstrap.servers",
        "share.coordinator.state.topic.replication.factor, transaction.state.log.min.isr",
    ]


def test_a_zookeeper_brokers_file_loads() -> None:
    texts = parse_properties(ZOOKEEPER)
    assert BrokerConfig.parse(texts).node_id == 0
    reported = [line.split(":")[0] for line in without_effect(texts, BROKER_SETTINGS)]
    assert reported == [
        "inter.broker.protocol.version, log.message.format.version",
    ]
