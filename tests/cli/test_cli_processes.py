"""Commands as processes of their own: signals, pipes, the whole demo."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from cordwood import Broker
from cordwood.cli.demo import _broker as demo_broker
from cordwood.run.data_directory import DirectoryLock
from support.waiting import eventually

CORDWOOD = [sys.executable, "-m", "cordwood"]


def test_serve_says_when_it_is_ready_and_stops_cleanly(tmp_path: Path) -> None:
    command = [*CORDWOOD, "serve", "--port", "0", "--data", str(tmp_path), "--set", "process.roles=broker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        second = subprocess.run(
            [*CORDWOOD, "serve", "--port", "0", "--data", str(tmp_path)], capture_output=True, text=True
        )
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert re.fullmatch(
        rf"broker 1 is ready at 127\.0\.0\.1:\d+, data in {re.escape(str(tmp_path))} \(\d+\.\d\d s\)\n", ready
    )
    assert (process.returncode, out) == (0, "")
    assert "process.roles: no effect, Kafka's own controllers are not part of this broker" in err
    assert second.returncode == 1
    assert second.stderr.startswith(f"cordwood: the data directory {tmp_path} is in use by another broker")
    assert second.stderr.count("\n") == 1


def test_serve_names_all_listeners_that_clients_can_use(tmp_path: Path) -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0,OUTSIDE://127.0.0.2:0",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    command = [*CORDWOOD, "serve", "--data", str(tmp_path)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert re.match(
        rf"broker 1 is ready at 127\.0\.0\.1:\d+,127\.0\.0\.2:\d+, data in {re.escape(str(tmp_path))} ", ready
    )


def _with_records(broker: Broker, topic: str, count: int) -> None:
    lines = "".join(f"{n}\n" for n in range(count))
    subprocess.run([*CORDWOOD, "produce", topic, "--bootstrap", broker.bootstrap], input=lines, text=True, check=True)


def test_ctrl_c_is_the_usual_way_to_end_a_consumer(broker: Broker) -> None:
    _with_records(broker, "interrupted", 1)
    command = [*CORDWOOD, "consume", "interrupted", "--bootstrap", broker.bootstrap]
    # Where the tests run in the background they ignore Ctrl-C, and so would what they start.
    listening = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGINT, listening)
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def _ends_at(process: "subprocess.Popen[str]", number: signal.Signals) -> bool:
    process.send_signal(number)
    return process.poll() is not None


@pytest.mark.parametrize("group", [[], ["--group", "left"]])
def test_ctrl_c_ends_a_consumer_whose_broker_is_gone(tmp_path: Path, group: list[str]) -> None:
    """The first is a wish. A member would say goodbye to somebody who is not there: the second ends that, too."""
    serving = [*CORDWOOD, "serve", "--port", "0", "--data", str(tmp_path)]
    listening = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(serving, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as broker:
        assert broker.stdout is not None
        bootstrap = broker.stdout.readline().split(" ready at ")[1].split(",")[0]
        produce = [*CORDWOOD, "produce", "left", "--bootstrap", bootstrap]
        subprocess.run(produce, input=b"a\n", check=True, stderr=subprocess.DEVNULL)
        command = [*CORDWOOD, "consume", "left", *group, "--bootstrap", bootstrap]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            signal.signal(signal.SIGINT, listening)
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "a\n"
            broker.kill()
            assert process.stderr.readline() == "cordwood: the broker is gone; waiting for it to come back\n"
            eventually(lambda: _ends_at(process, signal.SIGINT), what="its end")
            assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, -signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_member_that_is_stopped_commits_what_it_printed_and_leaves(broker: Broker, number: signal.Signals) -> None:
    topic = f"stopped-by-{number.name}"
    _with_records(broker, topic, 10)
    command = [*CORDWOOD, "consume", topic, "--group", topic, "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert {process.stdout.readline() for _ in range(10)} == {f"{n}\n" for n in range(10)}
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    described = subprocess.run(
        [*CORDWOOD, "groups", "describe", topic, "--json", "--bootstrap", broker.bootstrap],
        capture_output=True,
        text=True,
        check=True,
    )
    group = json.loads(described.stdout)
    assert (group["state"], group["members"], group["lag"]) == ("empty", [], 0)
    assert sum(row["committed"] for row in group["partitions"]) == 10


def test_a_reader_that_goes_away_ends_a_consumer_without_a_word(broker: Broker) -> None:
    _with_records(broker, "abandoned", 20_000)
    command = [*CORDWOOD, "consume", "abandoned", "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=30) == 128 + signal.SIGPIPE
        assert process.stderr.read() == ""


@pytest.mark.parametrize("words", [["--version"], ["-h"], ["topics", "list"]])
def test_a_reader_that_is_gone_is_met_without_a_word(broker: Broker, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "CORDWOOD_BOOTSTRAP": broker.bootstrap, "PYTHONUNBUFFERED": ""}
    _with_records(broker, "unread", 1)
    outcome = subprocess.run([*CORDWOOD, *words], stdout=writing, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writing)
    assert (outcome.returncode, outcome.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
@pytest.mark.parametrize("words", [["topics", "list"], ["consume", "spilled", "--until-end"]])
def test_output_that_can_not_be_written_is_one_sentence(broker: Broker, words: list[str]) -> None:
    _with_records(broker, "spilled", 1)
    with open("/dev/full", "w") as full:
        outcome = subprocess.run(
            [*CORDWOOD, *words, "--bootstrap", broker.bootstrap], stdout=full, stderr=subprocess.PIPE, text=True
        )
    expected = "cordwood: the output could not be written: No space left on device\n"
    assert (outcome.returncode, outcome.stderr) == (1, expected)


def test_who_types_records_is_told_how_to_end(broker: Broker) -> None:
    keyboard, terminal = os.openpty()
    command = [*CORDWOOD, "produce", "typed", "--bootstrap", broker.bootstrap]
    with subprocess.Popen(command, stdin=terminal, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "Each line is a record. Ctrl-D ends it.\n"
        os.write(keyboard, b"a\nb\n\x04")
        assert process.stderr.read().startswith("sent 2 records, 2 bytes")  # and how fast, where it took a second
    os.close(keyboard)
    os.close(terminal)
    assert process.returncode == 0


def test_there_must_be_a_standard_input_to_produce_from(broker: Broker) -> None:
    command = shlex.join([*CORDWOOD, "produce", "unfed", "--bootstrap", broker.bootstrap])
    outcome = subprocess.run(f"{command} <&-", shell=True, capture_output=True, text=True)
    expected = "cordwood: there is no standard input to take lines from; write `cordwood produce unfed < FILE`\n"
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (1, "", expected)


@pytest.mark.parametrize("words", [["topics", "list"], ["consume", "unheard", "--until-end"], ["produce", "unheard"]])
def test_a_command_needs_nobody_to_write_to(broker: Broker, words: list[str]) -> None:
    _with_records(broker, "unheard", 1)
    command = shlex.join([*CORDWOOD, *words, "--bootstrap", broker.bootstrap])
    outcome = subprocess.run(f"{command} >&- 2>&-", shell=True, capture_output=True, input=b"")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"", b"")


def test_a_demo_that_is_interrupted_waits_for_its_broker(tmp_path: Path) -> None:
    """Else it takes the files away from a broker that has not closed them yet."""
    with pytest.raises(KeyboardInterrupt):
        interrupt_demo_of_a_slow_broker(tmp_path)
    DirectoryLock(str(tmp_path)).release()  # which nobody has any more


def interrupt_demo_of_a_slow_broker(directory: Path) -> None:
    with demo_broker(str(directory)):
        process = int((directory / ".lock").read_text())
        os.kill(process, signal.SIGSTOP)
        Timer(0.5, os.kill, (process, signal.SIGCONT)).start()  # later than the standard library would wait
        raise KeyboardInterrupt


def test_a_plot_of_a_job_that_is_left_out_is_refused() -> None:
    outcome = subprocess.run([*CORDWOOD, "demo", "--no-spark", "--plot", "x.png"], capture_output=True, text=True)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == "cordwood: --plot draws the job on Spark; leave out --no-spark\n"


def like_anybody_else() -> list[str]:
    """What a command starts with so that permissions count for it, which root may otherwise ignore."""
    if os.geteuid() != 0:
        return []
    if (setpriv := shutil.which("setpriv")) is None:
        pytest.skip("root may use everything, and there is no setpriv to change that")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--"]


@pytest.mark.parametrize("words", [["pipeline", "init"], ["pipeline", "run"], ["pipeline", "status"]])
def test_a_directory_that_may_not_be_used_is_named(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "locked" / "inner").mkdir(parents=True)
    (tmp_path / "locked").chmod(0)
    command = [*like_anybody_else(), *CORDWOOD, *words, str(tmp_path / "locked" / "inner")]
    outcome = subprocess.run(command, capture_output=True, text=True)
    (tmp_path / "locked").chmod(0o700)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith(f"cordwood: {tmp_path / 'locked'}")
    assert outcome.stderr.endswith("cannot be used: Permission denied\n")


def test_the_demo_shows_that_nothing_is_lost() -> None:
    command = [*CORDWOOD, "demo", "--orders", "2000"]
    without_java = {**os.environ, "JAVA_HOME": "/nowhere"}
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, env=without_java)
    assert "The second half is a job on Spark. Spark needs Java 17 or newer, and there is none: " in outcome.stdout
    assert "Every order came back once" in outcome.stdout
    assert outcome.stderr == ""
    rows = [line.split() for line in outcome.stdout.splitlines() if re.match(r"\s+[0-3]  the ", line)]
    assert {row[0] for row in rows} == {"0", "1", "2", "3"}
    assert sum(int(row[3]) for row in rows) == 2000
