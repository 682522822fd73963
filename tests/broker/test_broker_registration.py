"""Whole brokers that come back: what they do before they are registered again."""

from random import Random

from broker.cluster_harness import Cluster
from broker.harness import batch, produce, produced
from cordwood.errors import Error
from cordwood.ids import NodeId
from cordwood.sim.disk import SimDisk
from cordwood.wire.messages import ProduceResponse


def test_a_broker_without_its_records_leads_nobody_before_it_has_registered() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [3, 2, 1])
    assert produced(cluster[3].connect().ask(produce("t", batch(b"a")), 9, ProduceResponse)).error_code == Error.NONE
    cluster.cut(2, 1)
    cluster.cut(2, 3)
    cluster[2].kill()  # nobody notices: its session goes on
    cluster[2].disk, cluster[2].boot_id = SimDisk(Random(9)), "another"
    cluster[2].hold_metadata = True  # the store is slow
    cluster[2].start()
    cluster.heal()
    cluster[3].kill()
    assert cluster.leader("t") is cluster[2]  # the controller takes it for alive, and in sync
    cluster.advance(60_000)
    assert cluster[1].broker.peers.is_up(NodeId(2))
    assert cluster[1].log("t").end_offset == 1
    cluster[2].hold_metadata = False
    cluster[2].release()
    cluster.advance(3000)
    assert cluster.leader("t") is cluster[1]
    assert cluster.isr("t") == [1, 2]
    assert cluster[2].log("t").end_offset == 1


def with_three_records() -> Cluster:
    """Broker 2, in sync with broker 1, was killed, and nobody does anything about it."""
    cluster = Cluster(2)
    cluster.topic("t", [1, 2])
    for value in (b"a", b"b", b"c"):
        assert produced(cluster[1].connect().ask(produce("t", batch(value)), 9, ProduceResponse)).error_code == 0
    cluster.cut(1, 2)
    cluster[1].hold_metadata = True
    cluster[2].kill()
    assert cluster.isr("t") == [1, 2]
    return cluster


def test_a_broker_whose_log_was_damaged_must_catch_up_to_be_in_sync() -> None:
    """What it cut off when it started was acknowledged."""
    cluster = with_three_records()
    cluster[2].damage("t-0/00000000000000000000.log", 70)
    cluster[2].checking = True
    cluster[2].start()
    assert cluster[2].log("t").end_offset < 3
    assert cluster.isr("t") == [1]
    cluster.heal()
    cluster[1].hold_metadata = False
    cluster[1].release()
    cluster.advance(40_000)
    assert (cluster.isr("t"), len(cluster.contents("t"))) == ([1, 2], 1)


def test_a_broker_that_dies_before_it_has_told_of_its_damage_tells_later() -> None:
    cluster = with_three_records()
    cluster[2].damage("t-0/00000000000000000000.log", 70)
    cluster[2].checking = True
    cluster[2].hold_metadata = True
    cluster[2].start()
    cluster[2].kill()
    assert cluster.isr("t") == [1, 2]
    cluster[2].hold_metadata = False
    cluster[2].start()
    assert cluster.isr("t") == [1]
    assert not cluster[2].broker.replicas.directory.lacks_records


def test_a_broker_without_the_files_of_one_partition_must_catch_up_to_be_in_sync() -> None:
    cluster = with_three_records()
    cluster[2].disk.remove_tree("t-0")
    cluster[2].start()
    assert cluster.isr("t") == [1]


def test_a_broker_that_has_everything_stays_in_sync() -> None:
    cluster = with_three_records()
    cluster[2].start()
    assert cluster.isr("t") == [1, 2]
