"""A real ZooKeeper for tests: one server for all tests of a process, each test below a chroot of its own."""

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cordwood.ports import MetadataChange, Node, SessionState
from cordwood.run.zookeeper_server import Ensemble, ZooKeeperServer, missing_for_zookeeper
from cordwood.run.zookeeper_store import Credentials, ZooKeeperStore
from support.missing import missing

_chroots = itertools.count()


@pytest.fixture(scope="session")
def java() -> None:
    """Without it there is no ZooKeeper."""
    if (sentence := missing_for_zookeeper()) is not None:
        missing(sentence)


@pytest.fixture(scope="session")
def zookeeper_server(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """The server itself. It is shared: do not stop it, and use ``zookeeper``'s chroot."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), force_sync=False, on_line=print) as server:
        yield server


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeperServer) -> str:
    """A connect string with a chroot that nobody has used, and that is not there yet."""
    return f"{zookeeper_server.connect}/test-{next(_chroots)}/cluster"


@pytest.fixture
def own_zookeeper(java: None, tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server of the test's own, to be stopped, killed and paused."""
    with ZooKeeperServer(tmp_path / "zookeeper", force_sync=False, on_line=print) as server:
        yield server


@pytest.fixture
def zookeeper_ensemble(java: None, tmp_path: Path) -> Iterator[Ensemble]:
    """Three servers of the test's own, for faults."""
    with Ensemble(tmp_path / "zookeeper", force_sync=False, on_line=_print_numbered) as ensemble:
        yield ensemble


def open_store(
    connect: str,
    *,
    session_timeout_ms: int = 6_000,
    connection_timeout_ms: int = 20_000,
    credentials: Credentials | None = None,
    deliver: Callable[[Sequence[MetadataChange]], None] = lambda changes: None,
    reloaded: Callable[[Sequence[Node]], None] = lambda nodes: None,
    session_changed: Callable[[SessionState], None] = lambda state: None,
) -> ZooKeeperStore:
    return ZooKeeperStore(
        connect,
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=connection_timeout_ms,
        credentials=credentials,
        logger=logging.getLogger("test"),
        deliver=deliver,
        reloaded=reloaded,
        session_changed=session_changed,
    )


def _print_numbered(number: int, line: str) -> None:
    print(f"zookeeper-{number} | {line}")
