"""Kafka's own tools for groups, and its own readers of what the coordinator writes."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from clients.drivers import Librdkafka, Sent
from clients.groups.crew import Crew, places, settle
from clients.groups.events import Place
from clients.groups.kinds import JAVA, JAVA_NEW, Kind, each
from clients.groups.offsets import JavaOffsets, Kept
from clients.java.bridge import Json, Jvm, Ran

pytestmark = pytest.mark.java

TOOLS = "org.apache.kafka.tools."
GROUPS = f"{TOOLS}consumer.group.ConsumerGroupCommand"
BOTH = each(JAVA, JAVA_NEW)

Tool = Callable[..., Ran]


@pytest.fixture
def tool(jvm: Jvm, bootstrap: str) -> Tool:
    def run(main: str, *arguments: str, fails: bool = False) -> Ran:
        ran = jvm.run(main, "--bootstrap-server", bootstrap, *arguments)
        assert fails or ran.code == 0, ran
        return ran

    return run


def rows(table: str) -> list[dict[str, str]]:
    """What a tool shows as a table, its first line the names of the columns."""
    head, *lines = [line.split() for line in table.splitlines() if line.strip()]
    return [dict(zip(head, line, strict=False)) for line in lines]


def _objects(text: str) -> Iterator[dict[str, dict[str, Json]]]:
    """JSON objects, one behind the other without anything between them."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        found, position = decoder.raw_decode(text, position)
        yield found
        position += len(text[position:]) - len(text[position:].lstrip())


def feed(bootstrap: str, topic: str) -> None:
    """Ten records for each of four partitions."""
    Librdkafka(bootstrap).produce(topic, [Sent(b"%d" % number, partition=number % 4) for number in range(40)])


@BOTH
def test_group_command_lists_and_describes(crew: Crew, tool: Tool, bootstrap: str, topic: str, kind: Kind) -> None:
    group = crew.wish.group
    feed(bootstrap, topic)
    member = crew.start(kind, commit_every=1)
    crew.read_all(dict.fromkeys(places(topic, 4), 10))
    listed = rows(tool(GROUPS, "--list", "--state", "--type").out)
    assert {"GROUP": group, "TYPE": kind.protocol.capitalize(), "STATE": "Stable"}.items() <= {
        key: value for row in listed if row["GROUP"] == group for key, value in row.items()
    }.items()
    described = rows(tool(GROUPS, "--describe", "--group", group).out)
    assert {(row["TOPIC"], row["PARTITION"], row["LOG-END-OFFSET"], row["CLIENT-ID"]) for row in described} == {
        (topic, str(number), "10", member.name) for number in range(4)
    }
    assert {int(row["CURRENT-OFFSET"]) + int(row["LAG"]) for row in described} == {10}
    [shown] = rows(tool(GROUPS, "--describe", "--group", group, "--members").out)
    assert (shown["CLIENT-ID"], shown["#PARTITIONS"]) == (member.name, "4")
    [state] = rows(tool(GROUPS, "--describe", "--group", group, "--state").out)
    assert kind.assignor in state.values()
    assert "Stable" in state.values()
    refused = tool(GROUPS, "--delete", "--group", group, fails=True)
    assert "GroupNotEmptyException" in refused.out + refused.err


def test_group_command_resets_and_deletes(tool: Tool, jvm: Jvm, bootstrap: str, topic: str, name: str) -> None:
    feed(bootstrap, topic)
    keeper = JavaOffsets(bootstrap, jvm)
    keeper.commit(name, {place: Kept(7) for place in places(topic, 4)})
    reset = (GROUPS, "--reset-offsets", "--group", name)

    def offsets() -> set[int]:
        return {kept.offset for kept in keeper.committed(name, places(topic, 4)).values()}

    planned = rows(tool(*reset, "--topic", topic, "--to-earliest", "--dry-run").out)
    assert {row["NEW-OFFSET"] for row in planned} == {"0"}
    assert offsets() == {7}
    for wish, outcome in (
        (("--to-earliest",), {0}),
        (("--to-latest",), {10}),
        (("--shift-by", "-3"), {7}),
        (("--to-offset", "99"), {10}),
        (("--to-datetime", "2001-01-01T00:00:00.000"), {0}),
        (("--by-duration", "PT0S"), {10}),
    ):
        tool(*reset, "--all-topics", *wish, "--execute")
        assert offsets() == outcome, wish
    tool(*reset, "--topic", f"{topic}:2", "--to-offset", "4", "--execute")
    assert keeper.committed(name, [Place(topic, 2)]) == {Place(topic, 2): Kept(4)}
    tool(GROUPS, "--delete-offsets", "--group", name, "--topic", f"{topic}:2")
    assert Place(topic, 2) not in keeper.committed(name, places(topic, 4))
    tool(GROUPS, "--delete", "--group", name)
    assert name not in tool(GROUPS, "--list").out.split()
    assert offsets() == set()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer_reads_and_commits(
    tool: Tool, jvm: Jvm, bootstrap: str, topic: str, name: str, protocol: str
) -> None:
    feed(bootstrap, topic)
    arguments = ("--topic", topic, "--group-id", name, "--group-protocol", protocol, "--max-messages", "40")
    out = tool(f"{TOOLS}VerifiableConsumer", *arguments, "--reset-policy", "earliest").out
    events = [json.loads(line) for line in out.splitlines()]
    assigned = [event["partitions"] for event in events if event["name"] == "partitions_assigned"]
    assert {place["partition"] for some in assigned for place in some} == {0, 1, 2, 3}
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 40
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")
    kept = JavaOffsets(bootstrap, jvm).committed(name, places(topic, 4))
    assert {place: one.offset for place, one in kept.items()} == dict.fromkeys(places(topic, 4), 10)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumer_performance_reads_all(tool: Tool, bootstrap: str, topic: str, name: str, protocol: str) -> None:
    Librdkafka(bootstrap).produce(topic, [Sent(b"x" * 100, partition=number % 4) for number in range(4_000)])
    arguments = ("--topic", topic, "--group", name, "--num-records", "4000", "--timeout", "20000")
    out = tool(f"{TOOLS}ConsumerPerformance", *arguments, "--command-property", f"group.protocol={protocol}").out
    assert re.search(r", 4000, [\d.]+, ", out.splitlines()[1])


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer_goes_on_where_its_group_was(
    tool: Tool, bootstrap: str, topic: str, name: str, protocol: str
) -> None:
    def consume(count: int) -> list[str]:
        arguments = ("--topic", topic, "--group", name, "--max-messages", str(count), "--timeout-ms", "20000")
        properties = (
            "--command-property",
            "auto.offset.reset=earliest",
            "--command-property",
            f"group.protocol={protocol}",
        )
        return tool(f"{TOOLS}consumer.ConsoleConsumer", *arguments, *properties).out.split()

    feed(bootstrap, topic)
    first, second = consume(15), consume(25)
    assert sorted(map(int, first + second)) == list(range(40))


def test_kafkas_own_readers_understand_the_offsets_topic(
    crew: Crew, tool: Tool, jvm: Jvm, bootstrap: str, topic: str, name: str
) -> None:
    JavaOffsets(bootstrap, jvm).commit(f"{name}-simple", {Place(topic, 0): Kept(11, "a note", 0)})
    classic, modern = (crew.start(kind, group=f"{name}-{kind.protocol}") for kind in (JAVA, JAVA_NEW))
    settle([classic], places(topic, 4), [4])
    settle([modern], places(topic, 4), [4])
    crew.all_leave()

    def shown(formatter: str) -> list[dict[str, dict[str, Json]]]:
        arguments = ("--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000")
        ran = tool(f"{TOOLS}consumer.ConsoleConsumer", *arguments, "--formatter", f"{TOOLS}consumer.{formatter}")
        return list(_objects(ran.out))

    kept = [one for one in shown("OffsetsMessageFormatter") if one["key"]["data"]["group"] == f"{name}-simple"]
    assert kept[-1]["key"]["data"] == {"group": f"{name}-simple", "topic": topic, "partition": 0}
    value = kept[-1]["value"]["data"]
    assert (value["offset"], value["leaderEpoch"], value["metadata"]) == (11, 0, "a note")
    groups = [one for one in shown("GroupMetadataMessageFormatter") if one["key"]["data"]["group"] == f"{name}-classic"]
    stable = next(one["value"]["data"] for one in groups if one["value"]["data"]["members"])
    assert (stable["protocolType"], stable["protocol"]) == ("consumer", "range")
    assert stable["members"][0]["clientId"] == classic.name
