"""What clients are told while the metadata store is away, and what becomes of their changes when it is back."""

from collections.abc import Callable

import pytest

from broker.cluster_harness import Cluster
from broker.harness import Client
from cordwood.broker.proposals import PATIENCE_MS, REST_MS_MAX
from cordwood.errors import Error, PerhapsDone, StorageError, StoreAway
from cordwood.ids import TopicName
from cordwood.ports import SessionState
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
    AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopic,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
)

Outcome = tuple[int, str | None]
AWAY = StoreAway("no connection")
TIMEOUT_MS = 60_000


class Wish:
    """A change that a client asks for: how, what was answered, and whether it is done."""

    def __init__(
        self, request: object, version: int, answer: Callable[[Client], Outcome], done: Callable[..., bool]
    ) -> None:
        self.request = request
        self.version = version
        self.answer = answer
        self._done = done

    def is_done(self, cluster: Cluster) -> bool:
        return self._done(cluster[1].broker.image.topics)


def creation(name: str = "new", replicas: int = 2, timeout_ms: int = TIMEOUT_MS) -> Wish:
    topic = CreateTopicsRequestTopic(name=name, num_partitions=1, replication_factor=replicas)

    def answer(client: Client) -> Outcome:
        (one,) = client.take(CreateTopicsResponse).topics
        return one.error_code, one.error_message

    request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
    return Wish(request, 7, answer, lambda topics: name in topics)


def deletion() -> Wish:
    def answer(client: Client) -> Outcome:
        (one,) = client.take(DeleteTopicsResponse).responses
        return one.error_code, one.error_message

    request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="t")], timeout_ms=TIMEOUT_MS)
    return Wish(request, 6, answer, lambda topics: "t" not in topics)


def growth() -> Wish:
    def answer(client: Client) -> Outcome:
        (one,) = client.take(CreatePartitionsResponse).results
        return one.error_code, one.error_message

    topic = CreatePartitionsRequestTopic(name="t", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    return Wish(request, 3, answer, lambda topics: len(topics["t"].partitions) == 3)


def setting() -> Wish:
    def answer(client: Client) -> Outcome:
        (one,) = client.take(IncrementalAlterConfigsResponse).responses
        return one.error_code, one.error_message

    config = IncrementalAlterConfigsRequestConfig(name="retention.ms", config_operation=0, value="1234")
    resource = IncrementalAlterConfigsRequestResource(resource_type=2, resource_name="t", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    return Wish(request, 1, answer, lambda topics: topics["t"].config.get("retention.ms") == "1234")


def reassignment(replicas: list[int] | None) -> Wish:
    def answer(client: Client) -> Outcome:
        response = client.take(AlterPartitionReassignmentsResponse)
        (one,) = response.responses[0].partitions
        assert response.error_code == (one.error_code if one.error_code == Error.NOT_CONTROLLER else Error.NONE)
        return one.error_code, one.error_message

    def done(topics: dict[str, object]) -> bool:
        partition = topics["t"].partitions[0]  # type: ignore[attr-defined]
        return bool(partition.moving == (replicas is not None))

    part = AlterPartitionReassignmentsRequestPartition(partition_index=0, replicas=replicas)
    topic = AlterPartitionReassignmentsRequestTopic(name="t", partitions=[part])
    return Wish(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 1, answer, done)


def election() -> Wish:
    def answer(client: Client) -> Outcome:
        (one,) = client.take(ElectLeadersResponse).replica_election_results[0].partition_result
        return one.error_code, one.error_message

    topic = ElectLeadersRequestTopic(topic="t", partitions=[0])
    request = ElectLeadersRequest(election_type=0, topic_partitions=[topic], timeout_ms=TIMEOUT_MS)
    return Wish(request, 2, answer, lambda topics: topics["t"].partitions[0].leader == 2)


def on_its_own(cluster: Cluster) -> None:
    """Nothing to prepare."""


def led_by_the_second(cluster: Cluster) -> None:
    """The preferred leader was away, and is back and in sync."""
    cluster[2].kill()
    cluster[2].end_session()
    cluster.advance(1000)
    assert cluster.leader("t") is cluster[1]
    cluster[2].start()
    cluster.advance(2000)
    assert cluster.isr("t") == [1, 2]


def under_way(cluster: Cluster) -> None:
    """It is being moved to a broker that does not get it."""
    cluster.cut(2, 3)
    client = cluster[1].connect()
    wish = reassignment([2, 3])
    client.send(wish.request, wish.version)
    assert wish.answer(client) == (Error.NONE, None)
    assert cluster[1].broker.image.topics[TopicName("t")].partitions[0].moving


WISHES = {
    "creation": (creation, on_its_own),
    "deletion": (deletion, on_its_own),
    "growth": (growth, on_its_own),
    "setting": (setting, on_its_own),
    "move": (lambda: reassignment([2, 3]), lambda cluster: cluster.cut(2, 3)),
    "cancelled move": (lambda: reassignment(None), under_way),
    "election": (election, led_by_the_second),
}


@pytest.fixture(params=WISHES)
def wished(request: pytest.FixtureRequest) -> tuple[Cluster, Wish, Client]:
    """A cluster, what somebody will ask of its first broker, and that somebody."""
    wish, prepare = WISHES[request.param]
    cluster = Cluster(3, auto_leader_rebalance_enable=False)
    cluster.topic("t", [2, 1])
    prepare(cluster)
    made = wish()
    assert not made.is_done(cluster)
    return cluster, made, cluster[1].connect()


def test_a_change_waits_for_a_store_that_is_away(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = AWAY
    client.send(wish.request, wish.version)
    cluster.advance(PATIENCE_MS // 2)
    assert not client.inbox
    cluster[1].store_error = None
    cluster.advance(REST_MS_MAX)
    assert wish.answer(client) == (Error.NONE, None)
    assert wish.is_done(cluster)
    assert len(cluster[1].broker.proposals) == 0


def test_what_was_certainly_not_done_is_refused_with_a_code_to_try_again(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = AWAY
    client.send(wish.request, wish.version)
    cluster.advance(PATIENCE_MS + 1)
    error, message = wish.answer(client)
    assert error == Error.NOT_CONTROLLER
    if message is not None:
        assert "no connection. Try again." in message
    assert not wish.is_done(cluster)
    assert len(cluster[1].broker.proposals) == 0


def test_a_change_whose_answer_was_lost_counts_as_done_if_it_is(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].answers_to_lose = 1
    client.send(wish.request, wish.version)
    assert not client.inbox
    cluster.advance(REST_MS_MAX)
    assert wish.answer(client) == (Error.NONE, None)
    assert wish.is_done(cluster)


def test_a_change_that_was_lost_on_the_way_is_made_again(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = PerhapsDone("the connection broke")
    client.send(wish.request, wish.version)
    cluster[1].store_error = None
    cluster.advance(REST_MS_MAX)
    assert wish.answer(client) == (Error.NONE, None)
    assert wish.is_done(cluster)


def test_what_nobody_knows_is_told_as_that(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = PerhapsDone("the connection broke")
    client.send(wish.request, wish.version)
    cluster[1].store_error = AWAY
    cluster.advance(PATIENCE_MS + 1)
    error, message = wish.answer(client)
    assert error == Error.NETWORK_EXCEPTION
    assert message is None or "this may have been done or not" in message


def test_a_store_that_fails_is_no_reason_to_wait(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = StorageError("the disk is full")
    client.send(wish.request, wish.version)
    assert wish.answer(client) == (Error.UNKNOWN_SERVER_ERROR, "the disk is full")


# ---------------------------------------------------------------------- for how long


@pytest.mark.parametrize(("timeout_ms", "patience_ms"), [(700, 700), (0, PATIENCE_MS), (-1, PATIENCE_MS)])
def test_nobody_waits_longer_than_the_client(timeout_ms: int, patience_ms: int) -> None:
    cluster = Cluster(2)
    cluster[1].store_error = AWAY
    client, wish = cluster[1].connect(), creation(timeout_ms=timeout_ms)
    client.send(wish.request, wish.version)
    cluster.advance(patience_ms - 1)
    assert not client.inbox
    cluster.advance(1)
    assert wish.answer(client)[0] == Error.NOT_CONTROLLER


def test_what_rests_goes_on_at_once_when_the_session_does() -> None:
    cluster = Cluster(2)
    member = cluster[1]
    member.execute(member.broker.session_changed(SessionState.SUSPENDED, member.now))
    client, wish = member.connect(), creation()
    client.send(wish.request, wish.version)
    cluster.advance(3000)
    assert not client.inbox
    member.execute(member.broker.session_changed(SessionState.ALIVE, member.now))
    assert not client.inbox
    cluster.advance(0)
    assert wish.answer(client) == (Error.NONE, None)


# ---------------------------------------------------------------------- everybody's session ends


def sessions_end(cluster: Cluster) -> None:
    """The store was away for so long that it knows nobody any more."""
    for member in cluster.members.values():
        member.lose_session()
    for member in cluster.members.values():
        member.end_session()


def test_nothing_is_planned_for_a_cluster_in_which_nobody_has_registered_again() -> None:
    cluster = Cluster(3)
    sessions_end(cluster)
    client, wish = cluster[1].connect(), creation(replicas=3)
    client.send(wish.request, wish.version)
    cluster.advance(300)
    assert not client.inbox
    for member in cluster.members.values():
        member.regain_session()
    cluster.advance(0)
    assert wish.answer(client) == (Error.NONE, None)


# ---------------------------------------------------------------------- whose was it


def test_a_topic_that_somebody_else_made_meanwhile_is_not_this_requests() -> None:
    cluster = Cluster(2)
    cluster[1].store_error = PerhapsDone("the connection broke")
    client, wish = cluster[1].connect(), creation("t")
    client.send(wish.request, wish.version)
    cluster[1].store_error = None
    other = cluster[2].connect()
    other.send(wish.request, wish.version)
    assert wish.answer(other) == (Error.NONE, None)
    cluster.advance(REST_MS_MAX)
    assert wish.answer(client)[0] == Error.TOPIC_ALREADY_EXISTS


def test_a_topic_made_after_a_deletion_that_was_done_stays() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[1].answers_to_lose = 1
    client, wish = cluster[1].connect(), deletion()
    client.send(wish.request, wish.version)
    other, again = cluster[2].connect(), creation("t")
    other.send(again.request, again.version)
    assert again.answer(other) == (Error.NONE, None)
    cluster.advance(REST_MS_MAX)
    assert wish.answer(client) == (Error.NONE, None)
    assert again.is_done(cluster)
