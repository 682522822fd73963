"""Replication between whole brokers: records reach all replicas, nothing acknowledged is lost, logs are the same."""

from broker.cluster_harness import Cluster
from broker.harness import batch, produce, produced
from cordwood.errors import Error
from cordwood.wire.messages import ProduceResponse


def test_what_is_acknowledged_is_on_all_replicas() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    assert cluster.isr("t") == [1, 2, 3]
    client = cluster[1].connect()
    answer = produced(client.ask(produce("t", batch(b"a", b"b")), 9, ProduceResponse))
    assert (answer.error_code, answer.base_offset) == (Error.NONE, 0)
    assert [end for _, end in cluster.ends("t")] == [2, 2, 2]
    assert cluster.ends("t")[0] == (2, 2)
    cluster.advance(500)
    assert cluster.ends("t") == [(2, 2)] * 3
    assert len(cluster.contents("t")) == 1


def test_a_dead_leader_is_replaced_at_once() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[1].kill()
    assert cluster.leader("t") is not cluster[1]
    assert cluster.isr("t") == [2, 3]
    cluster.leader("t").append("t", b"b")
    cluster[1].start()
    cluster.advance(1000)
    assert cluster.isr("t") == [1, 2, 3]
    assert cluster.ends("t") == [(2, 2)] * 3
    assert len(cluster.contents("t")) == 1
