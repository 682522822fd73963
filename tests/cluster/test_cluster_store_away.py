"""Commands and clients that want something changed while ZooKeeper is away."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from cluster.cordwood_nodes import SESSION_TIMEOUT_MS
from cluster.harness import Cluster, Topic
from cordwood.errors import Error
from cordwood.run.zookeeper_server import Ensemble
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import CreateTopicsRequest, CreateTopicsRequestTopic, CreateTopicsResponse
from support.raw import RawClient
from support.waiting import eventually

OUTAGE_S = SESSION_TIMEOUT_MS / 1000 + 1
"""Long enough to end every session."""


@pytest.fixture
def cluster(plain_cluster: Cluster, ensemble: Ensemble) -> Iterator[Cluster]:
    yield plain_cluster
    gone = [server for server in ensemble.servers if not server.running]
    for server in gone:
        server.launch()
    for server in ensemble.servers:
        server.resume()
    for server in gone:
        server.wait_until_serving()
    plain_cluster.heal()


class Command:
    """A command that runs while the test goes on."""

    def __init__(self, cluster: Cluster, *words: str) -> None:
        self._command = [sys.executable, "-m", "cordwood", *words, "--bootstrap", cluster.bootstrap]
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def waits(self) -> bool:
        """Does it still want something after an outage of some length?"""
        try:
            self._process.wait(OUTAGE_S)
        except subprocess.TimeoutExpired:
            return True
        return False

    def end(self) -> str:
        """What it printed; its status must be zero."""
        out, errors = self._process.communicate(timeout=100)
        assert self._process.returncode == 0, errors
        return out

    def end_after_all(self) -> None:
        """On a slow machine servers may need longer for an election than it has patience: then it says what to do."""
        _, errors = self._process.communicate(timeout=100)
        while self._process.returncode:
            assert "run this again when the cluster is well" in errors
            self._start()
            _, errors = self._process.communicate(timeout=100)


def brokers_notice(cluster: Cluster, before: dict[int, int]) -> None:
    eventually(
        lambda: all(losses(cluster)[node] > before[node] for node in cluster.nodes),
        what="every broker's loss of ZooKeeper",
    )


def losses(cluster: Cluster) -> dict[int, int]:
    return {number: node.all_words().count("ZooKeeper is lost") for number, node in cluster.nodes.items()}


def replicas(cluster: Cluster, topic: Topic) -> set[int]:
    return set(cluster.states(topic)[0].replica_nodes)


def test_a_command_waits_for_zookeeper_and_a_client_is_told_to_try_again(
    cluster: Cluster, ensemble: Ensemble, name: str
) -> None:
    before = losses(cluster)
    ensemble.kill()
    brokers_notice(cluster, before)
    in_vain = CreateTopicsRequestTopic(name=f"{name}-in-vain", num_partitions=1, replication_factor=1)
    with RawClient(next(iter(cluster.nodes.values())).bootstrap) as client:  # no other, which may ask elsewhere
        client.send(CreateTopicsRequest(topics=[in_vain]), version=7)
        command = Command(cluster, "topics", "create", name, "--partitions", "3", "--replication-factor", "3")
        (answer,) = read_response(CreateTopicsResponse, 7, memoryview(client.receive_frame())).topics
    assert answer.error_code == Error.NOT_CONTROLLER
    assert answer.error_message is not None
    assert answer.error_message.startswith("The metadata store is away: ")
    assert answer.error_message.endswith("Try again.")
    ensemble.start()
    assert command.end() == f"created {name}\n"
    cluster.wait_for_brokers()
    cluster.wait_in_sync(Topic(name, 3))
    assert f"{name}-in-vain" not in cluster.admin().list_topics(timeout=10).topics


def test_a_throttled_move_is_begun_and_ended_although_zookeeper_hung(
    cluster: Cluster, ensemble: Ensemble, name: str
) -> None:
    topic = cluster.create(name, 1, replicas=2)
    before = replicas(cluster, topic)
    (elsewhere,) = set(cluster.nodes) - before
    goal = {elsewhere, min(before)}
    for server in ensemble.servers:
        server.pause()
    where = ",".join(map(str, sorted(goal)))
    command = Command(cluster, "topics", "reassign", name, "--to", where, "--throttle", "100000000")
    assert command.waits()
    for server in ensemble.servers:
        server.resume()
    command.end_after_all()
    eventually(lambda: replicas(cluster, topic) == goal, what="the new replicas")
    described = Command(cluster, "topics", "describe", name).end()
    assert ".throttled.replicas=" not in described
