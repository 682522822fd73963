"""Replication between whole brokers: records reach all replicas, nothing acknowledged is lost, logs are the same."""

import pytest

from broker.cluster_harness import Cluster, Member
from broker.harness import Client, batch, fetch, produce, produced, read
from cordwood.broker.fetcher import ASKED_MAX
from cordwood.errors import Error, TruncationError
from cordwood.ids import NodeId, TopicName
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
    AlterPartitionReassignmentsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    ListOffsetsRequest,
    ListOffsetsRequestPartition,
    ListOffsetsRequestTopic,
    ListOffsetsResponse,
    ProduceResponse,
    ProduceResponsePartition,
)


def begin(
    member: Member, topic: str, *values: bytes, timeout_ms: int = 1000, acks: int = -1, version: int = 9
) -> Client:
    """Produce, and do not expect an answer yet."""
    client = member.connect()
    request = produce(topic, batch(*values), acks=acks)
    request.timeout_ms = timeout_ms
    client.send(request, version)
    return client


def outcome(client: Client) -> ProduceResponsePartition:
    return produced(client.take(ProduceResponse))


def values(member: Member, topic: str, version: int = 12) -> list[bytes | None]:
    """What a consumer reads from this broker."""
    return read(member.connect().ask(fetch((topic, 0, 0)), version, FetchResponse))[topic, 0]


def cut_off(cluster: Cluster, node: int) -> None:
    for other in cluster.members:
        if other != node:
            cluster.cut(node, other)


def settle(cluster: Cluster, topic: str, replicas: int = 3) -> None:
    """Let some time pass, after which all replicas are in sync and the same."""
    cluster.advance(2000)
    assert len(cluster.isr(topic)) == replicas
    assert len(set(cluster.ends(topic))) == 1
    assert len(cluster.contents(topic)) == 1


# ---------------------------------------------------------------------- committed


def test_what_is_acknowledged_is_on_all_replicas() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    assert cluster.isr("t") == [1, 2, 3]
    client = begin(cluster[1], "t", b"a", b"b")
    assert (outcome(client).error_code, cluster.ends("t")[0]) == (Error.NONE, (2, 2))
    assert [end for _, end in cluster.ends("t")] == [2, 2, 2]
    cluster.advance(500)
    assert cluster.ends("t") == [(2, 2)] * 3
    assert len(cluster.contents("t")) == 1


def test_acks_1_does_not_wait_for_followers() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.cut(1, 2)
    assert outcome(begin(cluster[1], "t", b"a", acks=1)).error_code == Error.NONE
    assert cluster.ends("t") == [(0, 1), (0, 0)]
    assert values(cluster[1], "t") == []


def test_acks_all_waits_for_every_replica_in_sync() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster.cut(1, 3)
    client = begin(cluster[1], "t", b"a")
    assert not client.inbox
    assert cluster.ends("t") == [(0, 1), (0, 1), (0, 0)]
    assert values(cluster[1], "t") == []
    cluster.heal()
    cluster.advance(60_000)  # a silent link is made anew
    assert len(cluster.contents("t")) == 1


def test_a_client_is_told_when_its_time_is_up() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.cut(1, 2)
    client = begin(cluster[1], "t", b"a", timeout_ms=300)
    cluster.advance(299)
    assert not client.inbox
    cluster.advance(1)
    answer = outcome(client)
    assert (answer.error_code, answer.base_offset) == (Error.REQUEST_TIMED_OUT, 0)


def test_a_client_that_goes_away_is_not_waited_for() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.cut(1, 2)
    begin(cluster[1], "t", b"a").disconnect()
    patient = begin(cluster[1], "t", b"b", timeout_ms=100_000)
    cluster.heal()
    cluster.advance(40_000)
    assert outcome(patient).error_code == Error.NONE


def test_a_repeated_batch_waits_like_the_first() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.cut(1, 2)
    client = cluster[1].connect()
    data = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    for _ in range(2):
        client.send(produce("t", data), 9)
    begin(cluster[1], "t", b"b")
    client.send(produce("t", data), 9)
    assert not client.inbox
    cluster.heal()
    cluster[2].kill()
    assert [outcome(client).base_offset for _ in range(3)] == [0, 0, 0]


def test_a_consumer_waits_for_what_is_committed() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    consumer = cluster[1].connect()
    consumer.send(fetch(("t", 0, 0), max_wait_ms=10_000), 12)
    cluster.cut(1, 2)
    begin(cluster[1], "t", b"a")
    assert not consumer.inbox
    cluster.heal()
    cluster[2].kill()
    assert read(consumer.take(FetchResponse)) == {("t", 0): [b"a"]}


def test_several_partitions_of_one_request_are_answered_together() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2], [1, 3])
    cluster.cut(1, 3)
    request = produce("t", batch(b"a"))
    request.topic_data[0].partition_data += produce("t", batch(b"b"), partition=1).topic_data[0].partition_data
    client = cluster[1].connect()
    client.send(request, 9)
    assert (cluster[1].partition("t", 0).high_watermark, cluster[1].partition("t", 1).high_watermark) == (1, 0)
    assert not client.inbox
    cluster.heal()
    cluster[3].kill()
    (topic,) = client.take(ProduceResponse).responses
    assert [(p.index, p.error_code) for p in topic.partition_responses] == [(0, 0), (1, 0)]


# ---------------------------------------------------------------------- leaders come and go


def test_a_dead_leader_is_replaced_at_once() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[1].kill()
    assert cluster.leader("t") is not cluster[1]
    assert cluster.isr("t") == [2, 3]
    cluster.leader("t").append("t", b"b")
    cluster[1].start()
    settle(cluster, "t")
    assert cluster.ends("t") == [(2, 2)] * 3


def test_what_only_the_old_leader_had_is_cut_off() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cut_off(cluster, 1)
    lost = begin(cluster[1], "t", b"lost", b"lost too")
    assert cluster[1].log("t").end_offset == 3
    cluster[1].end_session()
    cluster.leader("t").append("t", b"b")
    assert outcome(lost).error_code == Error.NOT_LEADER_OR_FOLLOWER
    cluster.heal()
    cluster.advance(40_000)
    settle(cluster, "t")
    assert values(cluster[1], "t") == [b"a", b"b"]


def test_a_follower_that_can_not_cut_its_log_stops() -> None:
    """Half of it may be cut: going on, it would mix what it still has with what its leader has."""
    cluster = Cluster(3)
    cluster.topic("t")
    cut_off(cluster, 1)
    begin(cluster[1], "t", b"lost")
    cluster[1].end_session()
    cluster.heal()
    with pytest.raises(TruncationError):
        _advance_with_a_bad_disk(cluster[1], 40_000)


def _advance_with_a_bad_disk(member: Member, ms: int) -> None:
    for _ in range(ms // 100):
        member.disk.fails_after = 0
        member.advance(100)


def test_a_new_leader_finds_out_what_is_committed() -> None:
    """Its own high watermark may be behind; until its followers have come it does not know the end of a partition."""
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[2].partition("t").high_watermark = 0
    cluster.cut(2, 3)
    cluster[1].kill()
    assert cluster.leader("t") is cluster[2]
    wanted = ListOffsetsRequestPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequestTopic(name="t", partitions=[wanted])])
    client = cluster[2].connect()
    for version, error in [(5, Error.OFFSET_NOT_AVAILABLE), (4, Error.LEADER_NOT_AVAILABLE)]:
        (topic,) = client.ask(request, version, ListOffsetsResponse).topics
        assert topic.partitions[0].error_code == error
    assert values(cluster[2], "t") == []
    request.replica_id = 3
    (topic,) = client.ask(request, 5, ListOffsetsResponse).topics
    assert topic.partitions[0].offset == 1, "another broker is told the end of the log"
    cluster.heal()
    cluster.advance(40_000)
    assert values(cluster[2], "t") == [b"a"]


def test_leaders_that_follow_each_other_quickly_leave_one_history() -> None:
    """Each writes what nobody else gets (KIP-101, KIP-279)."""
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    for round_ in range(6):
        leader = cluster.leader("t")
        cut_off(cluster, leader.node)
        begin(leader, "t", b"only here %d" % round_, acks=1)
        leader.end_session()
        assert cluster.leader("t") is not leader
        cluster.leader("t").append("t", b"b%d" % round_)
        cluster.heal()
        cluster.advance(40_000)
    settle(cluster, "t")
    assert values(cluster[1], "t") == [b"a", *(b"b%d" % n for n in range(6))]


def test_a_fenced_leader_refuses_and_fails_what_waits() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cut_off(cluster, 1)
    waiting = begin(cluster[1], "t", b"b", version=10)
    assert not waiting.inbox
    cluster[1].lose_session()
    assert outcome(waiting).error_code == Error.NOT_LEADER_OR_FOLLOWER
    for acks in (-1, 1):
        assert outcome(begin(cluster[1], "t", b"c", acks=acks)).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert values(cluster[1], "t") == [b"a"], "reading goes on"
    assert cluster[1].log("t").end_offset == 2


def test_a_broker_that_counts_again_does_not_lead_as_if_nothing_had_happened() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[1].lose_session()
    cluster[1].end_session()
    cluster[1].regain_session()
    settle(cluster, "t")
    assert cluster.leader("t") is not cluster[1]
    assert outcome(begin(cluster[1], "t", b"c")).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_restarted_cluster_goes_on() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a", b"b")
    for node in (1, 2, 3):
        cluster[node].kill()
        cluster[node].end_session()
    for node in (3, 2, 1):
        cluster[node].start()
    cluster.advance(1000)
    cluster.leader("t").append("t", b"c")
    settle(cluster, "t")
    assert cluster.ends("t") == [(3, 3)] * 3


def test_a_refusal_names_the_leader() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    for version in (9, 10):
        request = produce("t", batch(b"x"))
        response = cluster[2].connect().ask(request, version, ProduceResponse)
        answer = produced(response)
        assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
        if version < 10:
            assert answer.current_leader is None
            continue
        assert answer.current_leader is not None
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)
        assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(1, "10.0.0.1", 9092)]


def test_whoever_waits_hears_of_the_new_leader() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cut_off(cluster, 1)
    client = begin(cluster[1], "t", b"a", version=10, timeout_ms=100_000)
    cluster[1].execute(cluster[1].broker.stop_leading(cluster.now))
    cluster.run()
    response = client.take(ProduceResponse)
    leader = produced(response).current_leader
    assert leader is not None
    assert leader.leader_id == cluster.leader("t").node
    assert [e.node_id for e in response.node_endpoints] == [leader.leader_id]


def test_a_partition_that_others_have_is_not_unknown() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2])
    cluster.topic("u", [3])
    request = fetch(("t", 0, 0), ("t", 1, 0), ("u", 0, 0))
    response = cluster[3].connect().ask(request, 12, FetchResponse)
    errors = [answer.error_code for topic in response.responses for answer in topic.partitions]
    assert errors == [Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE]
    assert outcome(begin(cluster[3], "t", b"x")).error_code == Error.NOT_LEADER_OR_FOLLOWER


# ---------------------------------------------------------------------- in-sync replicas


def test_a_follower_that_falls_behind_leaves_and_comes_back() -> None:
    cluster = Cluster(3, replica_lag_time_max_ms=1000)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster.advance(10_000)
    assert cluster.isr("t") == [1, 2, 3], "who has everything does not lag"
    cluster.cut(1, 3)
    client = begin(cluster[1], "t", b"b", timeout_ms=10_000)
    cluster.advance(900)
    assert not client.inbox
    cluster.advance(1000)
    assert outcome(client).error_code == Error.NONE
    assert cluster.isr("t") == [1, 2]
    cluster.heal()
    cluster.advance(60_000)
    settle(cluster, "t")


def test_too_few_replicas_refuse_acks_all_and_commit_nothing() -> None:
    cluster = Cluster(3, replica_lag_time_max_ms=1000)
    cluster.topic("t", min_insync_replicas=2)
    cluster[3].kill()
    cluster[1].append("t", b"a")
    waiting = begin(cluster[1], "t", b"b")
    assert outcome(waiting).error_code == Error.NONE
    cluster.cut(1, 2)
    after = begin(cluster[1], "t", b"c", timeout_ms=10_000)
    cluster.advance(2000)
    assert cluster.isr("t") == [1]
    assert outcome(after).error_code == Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert outcome(begin(cluster[1], "t", b"d")).error_code == Error.NOT_ENOUGH_REPLICAS
    assert outcome(begin(cluster[1], "t", b"e", acks=1)).error_code == Error.NONE
    assert values(cluster[1], "t") == [b"a", b"b"]
    cluster.heal()
    cluster[3].start()
    cluster.advance(60_000)
    settle(cluster, "t")
    assert values(cluster[2], "t") == [b"a", b"b", b"c", b"e"]


def test_several_followers_come_back_though_one_proposal_at_a_time_is_made() -> None:
    cluster = Cluster(3)
    cluster.topic("t", *[[1, 2, 3]] * 5)
    for node in (2, 3):
        cluster[node].kill()
    assert [cluster.isr("t", index) for index in range(5)] == [[1]] * 5
    for node in (2, 3):
        cluster[node].start()
    cluster.advance(1000)
    assert [cluster.isr("t", index) for index in range(5)] == [[1, 2, 3]] * 5


def test_what_was_proposed_counts_until_the_metadata_says_what_came_of_it() -> None:
    """The store may have done it though nobody was told."""
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[2].kill()
    assert cluster.isr("t") == [1]
    cluster[1].append("t", b"a")
    cluster[1].hold_metadata = True
    cluster[2].start()
    cluster.advance(1000)
    assert cluster.isr("t") == [1], "the proposal is on its way"
    cluster.cut(1, 2)
    client = begin(cluster[1], "t", b"b", timeout_ms=100_000)
    assert not client.inbox, "it may be that broker 2 is in sync"
    cluster.heal()
    cluster[1].hold_metadata = False
    cluster[1].release()
    cluster.run()
    cluster.advance(60_000)
    assert outcome(client).error_code == Error.NONE
    settle(cluster, "t", replicas=2)


def test_a_refused_proposal_is_made_again() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[2].kill()
    cluster[1].conflicts = 7
    cluster[2].start()
    cluster.advance(2000)
    assert cluster[1].conflicts == 0
    assert cluster.isr("t") == [1, 2]


def test_a_follower_that_was_proposed_and_died_does_not_count_for_ever() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[2].kill()
    cluster[1].conflicts = 6
    cluster[2].start()
    follower = next(iter(cluster[1].partition("t").followers.values()))
    assert follower.joining
    cluster[2].kill()
    cluster.advance(1000)
    assert not follower.joining
    cluster[1].append("t", b"a")


def test_a_former_life_of_a_follower_is_refused() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    request = _fetch_of(cluster[2])
    assert request.replica_state is not None
    request.replica_state.replica_epoch -= 1
    request.session_epoch, request.session_id = -1, 0
    assert cluster[1].connect().ask(request, 17, FetchResponse).error_code == Error.STALE_BROKER_EPOCH


def _fetch_of(member: Member) -> FetchRequest:
    """A request as this broker would send it."""
    (fetcher,) = member.broker.replication._fetchers.values()
    fetcher.tell_all()
    request = fetcher._request()
    assert request is not None
    return request


# ---------------------------------------------------------------------- new replicas, restarts


def test_a_new_replica_begins_where_its_leader_does() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [1, 2], segment_bytes=1 << 20)
    cluster[2].kill()
    for _ in range(3):
        cluster[1].append("t", b"x" * 100, b"y" * 100)
    cluster[1].broker.replicas.delete_records(cluster[1].broker, cluster[1].partition("t"), 3)
    cluster[2].disk.remove_tree("t-0")
    cluster[2].start()
    cluster.advance(1000)
    assert cluster[2].log("t").log_start_offset == 3
    assert cluster[2].log("t").end_offset == 6
    assert cluster.isr("t") == [1, 2]
    cluster[1].append("t", b"z")
    cluster.advance(1000)
    assert cluster[1].content("t").endswith(cluster[2].content("t"))


def test_a_replica_that_is_too_far_behind_begins_anew() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[2].kill()
    for _ in range(3):
        cluster[1].append("t", b"b", b"c")
    leader = cluster[1].partition("t")
    leader.log.roll(cluster.now)
    cluster[1].broker.replicas.delete_records(cluster[1].broker, leader, 7)
    cluster[2].start()
    cluster.advance(1000)
    assert "t-0 begins anew at offset 7" in cluster[2].logger
    assert (cluster[2].log("t").log_start_offset, cluster[2].log("t").end_offset) == (7, 7)
    settle(cluster, "t", replicas=2)


def test_a_replica_starts_with_the_high_watermark_of_its_checkpoint() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[1].append("t", b"a", b"b")
    cluster.advance(10_000)
    cluster[1].append("t", b"c")
    cluster[2].kill()
    cluster[1].kill()
    cluster[2].start()
    assert cluster[2].partition("t").high_watermark == 2
    assert values(cluster[2], "t") == [b"a", b"b"]


def test_topics_are_deleted_and_moved_while_a_broker_is_away() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster.topic("u")
    cluster[1].append("t", b"a")
    cluster[3].kill()
    assert "t-0" in cluster[3].disk.list("")
    _delete(cluster[1], "t")
    cluster[3].start()
    cluster.advance(1000)
    assert [name for name in cluster[3].disk.list("") if name.startswith("t-")] == []
    assert "u-0" in cluster[3].disk.list("")
    settle(cluster, "u")


def _delete(member: Member, topic: str) -> None:
    response = member.connect().ask(DeleteTopicsRequest(topic_names=[topic]), 5, DeleteTopicsResponse)
    assert response.responses[0].error_code == Error.NONE


def test_whoever_waits_for_a_topic_that_is_deleted_is_told() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster.cut(1, 2)
    client = begin(cluster[1], "t", b"a", timeout_ms=100_000)
    _delete(cluster[2], "t")
    assert outcome(client).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


# ---------------------------------------------------------------------- the disk


def test_a_follower_says_that_it_has_what_is_synced_where_a_topic_asks_for_that() -> None:
    cluster = Cluster(2)
    cluster.topic("t", flush_messages=1)
    cluster[2].hold_syncs = True
    client = begin(cluster[1], "t", b"a")
    assert cluster[2].log("t").end_offset == 1
    assert not client.inbox
    cluster[2].hold_syncs = False
    cluster[2].release()
    cluster.run()
    assert outcome(client).error_code == Error.NONE


def test_a_follower_waits_for_all_syncs_before_it_says_what_it_has() -> None:
    """Two answers may come one after the other, if a role has changed in between."""
    cluster = Cluster(2)
    cluster.topic("t", [1, 2], [1, 2], flush_messages=1)
    cluster.cut(1, 2)
    cluster[2].hold_syncs = True
    (fetcher,) = cluster[2].broker.replication._fetchers.values()
    for index in (0, 1):
        request = produce("t", batch(b"a"), acks=1, partition=index)
        cluster[1].connect().ask(request, 9, ProduceResponse)
        records = memoryview(bytearray(cluster[1].content("t", index)))
        answer = FetchResponsePartition(partition_index=index, high_watermark=0, log_start_offset=0, records=records)
        topic = FetchResponseTopic(topic_id=cluster[2].partition("t", index).topic_id, partitions=[answer])
        fetcher._asked = 1
        fetcher._answered(fetcher._lost, FetchResponse(session_id=fetcher._session_id, responses=[topic]))
    cluster.heal()
    cluster[2].execute(cluster[2].broker._take_effects())
    for synced, ends in enumerate([[0, 0], [0, 0], [1, 1]]):
        cluster[2].release(min(synced, 1))
        cluster.run()
        assert [cluster[1].partition("t", index).followers[NodeId(2)].end_offset for index in (0, 1)] == ends


def test_a_leader_counts_what_is_synced_where_a_topic_asks_for_that() -> None:
    cluster = Cluster(2)
    cluster.topic("t", flush_messages=1)
    cluster[1].hold_syncs = True
    client = begin(cluster[1], "t", b"a")
    assert cluster.ends("t") == [(0, 1), (0, 1)]
    assert not client.inbox
    cluster[1].hold_syncs = False
    cluster[1].release()
    cluster.run()
    assert outcome(client).error_code == Error.NONE


def test_a_follower_with_a_full_disk_rests_and_goes_on() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[2].disk.fails_after = 0
    client = begin(cluster[1], "t", b"a", timeout_ms=60_000)
    assert "t-0 could not be replicated" in cluster[2].logger
    assert not client.inbox
    cluster.advance(5000)
    assert outcome(client).error_code == Error.NONE
    settle(cluster, "t", replicas=2)


def test_a_follower_with_a_bad_disk_says_so_once_and_does_not_ask_all_the_time() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    (fetcher,) = cluster[2].broker.replication._fetchers.values()
    for value in (b"a", b"b"):
        cluster[2].logger.lines.clear()
        cluster[2].disk.fails_after = 0
        begin(cluster[1], "t", value, acks=1)
        rests_ms = []
        for _ in range(100):
            cluster[2].disk.fails_after = 0
            cluster.advance(50)
            rests_ms.append(next(iter(fetcher._followed.values())).rest_ms)
        assert max(rests_ms) == cluster[2].broker.config.replica_fetch_backoff_ms
        assert len([line for line in cluster[2].logger.lines if "t-0 could not be replicated" in line]) == 1
        cluster[2].disk.fails_after = None
        settle(cluster, "t", replicas=2)


def test_a_leader_that_can_not_write_lets_another_lead() -> None:
    """Its disk may be full; those of its followers need not be."""
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"a")
    cluster[1].disk.fails_after = 0
    assert outcome(begin(cluster[1], "t", b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
    assert cluster.leader("t") is cluster[2]
    cluster[2].append("t", b"b")
    settle(cluster, "t")
    assert values(cluster[2], "t") == [b"a", b"b"]


def test_a_leader_that_can_not_write_leads_on_if_nobody_else_is_in_sync() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    cluster[2].kill()
    cluster[1].disk.fails_after = 0
    assert outcome(begin(cluster[1], "t", b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
    assert cluster.leader("t") is cluster[1]
    cluster[1].append("t", b"a")


def test_what_rests_for_a_moment_is_not_named_and_forgotten_at_once() -> None:
    cluster = Cluster(2)
    cluster.topic("t")
    (fetcher,) = cluster[2].broker.replication._fetchers.values()
    (followed,) = fetcher._followed.values()
    fetcher._rest(followed)
    fetcher._asked = ASKED_MAX  # so that nothing tells the leader of it
    fetcher._rested(followed, cluster[2].broker.now)
    request = fetcher._request()
    assert request is not None
    assert [topic.topic_id for topic in request.topics] == [followed.partition.topic_id]
    assert not request.forgotten_topics_data


def test_logs_with_many_batches_and_segments_are_the_same() -> None:
    cluster = Cluster(2, replica_fetch_max_bytes=3000, replica_fetch_response_max_bytes=5000)
    cluster.topic("t", [1, 2], [2, 1], internal_segment_bytes=2000)
    cluster.cut(1, 2)
    for number in range(40):
        for index in (0, 1):
            client = cluster[1 + index].connect()
            data = batch(b"%d" % number * (number + 1), b"x" * 17 * number)
            client.send(produce("t", data, partition=index, acks=1), 9)
    cluster.heal()
    cluster.advance(60_000)
    for index in (0, 1):
        assert len(cluster.contents("t", index)) == 1
        assert cluster.ends("t", index) == [(80, 80)] * 2
        assert len(cluster[1].log("t", index).segments) > 3


@pytest.mark.parametrize("nodes", [2, 3])
def test_one_session_serves_all_partitions_of_a_leader(nodes: int) -> None:
    cluster = Cluster(nodes)
    cluster.topic("t", *[[1, *range(2, nodes + 1)]] * 20)
    sessions = [session for session in cluster[1].broker.sessions if session.replica is not None]
    assert sorted(session.replica or 0 for session in sessions) == list(range(2, nodes + 1))
    assert [len(session.partitions) for session in sessions] == [20] * (nodes - 1)
    assert len(cluster[1].broker.sessions) == 0, "consumers' sessions are counted by themselves"
    name = TopicName("t")
    assert [len(cluster[1].broker.replicas.by_name[name][n].end_watchers) for n in range(20)] == [nodes - 1] * 20


# ---------------------------------------------------------------------- replicas move


def move(cluster: Cluster, topic: str, replicas: list[int] | None) -> None:
    partition = AlterPartitionReassignmentsRequestPartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=1000, topics=[AlterPartitionReassignmentsRequestTopic(name=topic, partitions=[partition])]
    )
    client = next(member for member in cluster.members.values() if member.up).connect()
    response = client.ask(request, 0, AlterPartitionReassignmentsResponse)
    assert [p.error_code for t in response.responses for p in t.partitions] == [Error.NONE]
    cluster.run()


def directories(cluster: Cluster, topic: str) -> list[int]:
    """The brokers that have files of a topic."""
    return [
        node
        for node, member in cluster.members.items()
        if any(name.startswith(f"{topic}-") for name in member.disk.list(""))
    ]


def test_a_replica_that_moved_away_leaves_no_files() -> None:
    cluster = Cluster(4)
    cluster.topic("t", [1, 2])
    cluster[1].append("t", b"a", b"b")
    move(cluster, "t", [3, 4])
    cluster.advance(2000)
    assert cluster.isr("t") == [3, 4]
    assert directories(cluster, "t") == [3, 4]
    assert {cluster[node].content("t") for node in (3, 4)} != {b""}
    leader = cluster.leader("t")
    leader.append("t", b"c")
    assert values(leader, "t") == [b"a", b"b", b"c"]
    assert outcome(begin(cluster[1], "t", b"x")).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_replica_that_moved_away_while_it_was_down_leaves_no_files() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2])
    cluster[1].append("t", b"a")
    cluster[2].kill()
    move(cluster, "t", [1, 3])
    cluster.advance(2000)
    assert directories(cluster, "t") == [1, 2, 3]
    cluster[2].start()
    cluster.advance(1000)
    assert directories(cluster, "t") == [1, 3]
    assert cluster.isr("t") == [1, 3]


def test_whoever_waits_at_a_leader_that_moves_away_is_told() -> None:
    cluster = Cluster(4)
    cluster.topic("t", [1, 2])
    cluster.cut(1, 2)
    client = begin(cluster[1], "t", b"a", version=10, timeout_ms=100_000)
    consumer = cluster[1].connect()
    consumer.send(fetch(("t", 0, 0), max_wait_ms=100_000), 12)
    cluster[2].kill()
    move(cluster, "t", [3, 4])
    cluster.advance(2000)
    assert cluster.isr("t") == [3, 4]
    response = client.take(ProduceResponse)
    assert produced(response).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert [e.node_id for e in response.node_endpoints] == [cluster.leader("t").node]
    assert consumer.take(FetchResponse).responses[0].partitions[0].error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert values(cluster.leader("t"), "t") == [b"a"], "the new replicas have it all the same"


def test_an_unclean_leader_takes_back_what_was_committed_and_all_agree() -> None:
    """A person may want that rather than no leader at all."""
    cluster = Cluster(2)
    cluster.topic("t", unclean_leader_election_enable="true")
    cluster[1].append("t", b"a")
    cluster[2].kill()
    cluster[1].append("t", b"gone")
    cluster.advance(6000)  # the high watermark is written down
    cluster[1].kill()
    cluster[1].end_session()
    cluster[2].start()
    cluster.advance(1000)
    assert cluster.leader("t") is cluster[2]
    cluster[2].append("t", b"b")
    cluster[1].start()
    settle(cluster, "t", replicas=2)
    assert values(cluster[2], "t") == [b"a", b"b"]
    assert "before its high watermark" in cluster[1].logger
