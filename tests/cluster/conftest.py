"""Two clusters for all tests: a plain one on a ZooKeeper ensemble, and one whose wires can be cut. Who breaks, mends.

To try the tests themselves on Apache Kafka: CLUSTER_TESTS_KAFKA=1. It has no ZooKeeper, so tests that touch ZooKeeper
or the wires are left out there.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.cordwood_nodes import cordwood_nodes
from cluster.harness import Cluster
from cluster.network import Network
from cluster.recorder import Recorder
from cordwood.run.zookeeper_server import Ensemble, ZooKeeperServer

TRIED_ON_KAFKA = bool(os.environ.get("CLUSTER_TESTS_KAFKA"))


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses a cluster runs where it is, one after the other."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for cluster in {"plain_cluster", "wired_cluster"} & {*getattr(item, "fixturenames", ())}:
                item.add_marker(pytest.mark.xdist_group(cluster))


@pytest.fixture(scope="session")
def ensemble(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three ZooKeeper servers."""
    if TRIED_ON_KAFKA:
        pytest.skip("Apache Kafka has no ZooKeeper")
    with Ensemble(tmp_path_factory.mktemp("zookeeper"), force_sync=False) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def plain_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers without anything in between."""
    directory = tmp_path_factory.mktemp("brokers")
    if TRIED_ON_KAFKA:
        from cluster.kafka_nodes import kafka_nodes

        cluster = Cluster(kafka_nodes(directory))
    else:
        ensemble: Ensemble = request.getfixturevalue("ensemble")
        keepers = [server.port for server in ensemble.servers]
        cluster = Cluster(cordwood_nodes(directory, keepers=keepers, chroot="/plain"))
    yield from _running(cluster)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


@pytest.fixture(scope="module")
def wired_cluster(java: None, tmp_path_factory: pytest.TempPathFactory, network: Network) -> Iterator[Cluster]:
    """Three brokers whose wires can be cut, on a ZooKeeper of their own."""
    if TRIED_ON_KAFKA:
        pytest.skip("Apache Kafka's wires are not cut here")
    directory = tmp_path_factory.mktemp("wired")
    with ZooKeeperServer(directory / "zookeeper", force_sync=False) as keeper:
        nodes = cordwood_nodes(directory, keepers=[keeper.port], chroot="/wired", network=network)
        yield from _running(Cluster(nodes))


def _running(cluster: Cluster) -> Iterator[Cluster]:
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "history.jsonl")
    yield recorder
    recorder.close()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, legal as a topic's."""
    words = request.node.name.removeprefix("test_")
    return "".join(letter if letter.isalnum() else "-" for letter in words).strip("-")[:100]
