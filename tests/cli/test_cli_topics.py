"""``cordwood topics`` with several topics at once, with none, and with names that need a word."""

import pytest

from cli.runner import Run

MISSING = "there is no topic {}; `cordwood topics list` shows those that exist"


def test_every_topic_is_reported_although_one_is_there_already(run: Run, topic: str) -> None:
    new = [f"{topic}-{n}" for n in range(3)]
    outcome = run("topics", "create", new[0], topic, *new[1:])
    assert (outcome.status, outcome.lines) == (1, [f"created {name}" for name in new])
    assert outcome.err == f"cordwood: {topic} exists already; add --if-not-exists to accept that\n"


def test_every_topic_is_reported_although_one_can_not_be(run: Run, topic: str) -> None:
    outcome = run("topics", "create", "a/b", topic, f"{topic}-new")
    assert (outcome.status, outcome.lines) == (1, [f"created {topic}-new"])
    assert [line.split(" ")[1] for line in outcome.err.splitlines()] == ["a/b", topic]


def test_every_topic_is_reported_although_one_is_not_there_to_delete(run: Run, topic: str) -> None:
    outcome = run("topics", "delete", "nowhere", topic, "nor-there")
    assert (outcome.status, outcome.lines) == (1, [f"deleted {topic}"])
    assert outcome.err.splitlines() == [f"cordwood: {MISSING.format(name)}" for name in ("nowhere", "nor-there")]


def test_every_topic_is_described_although_one_is_not_there(run: Run, topic: str) -> None:
    outcome = run("topics", "describe", "nowhere", topic)
    assert (outcome.status, outcome.lines[0]) == (1, f"{topic}: 4 partitions")
    assert outcome.err == f"cordwood: {MISSING.format('nowhere')}\n"


def test_a_topic_that_is_named_twice_is_meant_once(run: Run, topic: str) -> None:
    new = f"{topic}-new"
    assert run("topics", "create", new, new).lines == [f"created {new}"]
    assert run("topics", "describe", new, new).lines == run("topics", "describe", new).lines
    assert run("topics", "delete", new, topic, new).lines == [f"deleted {new}", f"deleted {topic}"]


def test_without_a_name_all_topics_are_described(run: Run, topic: str) -> None:
    run("consume", topic, "--group", topic, "--until-end")  # which makes an internal topic
    described = [line.partition(":")[0] for line in run("topics", "describe").lines if line[:1].strip()]
    assert described == run("topics", "list").lines
    assert topic in described


def test_a_name_that_collides_is_explained_in_the_brokers_words(run: Run, topic: str) -> None:
    run("topics", "create", f"{topic}.x")
    outcome = run("topics", "create", f"{topic}_x")
    assert outcome.status == 1
    collision = f"Topic '{topic}_x' collides with existing topic '{topic}.x': '.' and '_' count as one."
    assert outcome.err == f"cordwood: {topic}_x was not created: {collision}\n"


def test_only_the_topics_that_kafka_keeps_for_itself_are_hidden(run: Run, topic: str) -> None:
    run("topics", "create", "__mine")
    run("consume", topic, "--group", topic, "--until-end")
    shown, everything = run("topics", "list").lines, run("topics", "list", "--internal").lines
    assert "__mine" in shown
    assert set(everything) - set(shown) == {"__consumer_offsets"}


@pytest.mark.parametrize("action", ["create", "describe", "delete", "elect-leaders", "reassign"])
def test_a_name_can_not_be_empty(run: Run, action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("topics", action, "")
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("argument TOPIC: a topic's name cannot be empty\n")
