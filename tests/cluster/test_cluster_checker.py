"""The checker can fail: each rule, on a history that was broken by hand for it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster import checker

Lines = list[dict[str, Any]]

TOPIC = "t"


def replica(broker: int, *batches: list[str], start: int = 0) -> Lines:
    """A replica's log: the values of each batch, one record after the other."""
    lines: Lines = []
    offset = start
    for values in batches:
        records = [[offset + number, value] for number, value in enumerate(values)]
        last = offset + len(values) - 1
        lines.append(
            {
                "kind": "batch",
                "broker": broker,
                **place(),
                "first": offset,
                "last": last,
                "digest": f"{offset}:{values}",
                "records": records,
            }
        )
        offset = last + 1
    return [{"kind": "replica", "broker": broker, **place(), "start": start, "end": offset}, *lines]


def place() -> dict[str, Any]:
    return {"topic": TOPIC, "partition": 0}


def producer(name: str, *, ordered: bool = True, repeats: bool = False) -> dict[str, Any]:
    return {"kind": "producer", "producer": name, "ordered": ordered, "repeats": repeats}


def sent(name: str, value: str) -> dict[str, Any]:
    return {"kind": "sent", "producer": name, **place(), "value": value}


def acknowledged(name: str, value: str, offset: int) -> dict[str, Any]:
    return {"kind": "acknowledged", "producer": name, "value": value, "offset": offset}


def read(reader: str, offset: int, value: str) -> dict[str, Any]:
    return {"kind": "read", "reader": reader, **place(), "offset": offset, "value": value}


def good() -> Lines:
    """Two producers, two readers of a group, three replicas; one record nobody knows of, and it was stored."""
    return [
        producer("a"),
        producer("b"),
        sent("a", "a0"),
        sent("a", "a1"),
        sent("b", "b0"),
        sent("b", "b1"),
        sent("b", "b2"),
        acknowledged("a", "a0", 0),
        acknowledged("b", "b0", 1),
        acknowledged("a", "a1", 2),
        {"kind": "unknown", "producer": "b", "value": "b1"},
        {"kind": "refused", "producer": "b", "value": "b2"},
        *[read("r", offset, value) for offset, value in enumerate(["a0", "b0", "a1"])],
        *[read("s", offset, value) for offset, value in [(2, "a1"), (3, "b1")]],
        {"kind": "group", "group": "g", "readers": ["r", "s"]},
        *replica(1, ["a0", "b0"], ["a1"], ["b1"]),
        *replica(2, ["a0", "b0"], ["a1"], ["b1"]),
        *replica(3, ["a0", "b0"], ["a1"], ["b1"]),
    ]


def judged(lines: Lines) -> list[str]:
    return checker.faults(checker.parse(map(json.dumps, lines)))


def without_replicas(lines: Lines) -> Lines:
    return [line for line in lines if line["kind"] not in ("replica", "batch")]


def with_logs(*logs: list[list[str]]) -> Lines:
    """The good history with other logs on its brokers."""
    found = without_replicas(good())
    for broker, batches in enumerate(logs, 1):
        found += replica(broker, *batches)
    return found


def test_a_good_history_has_no_faults() -> None:
    assert judged(good()) == []


WHOLE = [["a0", "b0"], ["a1"], ["b1"]]

Break = Callable[[], Lines]


def a_gap() -> Lines:
    return [line for line in good() if not (line["kind"] == "batch" and line["first"] == 2)]


def a_lost_beginning() -> Lines:
    return [*without_replicas(good()), *replica(1, ["a1"], ["b1"], start=2), *replica(2, *WHOLE)]


def a_batch_that_is_not_what_it_says() -> Lines:
    lines = good()
    for line in lines:
        if line["kind"] == "batch" and line["first"] == 0:
            line["records"] = line["records"][:1]
    return lines


def an_end_beyond_the_batches() -> Lines:
    return [line | {"end": 5} if line["kind"] == "replica" else line for line in good()]


def another_digest() -> Lines:
    """The same records, but one byte of a batch differs: a leader epoch, say."""
    lines = good()
    lines[-1] = lines[-1] | {"digest": "other"}
    return lines


def other_batches() -> Lines:
    return with_logs(WHOLE, WHOLE, [["a0"], ["b0", "a1"], ["b1"]])


def a_shorter_replica() -> Lines:
    return with_logs(WHOLE, WHOLE, WHOLE[:2])


def a_longer_replica() -> Lines:
    return [*with_logs(WHOLE, WHOLE, [*WHOLE, ["b3"]]), sent("b", "b3")]


def an_acknowledged_record_lost_everywhere() -> Lines:
    return with_logs(*[[["a0", "b0"], ["b1"]]] * 3)


def an_acknowledged_record_lost_on_one() -> Lines:
    return with_logs(WHOLE, WHOLE, [["a0", "b0"]])


def an_acknowledged_record_elsewhere() -> Lines:
    return with_logs(*[[["b0", "a0"], ["a1"], ["b1"]]] * 3)


def a_record_acknowledged_somewhere_and_lost() -> Lines:
    """Nobody told the producer where it is, so it may be anywhere, but it must be."""
    lines = with_logs(WHOLE, WHOLE, WHOLE[:2])
    told = [line for line in lines if line.get("value") != "b1" or line["kind"] not in ("unknown", "read")]
    sending = next(number for number, line in enumerate(told) if line["kind"] == "acknowledged")
    return [*told[:sending], acknowledged("b", "b1", -1), *told[sending:]]


def a_partition_without_replicas() -> Lines:
    return without_replicas(good())


def a_record_stored_twice() -> Lines:
    return with_logs(*[[*WHOLE, ["b1"]]] * 3)


def records_out_of_order() -> Lines:
    """Nobody knows of b1 and b3, but the producer is idempotent: b3 may not come first."""
    lines = with_logs(*[[["a0", "b0"], ["a1"], ["b3"], ["b1"]]] * 3)
    return [line for line in [*lines, sent("b", "b3")] if line["kind"] not in ("read", "group")]


def acknowledgements_out_of_order() -> Lines:
    """A producer that may repeat itself has one record under way: what it is told goes up all the same."""
    lines = [producer("c", repeats=True), sent("c", "c0"), sent("c", "c1")]
    lines += [acknowledged("c", "c0", 1), acknowledged("c", "c1", 0)]
    return [*lines, *replica(1, ["c1", "c0"])]


def an_invented_record() -> Lines:
    return with_logs(*[[*WHOLE, ["x"]]] * 3)


def a_record_of_another_partition() -> Lines:
    lines = with_logs(*[[*WHOLE, ["b3"]]] * 3)
    return [*lines, sent("b", "b3") | {"partition": 1}]


def a_refused_record_that_is_there() -> Lines:
    return with_logs(*[[*WHOLE, ["b2"]]] * 3)


def a_read_record_that_vanished() -> Lines:
    """Nobody acknowledged b1, so its loss is fine, unless somebody has read it."""
    return with_logs(*[WHOLE[:2]] * 3)


def a_read_record_that_changed() -> Lines:
    return [*good(), read("late", 3, "b0")]


def a_record_that_no_member_read() -> Lines:
    return [line for line in good() if not (line["kind"] == "read" and line["value"] == "b0")]


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (a_gap, "logs_are_whole"),
        (a_lost_beginning, "logs_are_whole"),
        (a_batch_that_is_not_what_it_says, "logs_are_whole"),
        (an_end_beyond_the_batches, "logs_are_whole"),
        (another_digest, "replicas_are_identical"),
        (other_batches, "replicas_are_identical"),
        (a_shorter_replica, "replicas_are_identical"),
        (a_longer_replica, "replicas_are_identical"),
        (an_acknowledged_record_lost_everywhere, "acknowledged_records_are_there"),
        (an_acknowledged_record_lost_on_one, "acknowledged_records_are_there"),
        (an_acknowledged_record_elsewhere, "acknowledged_records_are_there"),
        (a_partition_without_replicas, "acknowledged_records_are_there"),
        (a_record_acknowledged_somewhere_and_lost, "acknowledged_records_are_there"),
        (a_record_stored_twice, "records_are_stored_once"),
        (records_out_of_order, "records_are_in_order"),
        (acknowledgements_out_of_order, "records_are_in_order"),
        (an_invented_record, "nothing_was_invented"),
        (a_record_of_another_partition, "nothing_was_invented"),
        (a_refused_record_that_is_there, "nothing_was_invented"),
        (a_read_record_that_vanished, "what_was_read_stays"),
        (a_read_record_that_changed, "what_was_read_stays"),
        (a_record_that_no_member_read, "groups_read_everything"),
    ],
)
def test_a_broken_history_is_found_by_its_rule(broken: Break, rule: str) -> None:
    assert rule in {fault.partition(":")[0] for fault in judged(broken())}


# Each of these breaks one rule and no other: without that rule nobody would see it.
ALONE: list[tuple[Break, str]] = [
    (an_end_beyond_the_batches, "logs_are_whole"),
    (another_digest, "replicas_are_identical"),
    (other_batches, "replicas_are_identical"),
    (a_longer_replica, "replicas_are_identical"),
    (a_partition_without_replicas, "acknowledged_records_are_there"),
    (a_record_stored_twice, "records_are_stored_once"),
    (records_out_of_order, "records_are_in_order"),
    (a_record_of_another_partition, "nothing_was_invented"),
    (a_refused_record_that_is_there, "nothing_was_invented"),
    (a_read_record_that_vanished, "what_was_read_stays"),
    (a_record_that_no_member_read, "groups_read_everything"),
]


@pytest.mark.parametrize(("broken", "rule"), ALONE)
def test_every_rule_is_needed(broken: Break, rule: str) -> None:
    lines = [line for line in broken() if line["kind"] != "group" or rule == "groups_read_everything"]
    assert {fault.partition(":")[0] for fault in judged(lines)} == {rule}


def test_every_rule_has_been_broken() -> None:
    assert {rule for _, rule in ALONE} == {rule.__name__ for rule in checker.RULES}


def test_a_producer_that_may_repeat_itself_is_allowed_to() -> None:
    lines = [producer("c", repeats=True), sent("c", "c0"), acknowledged("c", "c0", 1), *replica(1, ["c0", "c0"])]
    assert judged(lines) == []


def test_a_record_may_be_acknowledged_without_a_place() -> None:
    lines = [producer("c"), sent("c", "c0"), sent("c", "c1"), acknowledged("c", "c0", -1), acknowledged("c", "c1", 1)]
    assert judged([*lines, *replica(1, ["c0", "c1"])]) == []


def test_a_record_of_which_nobody_knows_may_be_missing() -> None:
    lines = [line for line in with_logs(*[WHOLE[:2]] * 3) if line.get("value") != "b1" or line["kind"] != "read"]
    assert judged(lines) == []


def test_what_was_trimmed_may_be_gone() -> None:
    trimmed = {"kind": "trimmed", **place(), "offset": 2}
    lines = [*without_replicas(good()), trimmed, *replica(1, ["a1"], ["b1"], start=2), *replica(2, *WHOLE)]
    assert judged(lines) == []


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "no such"},
        acknowledged("a", "never sent", 7),
        acknowledged("a", "a0", 0),
        acknowledged("nobody", "a0", 0),
        sent("a", "a0"),
        producer("a"),
    ],
)
def test_a_history_that_makes_no_sense_is_none(line: dict[str, Any]) -> None:
    with pytest.raises(checker.HistoryError, match="makes no sense"):
        judged([*good(), line])


def run(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", checker.__file__, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_program_judges_files_together(tmp_path: Path) -> None:
    lines = [json.dumps(line) for line in good()]
    (tmp_path / "one.jsonl").write_text("\n".join(lines[:12]) + "\n")
    (tmp_path / "two.jsonl").write_text("\n".join(lines[12:]) + "\n")
    done = run(tmp_path / "one.jsonl", tmp_path / "two.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("5 records sent, 3 acknowledged, 5 read; 3 replicas with 9 batches: nothing is wrong\n")


def test_the_program_fails_on_a_broken_history(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("\n".join(map(json.dumps, a_record_stored_twice())))
    done = run(tmp_path / "broken.jsonl")
    assert done.returncode == 1
    assert "records_are_stored_once: b1 is twice in t-0 on broker 1: at 3 and at 4" in done.stdout


def test_the_program_says_what_it_can_not_read(tmp_path: Path) -> None:
    assert run().returncode == 2
    assert run(tmp_path / "missing.jsonl").returncode == 2
    (tmp_path / "torn.jsonl").write_text('{"kind": ')
    done = run(tmp_path / "torn.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 makes no sense" in done.stderr
