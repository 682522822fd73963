"""Somebody has edited the shared metadata: no broker stops, none deletes or elects anything because of it."""

import pytest

from broker.cluster_harness import Cluster, Member
from broker.harness import batch, fetch, produce, produced, read
from cordwood.cluster.layout import partition_data, partition_path, topic_path
from cordwood.errors import Error
from cordwood.ids import NodeId, TopicName
from cordwood.ports import Create, Delete, Set, StoreOp
from cordwood.wire.messages import (
    ElectLeadersRequest,
    ElectLeadersRequestTopic,
    ElectLeadersResponse,
    FetchResponse,
    ProduceResponse,
)

ONE = NodeId(1)
T = TopicName("t")
TOPIC, STATE = topic_path(T), partition_path(T, 0)


def with_record() -> Cluster:
    """Two brokers with a topic and a record in it."""
    cluster = Cluster(2)
    cluster.topic(T)
    assert produced(cluster[1].connect().ask(produce(T, batch(b"a")), 9, ProduceResponse)).error_code == Error.NONE
    return cluster


def edit(cluster: Cluster, operation: StoreOp) -> None:
    change = cluster.store.multi([operation])
    for member in cluster.members.values():
        member.deliver(change)
    cluster.run()


def spoil(cluster: Cluster, path: str) -> bytes:
    """What the node held."""
    data = next(node.data for node in cluster.store.load() if node.path == path)
    edit(cluster, Set(path, b"?", None))
    return data


def spoil_while_all_are_away(cluster: Cluster, path: str) -> bytes:
    for member in cluster.members.values():
        member.kill()
    data = spoil(cluster, path)
    for member in cluster.members.values():
        member.start()
    cluster.advance(5000)
    return data


def values(member: Member) -> list[bytes | None]:
    return read(member.connect().ask(fetch((T, 0, 0)), 12, FetchResponse))[T, 0]


@pytest.mark.parametrize("path", [TOPIC, STATE])
def test_what_makes_no_sense_is_said_at_start_too(path: str) -> None:
    cluster = with_record()
    cluster[2].kill()
    spoil(cluster, path)
    assert f"the metadata at {path} makes no sense" in cluster[1].logger
    assert path not in cluster[2].logger
    cluster[2].start()
    assert f"the metadata at {path} makes no sense" in cluster[2].logger


def test_files_of_a_topic_that_makes_no_sense_stay_where_they_are() -> None:
    cluster = with_record()
    data = spoil_while_all_are_away(cluster, TOPIC)
    for member in cluster.members.values():
        assert [name for name in member.disk.list("") if name.startswith("t-")] == ["t-0"]
    edit(cluster, Set(TOPIC, data, None))
    cluster.advance(5000)
    assert values(cluster.leader(T)) == [b"a"]
    assert cluster.isr(T) == [1, 2]


def test_files_of_a_topic_that_makes_no_sense_stay_when_everything_is_read_anew() -> None:
    cluster = with_record()
    spoil(cluster, TOPIC)
    cluster[2].lose_session()
    cluster[2].end_session()
    cluster[2].regain_session()
    assert "t-0" in cluster[2].disk.list("")
    assert cluster[2].log(T).end_offset == 1


def test_a_state_that_makes_no_sense_is_not_taken_for_a_new_partitions() -> None:
    """Whoever came first would lead, with whatever it has, in an epoch that was over long ago."""
    cluster = with_record()
    data = spoil_while_all_are_away(cluster, STATE)
    assert next(node.data for node in cluster.store.load() if node.path == STATE) == b"?"
    edit(cluster, Set(STATE, data, None))
    cluster.advance(5000)
    assert values(cluster.leader(T)) == [b"a"]


def test_nobody_is_elected_where_the_state_makes_no_sense() -> None:
    cluster = with_record()
    spoil_while_all_are_away(cluster, STATE)
    request = ElectLeadersRequest(
        election_type=1, topic_partitions=[ElectLeadersRequestTopic(topic=T, partitions=[0])], timeout_ms=1000
    )
    response = cluster[1].connect().ask(request, 2, ElectLeadersResponse)
    (answer,) = response.replica_election_results[0].partition_result
    assert answer.error_code == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert answer.error_message is not None
    assert STATE in answer.error_message


def test_a_broker_of_no_number_comes_and_goes() -> None:
    cluster = with_record()
    edit(cluster, Create("/brokers/ids/seven", b"hello"))
    edit(cluster, Delete("/brokers/ids/seven"))
    assert values(cluster[1]) == [b"a"]


def test_a_partition_whose_state_was_deleted_goes_on_after_the_last_epoch_of_its_log() -> None:
    """The metadata begins again with epoch 0. Whoever led in that would contradict what is in the log."""
    cluster = with_record()
    for _ in range(3):
        leader = cluster.leader(T)
        leader.kill()
        cluster.leader(T).append(T, b"b")
        leader.start()
        cluster.advance(2000)
    latest = cluster[1].log(T).latest_epoch
    assert latest >= 3
    for member in cluster.members.values():
        member.kill()
    edit(cluster, Delete(STATE))
    for member in cluster.members.values():
        member.start()
    cluster.advance(5000)
    cluster.leader(T).append(T, b"c")
    assert cluster.leader(T).partition(T).leader_epoch > latest
    assert values(cluster.leader(T)) == [b"a", b"b", b"b", b"b", b"c"]
    cluster.advance(1000)
    assert (cluster.isr(T), len(cluster.contents(T))) == ([1, 2], 1)
    assert "had forgotten leader epochs" in cluster.leader(T).logger


def test_a_role_that_came_while_the_broker_was_fenced_is_overtaken_too() -> None:
    cluster = with_record()
    member, partition = cluster[1], cluster[1].partition(T)
    partition.log.begin_epoch(7)
    member.hold_metadata = True
    member.broker.membership._lapsed = True
    member.broker.membership._match()
    edit(cluster, Set(STATE, partition_data(leader=ONE, leader_epoch=2, isr=[ONE], controller_epoch=1), None))
    assert (partition.leader_epoch, partition.leading) == (2, False)
    member.hold_metadata = False
    member.broker.membership._lapsed = False
    member.broker.membership._match()
    member.execute(member.broker._take_effects())
    cluster.run()
    assert (partition.leader_epoch > 7, partition.leading) == (True, True)
