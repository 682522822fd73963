"""groups, and consume as a member of one, against a running broker."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, TopicPartition

from cli.runner import Outcome, Run
from cordwood import Broker

MISSING = "there is no group nobody; `cordwood groups list` shows those that exist"
PROTOCOLS = ["classic", "consumer"]


def refused(outcome: Outcome, sentence: str) -> bool:
    return (outcome.status, outcome.out, outcome.err) == (1, "", f"cordwood: {sentence}\n")


def cells(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines]


def fill(run: Run, topic: str, *counts: int) -> None:
    """So many records in partition 0, 1, ..."""
    for partition, count in enumerate(counts):
        lines = "".join(f"{partition}-{n}\n" for n in range(count))
        run("produce", topic, "--partition", str(partition), stdin=lines)


def commit(broker: Broker, group: str, topic: str, *offsets: int) -> None:
    """Commit for partition 0, 1, ... as somebody who is in no group."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


@contextmanager
def member(broker: Broker, group: str, topic: str, *, protocol: str = "classic", instance: str = "") -> Iterator[None]:
    """A live member that has its partitions, called `resident`."""
    settings = {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    if instance:
        settings["group.instance.id"] = instance
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": "resident", **settings})
    assigned, done = Event(), Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def live() -> None:
        while not done.is_set():
            consumer.poll(0.1)
        if instance:
            consumer.unsubscribe()
        consumer.close()

    thread = Thread(target=live)
    thread.start()
    try:
        assert assigned.wait(30)
        yield
    finally:
        done.set()
        thread.join()


def committed(run: Run, group: str) -> dict[int, int | None]:
    """What a group has committed, by partition of its one topic."""
    described = json.loads(run("groups", "describe", group, "--json").out)
    return {row["partition"]: row["committed"] for row in described["partitions"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_prints_what_is_there_and_commits_it(run: Run, topic: str, protocol: str) -> None:
    fill(run, topic, 3, 2)
    words = ("consume", topic, "--group", topic, "--until-end", "-X", f"group.protocol={protocol}")
    assert sorted(run(*words).lines) == ["0-0", "0-1", "0-2", "1-0", "1-1"]
    assert committed(run, topic) == {0: 3, 1: 2}
    fill(run, topic, 1)
    assert run(*words).lines == ["0-0"]


def test_a_member_that_ends_early_commits_no_more_than_it_printed(run: Run, topic: str) -> None:
    fill(run, topic, 5)
    words = ("consume", topic, "--group", topic, "--max", "2")
    assert run(*words).lines == ["0-0", "0-1"]
    assert committed(run, topic) == {0: 2}
    assert run(*words).lines == ["0-2", "0-3"]


def test_a_member_reads_several_topics_and_patterns(run: Run, topic: str) -> None:
    other = f"{topic}-2"
    run("topics", "create", other)
    fill(run, topic, 1)
    fill(run, other, 2)
    words = ("--group", topic, "--until-end", "--with", "topic")
    assert sorted(run("consume", topic, other, *words).lines) == [f"{topic}\t0-0", f"{other}\t0-0", f"{other}\t0-1"]
    fill(run, other, 1)
    assert run("consume", f"^{topic}.*", *words).lines == [f"{other}\t0-0"]


def test_a_member_may_skip_what_was_there_before_it(run: Run, topic: str) -> None:
    fill(run, topic, 5)
    assert run("consume", topic, "--group", topic, "--from", "latest", "--until-end").lines == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--partition", "0"], "--partition does not go with --group: the group says who reads which"),
        (["--from", "3"], "with --group, --from is earliest or latest, for partitions without a committed offset; "),
    ],
)
def test_what_the_group_decides_can_not_be_asked_for(run: Run, topic: str, words: list[str], sentence: str) -> None:
    outcome = run("consume", topic, "--group", topic, *words)
    assert outcome.status == 1
    assert outcome.err.startswith(f"cordwood: {sentence}")


def test_a_member_of_a_topic_that_is_missing_is_told_so(run: Run) -> None:
    sentence = "there is no topic nowhere; `cordwood topics list` shows those that exist"
    assert refused(run("consume", "nowhere", "--group", "g"), sentence)


def test_groups_are_listed_by_type_and_state(run: Run, broker: Broker, topic: str) -> None:
    commit(broker, f"{topic}-a", topic, 0)
    with member(broker, f"{topic}-b", topic, protocol="consumer"):
        everything = cells(run("groups", "list").lines)
        assert everything[0] == ["group", "type", "state"]
        assert [row for row in everything if row[0].startswith(topic)] == [
            [f"{topic}-a", "classic", "empty"],
            [f"{topic}-b", "consumer", "stable"],
        ]
        assert f"{topic}-a" not in run("groups", "list", "--type", "consumer").out
        assert f"{topic}-b" not in run("groups", "list", "--state", "empty", "--state", "dead").out
        found = [json.loads(line) for line in run("groups", "list", "--state", "stable", "--json").lines]
        assert {"group": f"{topic}-b", "type": "consumer", "state": "stable"} in found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_describe_shows_members_and_owners_and_lag(run: Run, broker: Broker, topic: str, protocol: str) -> None:
    fill(run, topic, 5, 4)
    commit(broker, topic, topic, 2)
    with member(broker, topic, topic, protocol=protocol, instance="kitchen"):
        lines = run("groups", "describe", topic).lines
    assert re.fullmatch(
        rf"{topic}: stable, {protocol} protocol, assignor (range|uniform), "
        r"coordinated by broker 1 \(127\.0\.0\.1:\d+\)",
        lines[0],
    )
    ((member_id, *rest),) = cells(lines[2:3])
    assert rest == ["resident", "127.0.0.1", "kitchen", f"{topic}:0,1,2,3"]
    assert cells(lines[4:9]) == [
        ["topic", "partition", "committed", "end", "lag", "owner"],
        [topic, "0", "2", "5", "3", member_id],
        [topic, "1", "-", "4", "-", member_id],
        [topic, "2", "-", "0", "-", member_id],
        [topic, "3", "-", "0", "-", member_id],
    ]
    assert lines[-1] == "  total lag 3; 3 partitions have no committed offset"


def test_describe_shows_what_is_committed_and_owned_by_nobody(run: Run, broker: Broker, topic: str) -> None:
    fill(run, topic, 5, 4)
    commit(broker, topic, topic, 5, 1)
    lines = run("groups", "describe", topic).lines
    assert re.fullmatch(rf"{topic}: empty, classic protocol, coordinated by broker 1 \(127\.0\.0\.1:\d+\)", lines[0])
    assert lines[1] == "  no members"
    assert cells(lines[4:6]) == [[topic, "0", "5", "5", "0", "-"], [topic, "1", "1", "4", "3", "-"]]
    assert lines[-1] == "  total lag 3"


def test_describe_as_json_has_the_same_facts(run: Run, broker: Broker, topic: str) -> None:
    fill(run, topic, 3)
    commit(broker, topic, topic, 1)
    with member(broker, topic, topic):
        described = json.loads(run("groups", "describe", topic, "--json").out)
    (resident,) = described["members"]
    assert (resident["client_id"], resident["host"], resident["instance_id"]) == ("resident", "127.0.0.1", None)
    assert resident["partitions"] == [{"topic": topic, "partition": n} for n in range(4)]
    facts = {"topic": topic, "partition": 0, "committed": 1, "end": 3, "lag": 2, "owner": resident["id"]}
    assert described["partitions"][0] == facts
    assert described["partitions"][1] == {**facts, "partition": 1, "committed": None, "end": 0, "lag": None}
    assert (described["group"], described["lag"]) == (topic, 2)


def test_every_group_is_described_although_one_is_not_there(run: Run, broker: Broker, topic: str) -> None:
    run("consume", topic, "--group", topic, "--until-end")
    outcome = run("groups", "describe", "nobody", topic, topic)
    assert (outcome.status, outcome.err) == (1, f"cordwood: {MISSING}\n")
    assert [line.split(":")[0] for line in outcome.lines if "coordinated by" in line] == [topic]


def test_describe_takes_several_groups_or_all(run: Run, broker: Broker, topic: str) -> None:
    for name in (f"{topic}-b", f"{topic}-a"):
        commit(broker, name, topic, 0)
    heads = [line for line in run("groups", "describe", f"{topic}-b", f"{topic}-a").lines if line.startswith(topic)]
    assert [head.split(":")[0] for head in heads] == [f"{topic}-b", f"{topic}-a"]
    everything = run("groups", "describe", "--all").out
    assert f"\n{topic}-a: empty" in f"\n{everything}"
    assert f"\n{topic}-b: empty" in f"\n{everything}"


def test_a_topic_that_is_gone_is_a_question_mark(run: Run, broker: Broker, topic: str) -> None:
    """Kafka drops what was committed for a deleted topic, but not at once."""
    other = f"{topic}-2"
    run("topics", "create", other)
    commit(broker, topic, topic, 0)
    commit(broker, topic, other, 0)
    run("topics", "delete", other)
    rows = cells(run("groups", "describe", topic).lines)
    assert [topic, "0", "0", "0", "0", "-"] in rows
    assert [row for row in rows if row[:1] == [other]] in ([], [[other, "0", "0", "?", "?", "-"]])
    assert run("groups", "reset-offsets", topic, "--all-topics", "--to", "latest", "--execute").status == 0


@pytest.mark.parametrize(
    "words",
    [("describe", "nobody"), ("delete", "nobody"), ("reset-offsets", "nobody", "--all-topics", "--to", "latest")],
)
def test_a_group_that_is_missing_is_said_so(run: Run, words: tuple[str, ...]) -> None:
    assert refused(run("groups", *words), MISSING)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to", "earliest"], [0, 0]),
        (["--to", "latest"], [5, 4]),
        (["--to", "-1"], [4, 3]),
        (["--by-duration", "1h30m"], [0, 0]),
        (["--shift", "-1"], [1, 0]),
    ],
)
def test_offsets_are_reset(run: Run, broker: Broker, topic: str, words: list[str], expected: list[int]) -> None:
    fill(run, topic, 5, 4)
    commit(broker, topic, topic, 2, 1)
    shown = run("groups", "reset-offsets", topic, "--all-topics", *words)
    rows = [
        [topic, str(n), str(old), str(new), str(new - old)]
        for n, (old, new) in enumerate(zip([2, 1], expected, strict=True))
    ]
    assert cells(shown.lines[:3]) == [["topic", "partition", "committed", "new", "change"], *rows]
    assert shown.lines[-1] == "Nothing was changed; add --execute to commit these offsets."
    assert committed(run, topic) == {0: 2, 1: 1}
    done = run("groups", "reset-offsets", topic, "--all-topics", *words, "--execute")
    assert done.lines[-1] == f"{topic} goes on at the new offset in 2 partitions."
    assert committed(run, topic) == dict(enumerate(expected))


def test_new_offsets_stay_inside_the_partition(run: Run, broker: Broker, topic: str) -> None:
    fill(run, topic, 5, 4)
    commit(broker, topic, topic, 2, 1)
    lines = run("groups", "reset-offsets", topic, "--topic", topic, "--shift", "-2", "--execute").lines
    assert lines[0].split() == ["topic", "partition", "committed", "new", "change", "note"]
    assert lines[1].split() == [topic, "0", "2", "0", "-2"]
    assert lines[2].split()[:5] == [topic, "1", "1", "0", "-1"]
    assert lines[2].endswith("  -1 is before the first record")
    assert lines[3].endswith("  nothing is committed that could be shifted")
    assert committed(run, topic) == {0: 0, 1: 0}
    lines = run("groups", "reset-offsets", topic, "--topic", f"{topic}:1", "--to", "99", "--execute").lines
    assert lines[1].split()[:5] == [topic, "1", "0", "4", "4"]
    assert lines[1].endswith("  99 is behind the end")
    assert committed(run, topic) == {0: 0, 1: 4}


def test_a_group_begins_with_a_reset(run: Run, topic: str) -> None:
    fill(run, topic, 5)
    words = ("groups", "reset-offsets", topic, "--topic", f"{topic}:0,1", "--to", "latest")
    assert run(*words).lines[-1].endswith("The group does not exist yet; that would create it.")
    assert refused(run("groups", "describe", topic), MISSING.replace("nobody", topic))
    assert run(*words, "--execute").status == 0
    assert committed(run, topic) == {0: 5, 1: 0}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "nowhere"], "there is no topic nowhere; `cordwood topics list` shows those that exist"),
        (["--topic", "TOPIC:0,7"], "TOPIC has no partition 7; it has 0 to 3"),
    ],
)
def test_what_can_not_be_reset_is_explained(run: Run, topic: str, words: list[str], sentence: str) -> None:
    named = [word.replace("TOPIC", topic) for word in words]
    outcome = run("groups", "reset-offsets", topic, *named, "--to", "earliest", "--execute")
    assert refused(outcome, sentence.replace("TOPIC", topic))


def test_nothing_to_shift_is_an_error(run: Run, topic: str) -> None:
    outcome = run("groups", "reset-offsets", topic, "--topic", topic, "--shift", "1", "--execute")
    assert outcome.status == 1
    assert "nothing to reset: no partition asked for has a committed offset" in outcome.err


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_members_is_left_alone(run: Run, broker: Broker, topic: str, protocol: str) -> None:
    commit(broker, topic, topic, 0)
    with member(broker, topic, topic, protocol=protocol):
        reset = run("groups", "reset-offsets", topic, "--all-topics", "--to", "latest", "--execute")
        assert (reset.status, reset.out) == (1, "")
        assert reset.err.startswith(f"cordwood: {topic} has 1 member (resident at 127.0.0.1), and running consumers")
        assert "stop them first" in reset.err
        deleted = run("groups", "delete", topic)
        expected = f"{topic} was not deleted: it has 1 member (resident at 127.0.0.1); stop them first, then delete it"
        assert refused(deleted, expected)
    assert run("groups", "delete", topic).out == f"deleted {topic}\n"
    assert topic not in run("groups", "list").out


def test_groups_that_can_be_deleted_are_deleted_whatever_the_others_do(run: Run, broker: Broker, topic: str) -> None:
    commit(broker, topic, topic, 0)
    outcome = run("groups", "delete", "nobody", topic)
    assert (outcome.status, outcome.out, outcome.err) == (1, f"deleted {topic}\n", f"cordwood: {MISSING}\n")
