"""Wires are cut, both ways and one way: whoever is cut off acknowledges nothing that others do not have."""

from collections.abc import Callable, Iterator

import pytest

from cluster.harness import SETTLE_S, Cluster, at_work
from cluster.network import KEEPER, Network, Node
from cluster.recorder import Recorder
from support.waiting import eventually

FAILOVER_S = 30.0

Cut = Callable[[Network, Node, Node], None]


@pytest.fixture
def cluster(wired_cluster: Cluster, network: Network) -> Iterator[Cluster]:
    """All of it is up and connected before a test and after it."""
    yield wired_cluster
    network.mend()
    wired_cluster.heal()


def both_ways(network: Network, one: Node, other: Node) -> None:
    network.cut(one, other)


def one_way(network: Network, one: Node, other: Node) -> None:
    network.cut_one_way(one, other)


def the_other_way(network: Network, one: Node, other: Node) -> None:
    network.cut_one_way(other, one)


WAYS = [both_ways, one_way, the_other_way]


@pytest.mark.parametrize("cut", WAYS)
def test_a_leader_and_a_follower_lose_each_other(
    cluster: Cluster, network: Network, recorder: Recorder, name: str, cut: Cut
) -> None:
    """The leader goes on with the other follower."""
    with at_work(cluster, recorder, name) as (topic, workload):
        lost: list[tuple[int, int]] = []

        def is_out() -> bool:
            pair = cluster.leader(topic), cluster.followers(topic)[0]
            if [pair] != lost:  # where the machine stood still, sessions may have ended, and another leads
                network.mend()
                cut(network, *pair)
                lost[:] = [pair]
            return cluster.is_out_of_sync(topic, pair[1])

        eventually(is_out, within_s=SETTLE_S, what=f"that a follower is out of sync with {topic.name}")
        workload.progress(within_s=FAILOVER_S)
        network.mend()


@pytest.mark.parametrize("cut", WAYS)
def test_a_leader_loses_zookeeper(cluster: Cluster, network: Network, recorder: Recorder, name: str, cut: Cut) -> None:
    """Its session ends, and others lead."""
    with at_work(cluster, recorder, name) as (topic, workload):
        leader = cluster.leader(topic)
        cut(network, leader, KEEPER)
        cluster.wait_for_other_leader(topic, leader)
        workload.progress(within_s=FAILOVER_S)
        network.mend()


def test_a_leader_is_alone_with_the_clients(cluster: Cluster, network: Network, recorder: Recorder, name: str) -> None:
    """They know no other broker: it has to send them away."""
    with at_work(cluster, recorder, name, partitions=1) as (topic, workload):
        leader = cluster.leader(topic)
        network.isolate(leader, [KEEPER, *cluster.followers(topic)])
        cluster.wait_for_other_leader(topic, leader)
        workload.progress(within_s=FAILOVER_S)
        network.mend()


def test_a_controller_is_cut_off_from_everybody(
    cluster: Cluster, network: Network, recorder: Recorder, name: str
) -> None:
    with at_work(cluster, recorder, name) as (_, workload):
        controller = cluster.controller()
        network.isolate(controller, [KEEPER, *(node for node in cluster.nodes if node != controller)])
        cluster.wait_for_other_controller(controller)
        workload.progress(within_s=FAILOVER_S)
        network.mend()
