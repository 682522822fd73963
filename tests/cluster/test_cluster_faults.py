"""Brokers die, hang, come back, come back with nothing: no acknowledged record is lost, none is stored twice.

Each test lets two writers and a group of readers work while the fault happens, and has them make progress before,
during and after it. Then the checker looks at what they saw, and at every replica's disk.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from cluster.harness import Cluster, Topic, at_work
from cluster.recorder import Recorder
from cordwood.errors import Error
from cordwood.record.build import build_values
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import ProduceRequest, ProduceRequestPartition, ProduceRequestTopic, ProduceResponse
from support.raw import RawClient

FAILOVER_S = 20.0

Target = Callable[[Cluster, Topic], int]


@pytest.fixture
def cluster(plain_cluster: Cluster) -> Iterator[Cluster]:
    """All of it is up before a test and after it."""
    plain_cluster.heal()
    yield plain_cluster
    plain_cluster.heal()


def leader(cluster: Cluster, topic: Topic) -> int:
    return cluster.leader(topic)


def follower(cluster: Cluster, topic: Topic) -> int:
    return cluster.followers(topic)[0]


def controller(cluster: Cluster, topic: Topic) -> int:
    return cluster.controller()


@pytest.mark.parametrize("victim", [leader, follower, controller])
def test_a_broker_is_killed(cluster: Cluster, recorder: Recorder, name: str, victim: Target) -> None:
    with at_work(cluster, recorder, name) as (topic, workload):
        node = victim(cluster, topic)
        cluster.kill(node)
        workload.progress(within_s=FAILOVER_S)
        cluster.restart(node)


def test_a_leader_hangs_and_comes_back_as_a_zombie(cluster: Cluster, recorder: Recorder, name: str) -> None:
    with at_work(cluster, recorder, name) as (topic, workload):
        zombie = cluster.leader(topic)
        cluster.freeze(zombie)
        workload.progress(within_s=FAILOVER_S)
        assert cluster.leader(topic) != zombie
        cluster.thaw(zombie)


def test_what_waits_for_a_zombie_is_not_acknowledged(cluster: Cluster, recorder: Recorder, name: str) -> None:
    """The requests lie in its sockets when it wakes up, and it has heard nothing yet of what it is."""
    with at_work(cluster, recorder, name) as (topic, workload):
        zombie = cluster.leader(topic)
        data = ProduceRequestPartition(index=0, records=build_values([b"late"], timestamp=0))
        request = ProduceRequest(
            acks=1, timeout_ms=1000, topic_data=[ProduceRequestTopic(name=topic.name, partition_data=[data])]
        )
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(cluster.nodes[zombie].bootstrap)) for _ in range(20)]
            cluster.freeze(zombie)
            for client in clients:
                client.send(request, version=9)
            workload.progress(within_s=FAILOVER_S)
            cluster.thaw(zombie)
            for client in clients:
                answer = read_response(ProduceResponse, 9, memoryview(client.receive_frame()))
                assert answer.responses[0].partition_responses[0].error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_all_brokers_are_restarted_one_after_the_other(cluster: Cluster, recorder: Recorder, name: str) -> None:
    with at_work(cluster, recorder, name) as (topic, workload):
        for node in sorted(cluster.nodes):
            assert cluster.nodes[node].stop() == 0
            workload.progress(within_s=FAILOVER_S)
            cluster.restart(node)
            cluster.wait_in_sync(topic)


def test_a_broker_comes_back_with_an_empty_disk(cluster: Cluster, recorder: Recorder, name: str) -> None:
    with at_work(cluster, recorder, name) as (topic, workload):
        node = cluster.leader(topic)
        cluster.kill(node)
        cluster.wipe(node)
        workload.progress(within_s=FAILOVER_S)
        cluster.restart(node)


def test_all_brokers_are_killed_at_once(cluster: Cluster, recorder: Recorder, name: str) -> None:
    with at_work(cluster, recorder, name) as (_, workload):
        for node in cluster.nodes:
            cluster.kill(node)
        for node in cluster.nodes:
            cluster.restart(node)
        workload.progress(within_s=2 * FAILOVER_S)
