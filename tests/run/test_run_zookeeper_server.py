"""ZooKeeper as a process: ``cordwood zookeeper``, and what becomes of servers when their maker goes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cordwood.errors import ConfigError
from cordwood.ports import Create
from cordwood.run.data_directory import DirectoryLock
from cordwood.run.zookeeper_server import ZooKeeperServer
from support.waiting import eventually
from support.zookeeper import open_store


@contextmanager
def command(data: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cordwood", "zookeeper", "--port", "0", "--data", str(data), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready(process: "subprocess.Popen[str]") -> str:
    """The connect string that it prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ZooKeeper is ready at "), line
    return line.removeprefix("ZooKeeper is ready at ").split(", data in ")[0]


def servers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


def are_gone(servers: Sequence[psutil.Process]) -> bool:
    return not any(server.is_running() and server.status() != psutil.STATUS_ZOMBIE for server in servers)


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    with command(tmp_path / "zk") as process:
        store = open_store(ready(process) + "/cluster")
        store.multi([Create("/a", b"")])
        store.close()
        servers = servers_of(process)
        assert len(servers) == 1
        process.send_signal(number)
        assert process.wait(20) == 0
        assert are_gone(servers)


def test_a_directory_in_use_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path), "ZooKeeper")
    with pytest.raises(ConfigError, match=f"in use by another ZooKeeper .process {os.getpid()}."):
        ZooKeeperServer(tmp_path, number=2).launch()
    assert not (tmp_path / "data" / "myid").exists()
    lock.release()


@pytest.mark.usefixtures("java")
def test_an_ensemble_goes_with_its_maker(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells a child that its parent is gone")
    with command(tmp_path / "zk", "--ensemble", "3") as process:
        assert len(ready(process).split(",")) == 3
        servers = servers_of(process)
        assert len(servers) == 3
        process.kill()
        eventually(lambda: are_gone(servers), what="the servers are gone")


@pytest.mark.usefixtures("java")
def test_lines_of_an_ensemble_say_whose_they_are(tmp_path: Path) -> None:
    with command(tmp_path / "zk", "--ensemble", "3") as process:
        ready(process)
        servers = servers_of(process)
        servers[0].kill()
        assert process.stderr is not None
        line = next(line for line in process.stderr if "has ended" in line)
        assert line.startswith("zookeeper-")


def test_what_was_acknowledged_is_there_after_a_kill(own_zookeeper: ZooKeeperServer) -> None:
    store = open_store(own_zookeeper.connect)
    store.multi([Create("/a", b"1")])
    own_zookeeper.kill()
    store.close()
    own_zookeeper.start()
    store = open_store(own_zookeeper.connect)
    assert [node.path for node in store.load()] == ["/a"]
    store.close()


def test_one_directory_and_one_port_have_one_server(own_zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="in use"):
        ZooKeeperServer(own_zookeeper.data, on_line=print).start()
    with pytest.raises(ConfigError, match="choose another --port"):
        ZooKeeperServer(tmp_path / "other", port=own_zookeeper.port, on_line=print).start()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"JAVA_HOME": "/nowhere"}, "ZooKeeper needs Java 17 or newer, and there is none: install it"),
        ({"JAVA_HOME": "", "PATH": "/nowhere"}, "ZooKeeper needs Java 17 or newer, and there is none: install it"),
    ],
)
def test_without_java_one_sentence_says_what_to_do(
    tmp_path: Path, environment: Mapping[str, str], sentence: str
) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "cordwood", "zookeeper", "--data", str(tmp_path)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith(f"cordwood: {sentence}")
    assert outcome.stderr.count("\n") == 1
