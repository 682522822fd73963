"""A whole broker: what it leaves behind when it stops, and what it tells clients about itself."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cordwood.errors import ConfigError
from cordwood.log.directory import CLEAN_STOP
from cordwood.testing import Broker
from cordwood.wire.messages import MetadataRequest, MetadataResponse
from support.raw import RawClient


def test_a_clean_stop_leaves_the_mark_that_spares_recovery(tmp_path: Path) -> None:
    with Broker(data=str(tmp_path)):
        assert not (tmp_path / CLEAN_STOP).exists(), "while it runs, a crash must look like one"
    assert json.loads((tmp_path / CLEAN_STOP).read_text())["version"] == 0


def test_a_broker_has_a_temporary_directory_only_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broker = Broker()
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        with broker:
            assert [str(path) for path in tmp_path.iterdir()] == [broker.data]
        assert not list(tmp_path.iterdir())


def test_a_broker_that_can_not_start_leaves_no_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ConfigError):
        Broker(settings={"no.such.setting": 1}).start()
    assert not list(tmp_path.iterdir())


def test_a_data_directory_may_be_a_path(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        assert broker.data == str(tmp_path)


CHILD_LEAVES = """
import os, sys
from cordwood.testing import Broker

with Broker() as broker:
    if os.fork() == 0:
        sys.exit()
    os.wait()
    assert os.path.isdir(broker.data)
"""


def test_a_forked_child_that_leaves_takes_no_files_along(tmp_path: Path) -> None:
    run_with_temporary_files_in(tmp_path, CHILD_LEAVES)


def test_a_broker_that_nobody_stops_leaves_no_temporary_directory(tmp_path: Path) -> None:
    run_with_temporary_files_in(tmp_path, "from cordwood.testing import Broker; Broker().start()")
    assert not list(tmp_path.iterdir())


def run_with_temporary_files_in(directory: Path, script: str) -> None:
    """Run it in a process of its own, which must end well and without a word."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]  # newer Pythons warn of forks
    environment = {**os.environ, "TMPDIR": str(directory)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["log.dirs", "log.dir", "node.id", "broker.id"])
def test_settings_that_are_arguments_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is given to Broker.. as (data|node_id)"):
        Broker(settings={name: 7})


def test_clients_of_each_listener_are_told_its_own_advertised_address() -> None:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised.listeners": "INSIDE://inside.example:1111,OUTSIDE://outside.example:2222",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    }
    with Broker(settings=settings) as broker:
        told = {name: advertised(address) for name, address in broker.addresses.items()}
    assert told == {"INSIDE": ("inside.example", 1111), "OUTSIDE": ("outside.example", 2222)}


def test_without_advertised_listeners_clients_are_told_what_they_dialled() -> None:
    with Broker(host="0.0.0.0") as broker:
        assert advertised(f"127.0.0.1:{broker.port}") == ("127.0.0.1", broker.port)
        assert advertised(f"127.0.0.2:{broker.port}") == ("127.0.0.2", broker.port)


def advertised(bootstrap: str) -> tuple[str, int]:
    with RawClient(bootstrap) as client:
        (broker,) = client.ask(MetadataRequest(topics=[]), MetadataResponse).brokers
    return broker.host, broker.port


def test_a_broker_of_a_cluster_hears_of_its_own_changes_among_those_of_others(zookeeper: str) -> None:
    """Else a change of another that came later could be heard of before: the broker itself makes sure of it."""
    with Broker(settings={"zookeeper.connect": zookeeper}) as broker, RawClient(broker.bootstrap) as client:
        assert len(client.ask(MetadataRequest(topics=[]), MetadataResponse).brokers) == 1
