"""ZooKeeper servers go and come back."""

from collections.abc import Iterator
from time import monotonic

import pytest
from confluent_kafka import Consumer, TopicPartition

from cluster.cordwood_nodes import SESSION_TIMEOUT_MS
from cluster.harness import Cluster, Topic, at_work
from cluster.recorder import Recorder
from cordwood.run.zookeeper_server import Ensemble
from support.waiting import eventually

FAILOVER_S = 30.0


@pytest.fixture
def cluster(plain_cluster: Cluster, ensemble: Ensemble) -> Iterator[Cluster]:
    yield plain_cluster
    for server in ensemble.servers:
        if not server.running:
            server.start()
    plain_cluster.heal()


def test_one_zookeeper_server_of_three_is_not_missed(
    cluster: Cluster, ensemble: Ensemble, recorder: Recorder, name: str
) -> None:
    with at_work(cluster, recorder, name) as (topic, workload):
        leader = ensemble.leader()
        assert leader is not None
        leader.kill()
        workload.progress(within_s=FAILOVER_S)
        node = cluster.leader(topic)
        cluster.kill(node)  # the two that are left can still elect a leader
        workload.progress(within_s=FAILOVER_S)
        cluster.restart(node)
        leader.start()


def test_two_zookeeper_servers_of_three_stop_changes_and_then_writes(
    cluster: Cluster, ensemble: Ensemble, recorder: Recorder, name: str
) -> None:
    """As long as sessions live, acknowledged writes go on; when they cannot be alive any more, nothing is taken."""
    with at_work(cluster, recorder, name) as (topic, workload):
        gone = ensemble.servers[:2]
        for server in gone:
            server.kill()
        workload.progress(within_s=SESSION_TIMEOUT_MS / 1000)
        eventually(lambda: workload.plain.silent_s > 1.0, within_s=FAILOVER_S, what="the end of all writing")
        assert read_by_a_newcomer(cluster, topic, count=workload.acknowledged), "what there is can still be read"
        for server in gone:
            server.launch()
        for server in gone:
            server.wait_until_serving()
        workload.progress(within_s=FAILOVER_S)


def read_by_a_newcomer(cluster: Cluster, topic: Topic, *, count: int) -> bool:
    """Can a client that did not know the cluster before read so many records?"""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "newcomer",
        "enable.auto.commit": False,  # there is no coordinator now
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(place.topic, place.partition, 0) for place in topic.places()])
    try:
        read = 0
        deadline_s = monotonic() + FAILOVER_S
        while read < count and monotonic() < deadline_s:
            read += sum(message.error() is None for message in consumer.consume(1_000, timeout=0.2))
        return read >= count
    finally:
        consumer.close()
