"""What readers see of replicas: followers that serve consumers, sessions of followers, deletions, throttles, groups."""

from broker.cluster_harness import Cluster, Member
from broker.harness import Client, batch, codes, fetch, produce, read
from cordwood.broker.throttle import UNLIMITED, Rate, is_named
from cordwood.errors import Error
from cordwood.ids import NodeId, TopicName
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestConfig,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
    DeleteRecordsResponsePartition,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequestPartition,
    FetchRequestReplicaState,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponse,
)

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def only(response: FetchResponse) -> FetchResponsePartition:
    ((answer,),) = [topic.partitions for topic in response.responses]
    return answer


# ---------------------------------------------------------------------- consumers at followers


def test_a_follower_serves_what_is_committed_as_far_as_it_knows() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    consumer = cluster[2].connect()
    assert read(consumer.ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): []}
    consumer.send(fetch(("t", 0, 0), max_wait_ms=5000), 12)
    assert not consumer.inbox
    cluster.advance(500)
    assert read(consumer.take(FetchResponse)) == {("t", 0): [b"a"]}
    beyond = only(consumer.ask(fetch(("t", 0, 2)), 12, FetchResponse))
    assert beyond.error_code == Error.OFFSET_OUT_OF_RANGE


def test_a_follower_checks_the_consumers_epoch() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].kill()
    cluster[1].start()
    cluster.advance(1000)
    assert cluster.leader("t") is cluster[2]
    request = fetch(("t", 0, 0), max_wait_ms=5000)
    epoch = cluster[1].partition("t").leader_epoch
    assert epoch > 0
    for claimed, error in ((epoch - 1, Error.FENCED_LEADER_EPOCH), (epoch + 1, Error.UNKNOWN_LEADER_EPOCH)):
        request.topics[0].partitions[0].current_leader_epoch = claimed
        assert only(cluster[1].connect().ask(request, 12, FetchResponse)).error_code == error


def test_a_fetch_that_is_refused_names_the_leader() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [1])
    topic_id = cluster[1].broker.image.topics[TopicName("t")].id
    request = fetch(("", 0, 0))
    request.topics[0].topic_id = topic_id
    for version in (15, 16):
        response = cluster[2].connect().ask(request, version, FetchResponse)
        answer = only(response)
        assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader is not None) == (version >= 16)
        assert [(e.node_id, e.host) for e in response.node_endpoints] == ([(1, "10.0.0.1")] if version >= 16 else [])


class RackedCluster(Cluster):
    """Broker 1 in rack a, all others in rack b."""

    def settings_of(self, node: int) -> dict[str, object]:
        return {"broker_rack": "a" if node == 1 else "b"}


def preferred(client: Client, rack: str, offset: int = 0, version: int = 12) -> int:
    request = fetch(("t", 0, offset), max_wait_ms=0)
    request.rack_id = rack
    return only(client.ask(request, version, FetchResponse)).preferred_read_replica


def test_a_consumer_is_sent_to_a_replica_in_its_rack() -> None:
    cluster = RackedCluster(3, replica_selector_class=SELECTOR)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    client = cluster[1].connect()
    assert preferred(client, "b") == 2
    assert preferred(client, "a") == -1, "the leader is there"
    assert preferred(client, "c") == -1, "nobody is there"
    assert preferred(client, "") == -1
    assert preferred(client, "b", offset=1) == 2
    assert preferred(cluster[2].connect(), "a") == -1, "only the leader sends on"
    cluster[2].kill()
    assert preferred(client, "b") == 3
    cluster[3].kill()
    assert preferred(client, "b") == -1


def test_a_consumer_that_is_sent_on_gets_no_records_and_does_not_wait() -> None:
    cluster = RackedCluster(2, replica_selector_class=SELECTOR)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    request = fetch(("t", 0, 1), max_wait_ms=10_000, session_epoch=0)
    request.rack_id = "b"
    client = cluster[1].connect()
    response = client.ask(request, 12, FetchResponse)
    assert (only(response).preferred_read_replica, read(response)) == (2, {("t", 0): []})
    again = fetch(("t", 0, 1), max_wait_ms=10_000, session_id=response.session_id, session_epoch=1)
    again.rack_id = "b"
    assert only(client.ask(again, 12, FetchResponse)).preferred_read_replica == 2, "and again, if it comes again"


def test_where_consumers_read_from_followers_these_hear_at_once_what_is_committed() -> None:
    cluster = RackedCluster(3, replica_selector_class=SELECTOR)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    assert cluster.ends("t") == [(1, 1)] * 3


def test_without_a_selector_the_leader_serves_everybody() -> None:
    cluster = RackedCluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    assert preferred(cluster[1].connect(), "b") == -1


# ---------------------------------------------------------------------- sessions of followers


def follow(
    member: Member, topic: str, replica: int, *, offset: int = 0, session: tuple[int, int] = (0, 0)
) -> FetchResponse:
    """A follower's fetch, by hand."""
    request = fetch(session_id=session[0], session_epoch=session[1])
    epoch = member.broker.image.broker_epoch(NodeId(replica))
    request.replica_state = FetchRequestReplicaState(replica_id=replica, replica_epoch=epoch)
    wanted = FetchRequestPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=0, log_start_offset=0
    )
    topic_id = member.broker.image.topics[TopicName(topic)].id
    request.topics = [FetchRequestTopic(topic_id=topic_id, partitions=[wanted])]
    return member.connect().ask(request, 17, FetchResponse)


def test_there_is_always_room_for_a_followers_session_and_it_has_one() -> None:
    cluster = Cluster(2, max_incremental_fetch_session_cache_slots=1)
    cluster.topic("t")
    consumers = [cluster[1].connect().ask(fetch(("t", 0, 0), session_epoch=0), 12, FetchResponse) for _ in range(2)]
    assert [bool(response.session_id) for response in consumers] == [True, False]
    first = follow(cluster[1], "t", 2)
    second = follow(cluster[1], "t", 2)
    assert first.session_id
    assert second.session_id not in (0, first.session_id)
    stale = follow(cluster[1], "t", 2, session=(first.session_id, 1))
    assert stale.error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    consumer = fetch(("t", 0, 0), session_id=second.session_id, session_epoch=1)
    answer = cluster[1].connect().ask(consumer, 12, FetchResponse)
    assert answer.error_code == Error.FETCH_SESSION_ID_NOT_FOUND, "a follower's session is nobody else's"


def test_a_lost_session_begins_anew() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    (session,) = [session for session in cluster[1].broker.sessions if session.replica is not None]
    cluster[1].broker.sessions.remove(session.id)
    cluster.advance(1000)
    cluster[1].append("t", b"b")
    cluster.advance(1000)
    assert cluster.ends("t") == [(2, 2)] * 2


def test_a_leader_without_room_for_a_session_is_followed_without() -> None:
    cluster = Cluster(2)
    cluster[1].broker.sessions.partitions_max = 0
    cluster.topic("t", [1, 2], [1, 2])
    cluster[1].append("t", b"a")
    cluster.advance(1000)
    assert cluster.ends("t") == [(1, 1)] * 2
    assert list(cluster[1].broker.sessions) == []


def test_a_session_ends_with_its_last_partition_and_begins_with_the_next() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.topic("u")
    for name in ("t", "u"):
        response = cluster[1].connect().ask(DeleteTopicsRequest(topic_names=[name]), 5, DeleteTopicsResponse)
        assert response.responses[0].error_code == Error.NONE
    cluster.advance(1000)
    assert list(cluster[1].broker.sessions) == []
    cluster.topic("v")
    cluster[1].append("v", b"a")
    (session,) = cluster[1].broker.sessions
    assert session.replica == 2


def test_a_broker_that_is_no_replica_is_told_to_come_back_later() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2])
    assert only(follow(cluster[1], "t", 3)).error_code == Error.UNKNOWN_LEADER_EPOCH


def test_a_follower_ahead_of_its_leader_is_told_where_to_cut() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    answer = only(follow(cluster[1], "t", 2, offset=7))
    assert answer.diverging_epoch is not None
    assert (answer.error_code, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (Error.NONE, 0, 1)


def test_a_follower_before_the_start_is_told_where_that_is() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a", b"b")
    cluster[1].broker.replicas.delete_records(cluster[1].broker, cluster[1].partition("t"), 2)
    answer = only(follow(cluster[1], "t", 2, offset=1))
    assert (answer.error_code, answer.log_start_offset) == (Error.OFFSET_OUT_OF_RANGE, 2)


# ---------------------------------------------------------------------- deleting records


def delete(member: Member, topic: str, offset: int, timeout_ms: int = 1000) -> Client:
    partition = DeleteRecordsRequestPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequestTopic(name=topic, partitions=[partition])], timeout_ms=timeout_ms
    )
    client = member.connect()
    client.send(request, 2)
    return client


def deleted(client: Client) -> DeleteRecordsResponsePartition:
    ((answer,),) = [topic.partitions for topic in client.take(DeleteRecordsResponse).topics]
    return answer


def test_records_are_deleted_when_all_replicas_have_deleted_them() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a", b"b", b"c")
    cluster.advance(1000)
    answer = deleted(delete(cluster[1], "t", 2))
    assert (answer.error_code, answer.low_watermark) == (Error.NONE, 2)
    assert [member.log("t").log_start_offset for member in cluster.members.values()] == [2, 2, 2]


def test_a_follower_that_does_not_come_is_waited_for_as_long_as_the_client_likes() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a", b"b", b"c")
    cluster.advance(1000)
    cluster.cut(1, 2)
    client = delete(cluster[1], "t", 2, timeout_ms=300)
    cluster.advance(299)
    assert not client.inbox
    cluster.advance(1)
    answer = deleted(client)
    assert (answer.error_code, answer.low_watermark) == (Error.REQUEST_TIMED_OUT, 0)
    assert cluster[1].partition("t").start_watchers == {}


def test_a_follower_that_dies_is_not_waited_for() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster.advance(1000)
    cluster.cut(1, 2)
    waiting, given_up = (delete(cluster[1], "t", 1) for _ in range(2))
    given_up.disconnect()
    cluster.heal()
    cluster[2].kill()
    answer = deleted(waiting)
    assert (answer.error_code, answer.low_watermark) == (Error.NONE, 1)


def test_a_deletion_ends_with_the_leadership() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster.advance(1000)
    for node in (2, 3):
        cluster.cut(1, node)
    client = delete(cluster[1], "t", 1)
    cluster[1].end_session()
    answer = deleted(client)
    assert (answer.error_code, answer.low_watermark) == (Error.NOT_LEADER_OR_FOLLOWER, -1)


# ---------------------------------------------------------------------- throttles


def test_a_rate_is_kept_on_average() -> None:
    limit = 1000
    rate = Rate(lambda: limit)
    assert rate.wait_ms(0) == 0
    rate.record(500, 0)
    assert rate.wait_ms(0) == 501
    assert rate.wait_ms(400) == 101
    assert rate.wait_ms(500) == 0
    rate.record(3000, 10_000)
    assert rate.wait_ms(11_000) == 2001, "what was not used is not saved up"
    limit = UNLIMITED
    assert rate.wait_ms(11_000) == 0
    limit = 0
    assert rate.wait_ms(11_000) == 1000


def test_throttled_replicas_are_named_one_by_one_or_all() -> None:
    cluster = Cluster(1)
    cluster.topic("t", [1], [1])
    partition = cluster[1].partition("t", 1)
    assert is_named(("1:2", "0:1"), partition, NodeId(2))
    assert not is_named(("0:2", "1:1"), partition, NodeId(2))
    assert is_named(("*",), partition, NodeId(7))


def limit(cluster: Cluster, name: str, rate: int) -> None:
    """Set a broker's setting for all brokers, while they run."""
    config = AlterConfigsRequestConfig(name=name, value=str(rate))
    resource = AlterConfigsRequestResource(resource_type=4, resource_name="", configs=[config])
    client = cluster[1].connect()
    response = client.ask(AlterConfigsRequest(resources=[resource]), 1, AlterConfigsResponse)
    assert response.responses[0].error_code == Error.NONE, response.responses[0].error_message
    cluster.run()


def fill(cluster: Cluster, topic: str) -> None:
    """Twenty batches of a kilobyte, which broker 2 does not have yet."""
    cluster[2].kill()
    client = cluster[1].connect()
    for _ in range(20):
        client.send(produce(topic, batch(b"x" * 1000)), 9)
    assert len(client.inbox) == 20
    cluster[2].start()


def test_a_throttled_leader_takes_its_time() -> None:
    cluster = Cluster(2, replica_fetch_max_bytes=2200)
    cluster.topic("t", leader_replication_throttled_replicas="0:1", follower_replication_throttled_replicas="0:2")
    limit(cluster, "leader.replication.throttled.rate", 2000)
    fill(cluster, "t")
    cluster.advance(3000)
    assert 4 <= cluster[2].log("t").end_offset <= 10
    cluster.advance(20_000)
    assert cluster[2].log("t").end_offset == 20
    assert cluster.isr("t") == [1, 2]
    cluster[1].append("t", b"y" * 10_000)
    cluster[1].append("t", b"z" * 10_000)
    assert cluster[2].log("t").end_offset == 22, "whoever is in sync is not held back"


def test_a_throttled_follower_takes_its_time_and_others_do_not() -> None:
    cluster = Cluster(2, replica_fetch_max_bytes=2200)
    cluster.topic("t", follower_replication_throttled_replicas="*")
    cluster.topic("u")
    limit(cluster, "follower.replication.throttled.rate", 2000)
    fill(cluster, "t")
    cluster.advance(3000)
    assert 4 <= cluster[2].log("t").end_offset <= 10
    cluster[1].append("u", b"a")
    cluster.advance(20_000)
    assert cluster[2].log("t").end_offset == 20
    assert cluster.isr("t") == [1, 2]


def test_a_follower_notices_that_it_may_go_faster_now() -> None:
    """At the old rate it would have to wait for half an hour."""
    cluster = Cluster(2, replica_fetch_max_bytes=2200)
    cluster.topic("t", follower_replication_throttled_replicas="*")
    limit(cluster, "follower.replication.throttled.rate", 1)
    fill(cluster, "t")
    cluster.advance(3000)
    assert cluster[2].log("t").end_offset < 4
    limit(cluster, "follower.replication.throttled.rate", 1_000_000)
    cluster.advance(3000)
    assert cluster[2].log("t").end_offset == 20


# ---------------------------------------------------------------------- groups


def test_what_a_group_has_committed_survives_its_coordinator() -> None:
    cluster = Cluster(3, offsets_topic_num_partitions=1, offsets_topic_replication_factor=3)
    cluster.topic("t")
    first = _coordinator(cluster)
    commit = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=42)]
            )
        ],
    )
    response = cluster[first].connect().ask(commit, 8, OffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code == Error.NONE
    assert cluster[first].syncs == 0, "a commit that waits for replicas does not wait for the disk"
    cluster[first].kill()
    cluster.advance(100)
    second = _coordinator(cluster)
    assert second != first
    wanted = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestGroupTopic(name="t", partition_indexes=[0])]
    )
    fetched = cluster[second].connect().ask(OffsetFetchRequest(groups=[wanted]), 8, OffsetFetchResponse)
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 42


def _coordinator(cluster: Cluster) -> int:
    member = next(member for member in cluster.members.values() if member.up)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    client = member.connect()
    for _ in range(5):
        client.send(request, 4)
        cluster.advance(100)
        found = client.take(FindCoordinatorResponse).coordinators[0]
        if found.error_code == Error.NONE:
            return found.node_id
    raise AssertionError(Error(found.error_code))


def test_codes_of_what_is_read() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    assert codes(cluster[2].connect().ask(fetch(("t", 0, 0)), 10, FetchResponse)) == {
        ("t", 0): Error.NOT_LEADER_OR_FOLLOWER
    }
