"""In-sync replicas, where proposals, lives of followers and news of them cross each other."""

from random import Random

from broker.cluster_harness import Cluster, Member
from broker.harness import batch, produce, produced
from cordwood.cluster.layout import incarnation_path, partition_path
from cordwood.errors import Error, StorageError
from cordwood.ids import NodeId, TopicName
from cordwood.partition.follower import Follower
from cordwood.ports import MetadataChange, Node
from cordwood.sim.disk import SimDisk
from cordwood.wire.messages import ProduceResponse

TWO = NodeId(2)


def followed() -> Cluster:
    """Broker 1 leads and is in sync alone, with a record; broker 2 is down."""
    cluster = Cluster(2, leader_replication_throttled_rate=1_000_000)
    cluster.topic("t", leader_replication_throttled_replicas="*")
    cluster[2].kill()
    assert cluster.isr("t") == [1]
    assert produced(cluster[1].connect().ask(produce("t", batch(b"a")), 9, ProduceResponse)).error_code == Error.NONE
    return cluster


def follower(cluster: Cluster) -> Follower:
    return cluster[1].partition("t").followers[TWO]


def live_anew(cluster: Cluster) -> None:
    """Broker 2 begins another life, with an empty disk, and for long gets no records from broker 1."""
    member = cluster[2]
    cluster[1].broker.replication.leader_rate.record(1 << 40, cluster.now.mono_ms)
    member.kill()
    member.end_session()
    member.disk, member.boot_id = SimDisk(Random(9)), "another"
    member.start()


def cut_off_from_the_store(member: Member) -> None:
    member.cluster.deaf.add(member)
    member.hold_metadata = True


def catch_up(member: Member) -> None:
    """The store can be reached again, and all that was missed is heard of at once."""
    member.cluster.deaf.discard(member)
    member.execute(member.broker.metadata_reloaded(list(member.store.load()), member.now))
    member.cluster.run()


def test_who_was_proposed_in_one_life_does_not_come_in_with_the_empty_log_of_the_next() -> None:
    cluster = followed()
    cluster[1].hold_metadata = True  # what is proposed is on its way for long
    cluster[2].start()
    cluster.advance(2000)
    assert follower(cluster).joining
    cut_off_from_the_store(cluster[1])
    live_anew(cluster)
    assert follower(cluster).end_offset == 0
    catch_up(cluster[1])
    assert follower(cluster).eligible
    cluster[1].hold_metadata = False
    cluster[1].release()
    cluster.run()
    assert cluster.isr("t") == [1], "broker 2 lacks what was acknowledged"


def test_what_a_follower_says_in_a_life_not_heard_of_yet_is_not_forgotten() -> None:
    """It says so once: as long as nothing new comes it has nothing more to say."""
    cluster = followed()
    cut_off_from_the_store(cluster[1])
    cluster[2].start()
    cluster.advance(2000)
    told = follower(cluster)
    assert (told.end_offset, told.epoch) == (1, cluster[2].broker.membership.epoch)
    life = next(node for node in cluster.store.load() if node.path == incarnation_path(TWO))
    first_step = MetadataChange([Node(life.path, life.data, life.version - 1)])
    cluster[1].execute(cluster[1].broker.metadata_changed([first_step], cluster[1].now))
    assert told.end_offset == 1
    cluster[1].hold_metadata = False
    catch_up(cluster[1])
    assert cluster.isr("t") == [1, 2]


def test_a_follower_that_goes_has_nothing_as_far_as_anybody_knows() -> None:
    cluster = followed()
    cluster[2].start()
    cluster.advance(2000)
    assert (cluster.isr("t"), follower(cluster).end_offset) == ([1, 2], 1)
    cluster[2].kill()
    assert (follower(cluster).end_offset, follower(cluster).eligible) == (-1, False)


def test_the_first_fetch_of_a_session_does_not_wait_at_the_leader() -> None:
    """What comes next, a partition with another leader perhaps, can only be said when there is a session."""
    cluster = Cluster(2)
    cluster.topic("t")
    (fetcher,) = cluster[2].broker.replication._fetchers.values()
    request = fetcher._request()
    assert request is not None
    assert (request.session_epoch > 0, request.max_wait_ms) == (
        True,
        cluster[2].broker.config.replica_fetch_wait_max_ms,
    )
    fetcher.tell_all()
    request = fetcher._request()
    assert request is not None
    assert (request.session_epoch, request.max_wait_ms) == (0, 0)


def test_a_proposal_that_fails_again_and_again_is_spoken_of_once() -> None:
    cluster = Cluster(2, replica_lag_time_max_ms=1000)
    cluster.topic("t")
    cluster.cut(1, 2)
    cluster[1].connect().send(produce("t", batch(b"a")), 9)
    cluster[1].store_error = StorageError("ZooKeeper is away")
    lines = cluster[1].logger.lines
    for store_error in (cluster[1].store_error, None):
        cluster[1].store_error = store_error
        cluster.advance(5000)
        assert len([line for line in lines if "in-sync replicas [1, 2] should be [1]" in line]) == 1
        assert len([line for line in lines if "is tried again: " in line]) == 1
    assert cluster.isr("t") == [1]
    assert "in-sync replicas are changed again" in cluster[1].logger


def test_who_lags_is_taken_out_soon_after_the_store_is_back() -> None:
    cluster = Cluster(2, replica_lag_time_max_ms=10_000)
    cluster.topic("t")
    cluster.cut(1, 2)
    cluster[1].connect().send(produce("t", batch(b"a")), 9)
    cluster[1].store_error = StorageError("ZooKeeper is away")
    cluster.advance(16_000)
    assert cluster.isr("t") == [1, 2]
    cluster[1].store_error = None
    cluster.advance(200)
    assert cluster.isr("t") == [1]


def test_a_state_that_somebody_has_deleted_keeps_no_other_partition_from_its_followers() -> None:
    cluster = Cluster(2)
    cluster.topic("t", *([[1, 2]] * 20))
    cluster[2].kill()
    cluster[1].hold_metadata = True
    cluster[2].start()
    del cluster.store._nodes[partition_path(TopicName("t"), 13)]
    cluster[1].hold_metadata = False
    cluster[1].release()
    for _ in range(50):
        cluster.advance(100)
        assert len(cluster[1].broker.proposals) <= 2
    assert [index for index in range(20) if cluster.isr("t", index) != [1, 2]] == [13]
