"""topics, produce and consume, against a running broker."""

import json
import subprocess
import sys

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.partitioner.default import murmur2

from cli.runner import Outcome, Run
from cordwood import Broker

MISSING = "there is no topic nowhere; `cordwood topics list` shows those that exist"


def refused(outcome: Outcome, sentence: str) -> bool:
    """One sentence for the person, a status for the script, and nothing else."""
    return (outcome.status, outcome.out, outcome.err) == (1, "", f"cordwood: {sentence}\n")


def test_a_topic_from_its_creation_to_its_end(run: Run) -> None:
    assert (
        run("topics", "create", "short-lived", "--partitions", "3", "--config", "retention.ms=60000").out
        == "created short-lived\n"
    )
    assert "short-lived" in run("topics", "list").lines
    assert ["short-lived", "3", "1"] in [line.split() for line in run("topics", "list", "-l").lines]
    assert run("topics", "delete", "short-lived").out == "deleted short-lived\n"
    assert "short-lived" not in run("topics", "list").lines


def test_describe_shows_settings_and_offsets(run: Run) -> None:
    run("topics", "create", "described", "--partitions", "2", "--config", "retention.ms=60000")
    run("produce", "described", "--partition", "1", stdin="a\nb\n")
    described = run("topics", "describe", "described")
    assert described.lines[:2] == ["described: 2 partitions", "  retention.ms=60000"]
    assert [line.split() for line in described.lines[3:]] == [
        ["0", "1", "1", "1", "0", "0"],
        ["1", "1", "1", "1", "0", "2"],
    ]


def test_a_topic_that_exists_is_an_error_unless_that_is_said_to_be_fine(run: Run, topic: str) -> None:
    assert refused(run("topics", "create", topic), f"{topic} exists already; add --if-not-exists to accept that")
    assert run("topics", "create", topic, "--if-not-exists").status == 0


@pytest.mark.parametrize("command", [("topics", "describe"), ("topics", "delete"), ("consume",)])
def test_a_topic_that_is_missing_is_said_so(run: Run, command: tuple[str, ...]) -> None:
    assert refused(run(*command, "nowhere"), MISSING)


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_a_name_that_no_topic_can_have_is_explained(run: Run, command: str) -> None:
    expected = "../etc: a topic's name is 1 to 249 letters, digits, dots, dashes and underscores"
    assert refused(run(command, "../etc"), expected)


def test_a_bad_setting_is_named(run: Run) -> None:
    outcome = run("topics", "create", "x", "--config", "retention.msec=1")
    assert outcome.status == 1
    assert "x was not created: unknown topic setting retention.msec; did you mean retention.ms?" in outcome.err


def test_a_setting_without_a_value_is_explained(run: Run) -> None:
    assert refused(run("topics", "create", "x", "--config", "a"), "--config a has no value; write --config NAME=VALUE")


def test_lines_come_back_byte_for_byte(run: Run, topic: str) -> None:
    lines = ["plain", "", "  spaces  ", "tab\there", "grüße ✓"]
    sent = run("produce", topic, "--partition", "2", stdin="\n".join(lines) + "\n")
    assert (sent.status, sent.out) == (0, "")
    assert sent.err.startswith("sent 5 records, ")
    assert run("consume", topic, "--until-end").lines == lines


def test_a_last_line_without_its_end_is_a_record_too(run: Run, topic: str) -> None:
    run("produce", topic, stdin="a\r\nb")
    assert sorted(run("consume", topic, "--until-end").lines) == ["a", "b"]


def test_keys_go_where_javas_client_puts_them(run: Run, topic: str) -> None:
    keys = [f"key-{n}" for n in range(50)]
    run("produce", topic, "--key-separator", ": ", stdin="".join(f"{k}: {k} again: x\n" for k in keys))
    rows = [line.split("\t") for line in run("consume", topic, "--until-end", "--with", "partition,key").lines]
    assert {key: int(partition) for partition, key, _ in rows} == {
        k: (murmur2(k.encode()) & 0x7FFFFFFF) % 4 for k in keys
    }
    assert all(value == f"{key} again: x" for _, key, value in rows)


def test_a_line_without_the_separator_is_named_and_those_before_it_are_sent(run: Run, topic: str) -> None:
    outcome = run("produce", topic, "--key-separator", "=", stdin="a=1\nb\nc=3\n")
    assert outcome.status == 1
    assert "cordwood: line 2 has no '=' between key and value; the lines before it were sent\n" in outcome.err
    assert run("consume", topic, "--until-end").lines == ["1"]


def test_records_that_a_compacted_topic_refuses_are_said_to_need_keys(run: Run) -> None:
    assert run("topics", "create", "compacted", "--config", "cleanup.policy=compact").status == 0
    outcome = run("produce", "compacted", stdin="no key\n")
    assert outcome.status == 1
    assert "1 record was not taken: the topic does not take such a record; in a compacted topic each" in outcome.err


def test_a_line_that_is_too_large_is_named_and_those_before_it_are_sent(run: Run, topic: str) -> None:
    lines = f"a\n{'x' * 1_000_000}\nb\n"
    outcome = run("produce", topic, stdin=lines)
    assert outcome.status == 1
    assert outcome.err.endswith(
        "cordwood: line 2 is too large for a record; -X message.max.bytes=N allows larger ones, as far as the topic's "
        "max.message.bytes does. The lines before it were sent\n"
    )
    assert run("consume", topic, "--until-end").lines == ["a"]


def test_headers_and_nulls_as_json(run: Run, topic: str) -> None:
    run(
        "produce",
        topic,
        "--key-separator",
        "=",
        "--null",
        "-",
        *("--header", "h=1", "--header", "i=2", "--header", "h=3"),
        stdin="k=-\n",
    )
    record = json.loads(run("consume", topic, "--max", "1", "--json").out)
    assert record.pop("time").endswith("Z")
    assert record.pop("partition") in range(4)
    assert record == {
        "topic": topic,
        "offset": 0,
        "headers": [["h", "1"], ["i", "2"], ["h", "3"]],
        "key": "k",
        "value": None,
    }


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_lines_come_back(run: Run, topic: str, codec: str) -> None:
    run("produce", topic, "--partition", "0", "--compression", codec, stdin="x" * 1000 + "\n")
    assert run("consume", topic, "--until-end").lines == ["x" * 1000]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_whoever_must_have_them(run: Run, topic: str, acks: str) -> None:
    assert run("produce", topic, "--acks", acks, stdin="a\n").status == 0
    assert run("consume", topic, "--max", "1").lines == ["a"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("earliest", ["0", "1", "2", "3", "4"]),
        ("latest", []),
        ("3", ["3", "4"]),
        ("5", []),
        ("-2", ["3", "4"]),
        ("-99", ["0", "1", "2", "3", "4"]),
        ("-1h", ["0", "1", "2", "3", "4"]),
        ("0s", []),
        ("2001-09-09", ["0", "1", "2", "3", "4"]),
        ("1000000000000", ["0", "1", "2", "3", "4"]),
        ("2099-01-01T00:00:00Z", []),
    ],
)
def test_reading_starts_where_it_is_told_to(run: Run, topic: str, where: str, expected: list[str]) -> None:
    run("produce", topic, "--partition", "1", stdin="0\n1\n2\n3\n4\n")
    assert run("consume", topic, "--partition", "1", "--from", where, "--until-end").lines == expected


def test_an_offset_is_one_of_each_partition_that_has_it(run: Run, topic: str) -> None:
    """Those that end before it have nothing to show, and are no reason to show nothing of the others."""
    for partition, count in enumerate((2, 0, 4, 3)):
        run("produce", topic, "--partition", str(partition), stdin="".join(f"{n}\n" for n in range(count)))
    rows = run("consume", topic, "--from", "2", "--until-end", "--with", "partition,offset").lines
    assert sorted(rows) == ["2\t2\t2", "2\t3\t3", "3\t2\t2"]
    assert run("consume", topic, "--from", "4", "--until-end").lines == []


def test_a_partition_that_begins_after_the_offset_is_read_from_its_first_record(
    run: Run, broker: Broker, topic: str
) -> None:
    for partition in ("0", "1"):
        run("produce", topic, "--partition", partition, stdin="0\n1\n2\n3\n")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 3)]).values()
    deleted.result()
    rows = run("consume", topic, "--from", "2", "--until-end", "--with", "partition").lines
    assert sorted(rows) == ["0\t3", "1\t2", "1\t3"]


def test_a_partition_that_ends_before_the_offset_shows_what_comes_later(broker: Broker, run: Run, topic: str) -> None:
    run("produce", topic, "--partition", "2", stdin="0\n1\n2\n3\n")
    run("produce", topic, "--partition", "1", stdin="before\n")
    command = [sys.executable, "-m", "cordwood", "consume", topic, "--from", "3", "--max", "2"]
    command += ["--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "3\n"
        run("produce", topic, "--partition", "1", stdin="later\n")
        assert process.stdout.readline() == "later\n"


def test_an_offset_beyond_the_end_of_all_partitions_is_explained(run: Run, topic: str) -> None:
    run("produce", topic, "--partition", "1", stdin="0\n1\n")
    expected = f"--from 7 is beyond the end of all partitions; the furthest, {topic} partition 1, ends at 2"
    assert refused(run("consume", topic, "--from", "7"), expected)


def test_an_offset_beyond_the_end_of_the_only_partition_is_explained(run: Run, topic: str) -> None:
    run("produce", topic, "--partition", "1", stdin="0\n1\n")
    expected = f"{topic} partition 0 ends at offset 0; --from 1 is beyond it"
    assert refused(run("consume", topic, "--partition", "0", "--from", "1"), expected)


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_a_partition_that_is_missing_is_explained(run: Run, topic: str, command: str) -> None:
    assert refused(run(command, topic, "--partition", "9"), f"{topic} has no partition 9; it has 0 to 3")


def test_max_ends_in_the_middle(run: Run, topic: str) -> None:
    run("produce", topic, "--partition", "0", stdin="a\nb\nc\n")
    assert run("consume", topic, "--max", "2").lines == ["a", "b"]


def test_several_topics_are_read_together(run: Run, topic: str) -> None:
    other = f"{topic}-2"
    run("topics", "create", other)
    run("produce", topic, stdin="a\n")
    run("produce", other, stdin="b\n")
    lines = run("consume", topic, other, "--until-end", "--with", "topic").lines
    assert sorted(lines) == [f"{topic}\ta", f"{other}\tb"]


def test_a_pattern_is_for_groups(run: Run) -> None:
    assert refused(run("consume", "^or.*"), "^or.* is a pattern, and patterns need --group")


def test_a_pattern_that_is_none_is_explained(run: Run) -> None:
    assert refused(run("consume", "^or(", "--group", "lost"), "^or( is not a pattern that librdkafka understands")


def test_a_topic_that_is_named_twice_is_read_once(run: Run, topic: str) -> None:
    run("produce", topic, stdin="a\n")
    assert run("consume", topic, topic, "--until-end").lines == ["a"]


def test_what_is_no_text_is_sent_as_it_was_typed(run: Run, topic: str) -> None:
    """A word of the command line may be any bytes, as a line of standard input may."""
    words = ("--key-separator", "\udcfe", "--null", "\udcff", "--header", "h=\udcfd")
    (key, value) = (b"k\xfe", b"\xff\n")
    assert run("produce", topic, *words, stdin=key + value).status == 0
    record = json.loads(run("consume", topic, "--max", "1", "--json").out)
    assert (record["key"], record["value"], record["headers"]) == ("k", None, [["h", {"base64": "/Q=="}]])


def test_a_topic_comes_into_being_with_its_first_record(run: Run) -> None:
    run("produce", "made-by-produce", stdin="a\n")
    assert run("consume", "made-by-produce", "--max", "1").lines == ["a"]


@pytest.mark.parametrize(
    ("bootstrap", "reason"),
    [
        ("127.0.0.1:1", "connection refused"),
        ("127.0.0.1:1,127.0.0.1:2", "connection refused"),
        ("no..host:9092", "no such host"),
    ],
)
@pytest.mark.parametrize("command", [("topics", "list"), ("groups", "list"), ("produce", "t"), ("consume", "t")])
def test_no_broker_is_one_sentence(run: Run, command: tuple[str, ...], bootstrap: str, reason: str) -> None:
    outcome = run(*command, "--bootstrap", bootstrap)
    assert refused(
        outcome,
        f"no broker answers at {bootstrap} ({reason}); start one with `cordwood serve`, "
        "or name another with --bootstrap host:port",
    )


def test_a_property_that_nobody_knows_is_named(run: Run) -> None:
    outcome = run("topics", "list", "-X", "colour=red")
    assert refused(outcome, 'the client cannot be set up: No such configuration property: "colour"')


def test_a_group_without_a_name_is_refused(broker: Broker) -> None:
    """In a process of its own: confluent-kafka would end it."""
    command = [sys.executable, "-m", "cordwood", "consume", "t", "-X", "group.id=", "--bootstrap", broker.bootstrap]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert (outcome.returncode, outcome.stderr) == (1, "cordwood: group.id is empty; leave it out\n")


@pytest.mark.parametrize("address", ["localhost", ":9092", "a:b", "127.0.0.1:99999", "127.0.0.1:²"])
def test_what_is_no_address_is_explained(run: Run, address: str) -> None:
    expected = f"{address} is not an address; write it as host:port, such as 127.0.0.1:9092"
    assert refused(run("topics", "list", "--bootstrap", address), expected)
