"""What people type, before anything runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from cordwood.cli.drawing import one_line
from cordwood.cli.main import COMMANDS, main, parser_for
from cordwood.cli.position import Position, Where, parse_duration_ms, parse_position
from cordwood.cli.progress import Progress
from cordwood.cli.serve import settings_from
from cordwood.cli.show import time_text
from cordwood.cli.table import print_table
from cordwood.config import BrokerConfig

HOUR_MS = 3_600_000


def serve_settings(*words: str) -> dict[str, str]:
    return settings_from(parser_for("serve").parse_args(["serve", *words]))


def test_the_command_line_is_stronger_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=4\nlog.dirs=/file\nlisteners=PLAINTEXT://:1\nlog.retention.hours=1\nnum.partitions=7\n")
    settings = serve_settings(
        *("--config", str(file), "--data", "/line", "--port", "0", "--node-id", "5", "--set", "log.retention.hours=2")
    )
    assert settings == {
        "log.dirs": "/line",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.retention.hours": "2",
        "num.partitions": "7",
        "node.id": "5",
    }


def test_a_broker_without_options_listens_on_this_machine_alone() -> None:
    assert serve_settings() == {}
    assert [str(e) for e in BrokerConfig.parse({}).endpoints()] == ["PLAINTEXT://127.0.0.1:9092"]


def test_a_files_listeners_stay_unless_a_host_or_a_port_is_given(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://:1")
    assert serve_settings("--config", str(file))["listeners"] == "PLAINTEXT://:1"
    assert serve_settings("--config", str(file), "--host", "::1")["listeners"] == "PLAINTEXT://[::1]:9092"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--config", "/nowhere"], "/nowhere cannot be read: No such file or directory"),
        (["--set", "log.retention.hour=3"], "unknown setting log.retention.hour; did you mean log.retention.hours?"),
        (["--set", "num.partitions=many"], "num.partitions is many; it must be a whole number"),
        (["--set", "num.partitions"], "--set num.partitions has no value; write --set NAME=VALUE"),
        (["--set", "=5"], "--set =5 has no name; write --set NAME=VALUE"),
        (["--set", " =5"], "--set  =5 has no name; write --set NAME=VALUE"),
        (["--set", "log.dirs=a,b"], "log.dirs names 2 directories"),
        (["--set", "listeners="], "listeners is empty; name one for clients, such as PLAINTEXT://127.0.0.1:9092"),
        (
            [
                *("--set", "listeners=CONTROLLER://127.0.0.1:0"),
                *("--set", "controller.listener.names=CONTROLLER"),
                *("--set", "listener.security.protocol.map=CONTROLLER:PLAINTEXT"),
            ],
            "listeners has only CONTROLLER://127.0.0.1:0, and controller.listener.names keeps that from clients; "
            "add one for clients, such as PLAINTEXT://127.0.0.1:9092",
        ),
    ],
)
def test_a_bad_setting_ends_serve_before_it_starts(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"cordwood: {sentence}")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["sereve"],
        ["serve", "--port", "http"],
        ["consume", "t", "--from", "yesterday"],
        ["consume", "t", "--with", "colour"],
        ["consume", "t", "--max", "0"],
        ["produce", "t", "--key-separator", ""],
        ["topics"],
        ["topics", "create", "t", "--partitions", "-1"],
        ["groups", "list", "--state", "asleep"],
        ["groups", "describe"],
        ["groups", "describe", "g", "--all"],
        ["groups", "describe", ""],
        ["groups", "reset-offsets", "g", "--to", "earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--all-topics", "--to", "earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t:", "--to", "earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t:1,x", "--to", "earliest"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to", "yesterday"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--to", "1", "--shift", "1"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--shift", "1h"],
        ["groups", "reset-offsets", "g", "--topic", "t", "--by-duration", "90"],
    ],
)
def test_what_makes_no_sense_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: cordwood" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["serve", "--node-id", "-1"], "--node-id: -1 is not a whole number from 0 to 2147483647"),
        (["serve", "--node-id", "99999999999"], "--node-id: 99999999999 is not a whole number from 0 to 2147483647"),
        (["serve", "--port", "65536"], "--port: 65536 is not a whole number from 0 to 65535"),
        (["zookeeper", "--port", "-1"], "--port: -1 is not a whole number from 0 to 65535"),
        (["cluster", "up", "--port", "0"], "--port: 0 is not a whole number from 1 to 65535"),
        (["produce", "t", "--partition", "-1"], "--partition: -1 is not a whole number from 0 to 2147483647"),
        (["consume", "t", "--partition", "2147483648"], "2147483648 is not a whole number from 0 to 2147483647"),
        (["consume", "t", "--max", "-1"], "--max: -1 is not a whole number from 1 to 2147483647"),
        (["consume", "t", "--max", "many"], "--max: many is not a whole number from 1 to 2147483647"),
        (["topics", "create", "t", "--partitions", "100001"], "100001 is not a whole number from 1 to 100000"),
        (["topics", "create", "t", "--replication-factor", "10001"], "10001 is not a whole number from 1 to 10000"),
        (["produce", ""], "TOPIC: a topic's name cannot be empty"),
        (["consume", ""], "TOPIC: a topic's name cannot be empty"),
        (["topics", "create", "a", "\udcff"], "TOPIC: it is not a text in UTF-8: \\xff"),
        (["topics", "create", "a", "--config", "a=\udcff"], "--config: it is not a text in UTF-8: a=\\xff"),
        (["topics", "list", "-X", "client.id=\udcff"], "-X: it is not a text in UTF-8: client.id=\\xff"),
        (["topics", "list", "--bootstrap", "\udcff:1"], "--bootstrap: it is not a text in UTF-8: \\xff:1"),
        (["topics", "reassign", "\udcff"], "TOPIC: it is not a text in UTF-8: \\xff"),
        (["produce", "\udcff"], "TOPIC: it is not a text in UTF-8: \\xff"),
        (["produce", "t", "--header", "\udcff=a"], "--header: its name is not a text in UTF-8: \\xff=a"),
        (["topics", "create", "a\nb"], "TOPIC: 'a\\nb' has a character that no topic's name has"),
        (["consume", "a\x1b[31m"], "TOPIC: 'a\\x1b[31m' has a character that no topic's name has"),
        (
            ["consume", "t", "--with", "key,,offset"],
            "--with: an empty text is not a column; there are topic, partition, offset, time, headers, key",
        ),
        (["produce", "t", "--header", "a"], "--header: a has no value; write NAME=VALUE"),
        (["produce", "t", "--header", "=a"], "--header: =a has no name; write NAME=VALUE"),
        (["consume", "\udcff"], "TOPIC: it is not a text in UTF-8: \\xff"),
        (["consume", "t", "--group", "\udcff"], "--group: it is not a text in UTF-8: \\xff"),
        (["groups", "delete", "\udcff"], "GROUP: it is not a text in UTF-8: \\xff"),
        (["groups", "reset-offsets", "g", "--topic", "\udcff"], "--topic: it is not a text in UTF-8: \\xff"),
        (["produce", "t", "--key-separator", ""], "--key-separator: it cannot be empty; leave it out for no keys"),
    ],
)
def test_what_would_make_sense_is_said(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert capsys.readouterr().err.endswith(f"{sentence}\n")


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["serve", "extra"], "usage: cordwood serve "),
        (["serve", "--extra"], "usage: cordwood serve "),
        (["topics", "list", "extra"], "usage: cordwood topics list "),
        (["consume", "t", "--extra"], "usage: cordwood consume "),
    ],
)
def test_a_word_too_many_shows_how_that_command_is_used(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(usage)
    assert err.endswith(f"error: unrecognized arguments: {words[-1]}\n")


@pytest.mark.parametrize("number", [0, 2_147_483_647])
def test_a_number_at_the_edge_of_its_range_is_taken(number: int) -> None:
    assert serve_settings("--node-id", str(number)) == {"node.id": str(number)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "-h"])
    assert ended.value.code == 0
    purpose = COMMANDS[command]
    assert f"{purpose[0].upper()}{purpose[1:]}." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("command", "fact"),
    [
        ("serve", "Without --host, and without listeners in the file, only this machine can connect"),
        ("consume", "Without --group it joins no group and commits nothing"),
    ],
)
def test_help_says_what_is_so(command: str, fact: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "-h"])
    assert fact in " ".join(capsys.readouterr().out.split())


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("cordwood 0.")


def test_a_broker_starts_without_loading_a_client() -> None:
    script = "import sys, cordwood.cli.main as m; m.parser_for('serve'); assert 'confluent_kafka' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position(Where.EARLIEST)),
        ("latest", Position(Where.LATEST)),
        ("0", Position(Where.OFFSET, 0)),
        ("999999999999", Position(Where.OFFSET, 999_999_999_999)),
        ("1700000000000", Position(Where.TIME_MS, 1_700_000_000_000)),
        ("-10", Position(Where.BEFORE_END, 10)),
        ("-1h", Position(Where.TIME_MS, 99 * HOUR_MS)),
        ("2d", Position(Where.TIME_MS, 52 * HOUR_MS)),
        ("2d12h", Position(Where.TIME_MS, 40 * HOUR_MS)),
        ("PT1H", Position(Where.TIME_MS, 99 * HOUR_MS)),
        ("1970-01-02T00:00:00+00:00", Position(Where.TIME_MS, 24 * HOUR_MS)),
        ("1960-01-01T00:00Z", Position(Where.TIME_MS, 0)),
        ("999999999d", Position(Where.TIME_MS, 0)),
        ("1970-01-01T01:00Z", Position(Where.TIME_MS, HOUR_MS)),
    ],
)
def test_positions(text: str, position: Position) -> None:
    assert parse_position(text, now_ms=100 * HOUR_MS) == position


@pytest.mark.parametrize("text", ["", "yesterday", "1w", "--1", "1.5", "２", "9" * 30])
def test_what_is_no_position(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_position(text, now_ms=0)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("90s", 90_000),
        ("1h30m", 90 * 60_000),
        ("1d2h3m4s", 26 * HOUR_MS + 184_000),
        ("PT1H30M", 90 * 60_000),
        ("P1DT2H3M4S", 26 * HOUR_MS + 184_000),
        ("P2D", 48 * HOUR_MS),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1M", "1H", "30m1h", "-1h", "1h 30m", "90"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        parse_duration_ms(text)


@pytest.mark.parametrize(("time_ms", "text"), [(0, "1970-01-01T00:00:00.000Z"), (1 << 62, f"{1 << 62} ms")])
def test_any_timestamp_can_be_shown(time_ms: int, text: str) -> None:
    assert time_text(time_ms) == text


def test_numbers_stand_to_the_right_and_words_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "count", "change", "none"], [["a", "5", "-12", "-"], ["bb", "-", "3", "-"]])
    assert capsys.readouterr().out.splitlines() == [
        "name  count  change  none",
        "a         5     -12  -",
        "bb        -       3  -",
    ]


def test_what_would_move_the_cursor_is_shown_in_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["group"], [["a\x1b[2J\n"], ["grüße ✓"]])
    assert capsys.readouterr().out.splitlines() == ["group", "a\\x1b[2J\\n", "grüße ✓"]


def test_a_moving_line_is_no_longer_than_the_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    assert one_line("123456789") == "123456789"
    assert one_line("1234567890") == "12345678…"


def test_progress_counts_in_words() -> None:
    progress = Progress("sent")
    assert progress.text() == "sent 0 records, 0 bytes"
    progress.add(1)
    assert progress.text() == "sent 1 record, 1 byte"
    progress = Progress("sent")
    progress.add(1500)
    assert progress.text() == "sent 1 record, 1.5 KB"
