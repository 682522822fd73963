"""``cordwood serve`` as a process: how it starts, what it refuses, how it ends."""

import signal
import socket
import sqlite3
from pathlib import Path

import pytest

from cordwood.run.zookeeper_server import free_ports
from support.process import BrokerProcess


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_when_ready_and_a_clean_end_by_signal(tmp_path: Path, number: signal.Signals) -> None:
    with BrokerProcess(tmp_path) as broker:
        assert broker.stop(number) == 0
        assert len(broker.output) == 1
        assert broker.log == []


def refusal(broker: BrokerProcess) -> str:
    """The one sentence of a broker that will not start."""
    try:
        broker.launch()
        assert broker.wait() == 1
    finally:
        broker.end()
    assert broker.output == []
    assert "Traceback" not in broker.log_text()
    return broker.log[-1]


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        sentence = refusal(BrokerProcess(tmp_path))
        assert "in use by another broker" in sentence
        assert str(broker.process.pid) in sentence
        assert broker.running


def test_the_lock_of_a_killed_broker_is_free(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        broker.kill()
    with BrokerProcess(tmp_path) as broker:
        assert broker.running


def test_a_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        broker.stop()
    assert "--node-id 1" in refusal(BrokerProcess(tmp_path, arguments=["--node-id", "2"]))


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with BrokerProcess(tmp_path / name) as broker:
            broker.stop()
    (tmp_path / "two" / "meta.properties").replace(tmp_path / "one" / "meta.properties")
    assert "belongs to cluster" in refusal(BrokerProcess(tmp_path / "one"))


def test_logs_without_their_metadata_are_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        broker.stop()
    for file in tmp_path.glob("metadata.sqlite*"):
        file.unlink()
    assert "its metadata is missing" in refusal(BrokerProcess(tmp_path))


def test_metadata_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.sqlite").write_bytes(b"this is no database" * 100)
    assert "metadata.sqlite" in refusal(BrokerProcess(tmp_path))


def test_metadata_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        broker.stop()
    database = sqlite3.connect(tmp_path / "metadata.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()
    assert "format version 99" in refusal(BrokerProcess(tmp_path))


@pytest.mark.parametrize(
    ("line", "instead", "words"),
    [
        ("version=1", "version=2", "meta.properties has version 2, and this broker knows 0 and 1; use a newer one"),
        ("version=1", "", "meta.properties has no version; restore it"),
        ("node.id=1", "", "meta.properties has no node.id; restore it"),
        ("node.id=1", "node.id=one", "meta.properties is damaged"),
    ],
)
def test_an_identity_that_can_not_be_read_is_refused(tmp_path: Path, line: str, instead: str, words: str) -> None:
    identity = "cluster.id=AAAAAAAAAAAAAAAAAAAAAA\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=1\nversion=1\n"
    (tmp_path / "meta.properties").write_text(identity.replace(line, instead))
    assert words in refusal(BrokerProcess(tmp_path))


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "file is a file; choose another --data" in refusal(BrokerProcess(tmp_path / "file"))
    assert "cannot be made: Not a directory; choose another --data" in refusal(BrokerProcess(tmp_path / "file" / "x"))


def test_whoever_waits_for_zookeeper_is_told_so(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    broker = BrokerProcess(tmp_path, arguments=["--zookeeper", nobody, "--set", "zookeeper.connection.timeout.ms=2000"])
    assert "start one with `cordwood zookeeper`, or correct --zookeeper" in refusal(broker)
    assert f"ZooKeeper at {nobody} does not answer yet; waiting for it" in broker.log[0]


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in refusal(BrokerProcess(tmp_path, port=port))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("log.retention.houre=1", "did you mean log.retention.hours?"),
        ("num.partitions=many", "num.partitions is many; it must be a whole number"),
        ("num.partitions=0", "num.partitions is 0; it must be at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_right_one(tmp_path: Path, setting: str, words: str) -> None:
    assert words in refusal(BrokerProcess(tmp_path, arguments=["--set", setting]))


def test_assertions_can_not_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    assert "python -O" in refusal(BrokerProcess(tmp_path))
