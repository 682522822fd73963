"""What clients are told while the metadata store is away, and what becomes of their changes when it is back."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from broker.cluster_harness import Cluster
from broker.harness import Client
from cordwood.broker.membership import REUNION_MS
from cordwood.broker.proposals import PATIENCE_MS, REST_MS, REST_MS_MAX
from cordwood.cluster.states import STATES_MAX
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
from cordwood.wire.messages import CreateTopicsRequestAssignment as Assignment

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


def restart(cluster: Cluster, node: int) -> None:
    """It is away for long enough to lose what it led."""
    cluster[node].kill()
    cluster[node].end_session()
    cluster.advance(1000)
    cluster[node].start()
    cluster.advance(2000)


def led_by_the_second(cluster: Cluster) -> None:
    """The preferred leader was away, and is back and in sync."""
    restart(cluster, 2)
    assert cluster.leader("t") is cluster[1]
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


def test_what_nobody_knows_is_told_as_that_and_not_tried_again(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].store_error = PerhapsDone("the connection broke")
    client.send(wish.request, wish.version)
    cluster[1].store_error = None
    error, message = wish.answer(client)
    assert error == Error.NETWORK_EXCEPTION
    assert message is None or "this may have been done or not" in message
    cluster.advance(PATIENCE_MS)
    assert not wish.is_done(cluster)


def test_what_was_done_without_an_answer_is_left_for_the_client_to_see(wished: tuple[Cluster, Wish, Client]) -> None:
    cluster, wish, client = wished
    cluster[1].answers_to_lose = 1
    client.send(wish.request, wish.version)
    assert wish.is_done(cluster)
    before = list(cluster.store.load())
    cluster.advance(PATIENCE_MS)
    assert wish.answer(client)[0] == Error.NETWORK_EXCEPTION
    assert list(cluster.store.load()) == before


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


def test_nothing_is_planned_before_those_are_back_who_were_there() -> None:
    cluster = Cluster(3)
    sessions_end(cluster)
    client, wish = cluster[1].connect(), creation(replicas=3)
    client.send(wish.request, wish.version)
    for member in cluster.members.values():
        cluster.advance(300)
        assert not client.inbox
        member.regain_session()
    cluster.advance(0)
    assert wish.answer(client) == (Error.NONE, None)


def test_who_does_not_come_back_is_not_waited_for_without_end() -> None:
    cluster = Cluster(3)
    sessions_end(cluster)
    client, wish = cluster[1].connect(), creation(replicas=1)
    client.send(wish.request, wish.version)
    cluster[1].regain_session()
    cluster.advance(REUNION_MS - 1)
    assert not client.inbox
    cluster.advance(1)
    assert wish.answer(client) == (Error.NONE, None)


def test_nobody_is_told_for_good_what_is_so_for_a_moment() -> None:
    """A cluster in which nobody has registered again has no broker for a topic."""
    cluster = Cluster(3)
    sessions_end(cluster)
    client, wish = cluster[1].connect(), creation(replicas=3)
    client.send(wish.request, wish.version)
    cluster.advance(PATIENCE_MS)
    assert wish.answer(client)[0] == Error.NOT_CONTROLLER


# ---------------------------------------------------------------------- in which order


def setting_to(value: int) -> Wish:
    wish = setting()
    wish.request.resources[0].configs[0].value = str(value)  # type: ignore[attr-defined]
    return wish


def retention(cluster: Cluster) -> str | None:
    return cluster[1].broker.image.topics[TopicName("t")].config.get("retention.ms")


def test_what_comes_later_is_done_later() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[1].store_error = AWAY
    client, first, second = cluster[1].connect(), setting_to(1), setting_to(2)
    client.send(first.request, first.version)
    cluster.advance(REST_MS)
    cluster[1].store_error = None
    client.send(second.request, second.version)
    cluster.advance(REST_MS_MAX)
    assert first.answer(client) == second.answer(client) == (Error.NONE, None)
    assert retention(cluster) == "2"


def test_what_another_change_keeps_waiting_is_not_overtaken() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[1].conflicts = 1
    client = cluster[1].connect()
    for value in (1, 2):
        cluster.queue(partial(client.send, setting_to(value).request, 1))
    cluster.run()
    assert retention(cluster) == "2"


def busy_with(cluster: Cluster, wish: Wish, *others: tuple[Client, Wish]) -> Client:
    """The store has the first wish when the others come; who asked for the first."""
    client = cluster[1].connect()
    for asking, one in ((client, wish), *others):
        cluster.queue(partial(asking.send, one.request, one.version))
    cluster.run()
    return client


def test_a_new_topic_is_there_for_what_was_asked_behind_it() -> None:
    cluster = Cluster(2)
    client, made, changed = cluster[1].connect(), creation("t"), setting()
    busy_with(cluster, creation("x"), (client, made), (client, changed))
    assert made.answer(client) == changed.answer(client) == (Error.NONE, None)


def test_all_portions_of_a_wish_come_before_what_was_asked_behind_it() -> None:
    cluster = Cluster(2)
    first, second, last = (cluster.topic(name, [1, 2]) for name in ("first", "second", "last"))
    unknown = [f"no-{number}" for number in range(STATES_MAX)]  # some portions, although there is nothing to do in them
    client, made = cluster[1].connect(), creation(last)

    def answer(client: Client) -> Outcome:
        found = client.take(DeleteTopicsResponse).responses
        return max(one.error_code for one in found), None

    topics = [DeleteTopicsRequestTopic(name=name) for name in (first, *unknown[:200], second, *unknown[200:], last)]
    deleted = Wish(DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 6, answer, lambda _: True)
    busy_with(cluster, creation("x"), (client, deleted), (client, made))
    assert deleted.answer(client) == (Error.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert made.answer(client) == (Error.NONE, None)


# ---------------------------------------------------------------------- a store that does not answer


def test_a_slow_store_is_waited_for_as_long_as_the_client_does_and_nobody_else_must() -> None:
    cluster = Cluster(2)
    cluster.deaf.add(cluster[1])
    client, other = cluster[1].connect(), cluster[1].connect()
    wish, behind = creation("new"), creation("other")
    client.send(wish.request, wish.version)
    other.send(behind.request, behind.version)
    cluster.advance(PATIENCE_MS)
    assert behind.answer(other)[0] == Error.NOT_CONTROLLER
    cluster.advance(TIMEOUT_MS - PATIENCE_MS - 1)
    assert not client.inbox
    cluster.advance(1)
    assert wish.answer(client)[0] == Error.NETWORK_EXCEPTION


def test_a_change_that_the_store_does_not_answer_is_in_doubt_and_those_behind_it_are_not() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster.deaf.add(cluster[1])
    client, other, wish = cluster[1].connect(), cluster[1].connect(), setting()
    client.send(wish.request, wish.version)
    other.send(wish.request, wish.version)
    cluster.advance(PATIENCE_MS - 1)
    assert not client.inbox
    cluster.advance(1)
    assert wish.answer(client)[0] == Error.NETWORK_EXCEPTION
    assert wish.answer(other)[0] == Error.NOT_CONTROLLER


# ---------------------------------------------------------------------- a client that leaves


def test_what_rests_goes_with_the_client_that_wanted_it() -> None:
    cluster = Cluster(2)
    cluster[1].store_error = AWAY
    client, wish = cluster[1].connect(), creation()
    client.send(wish.request, wish.version)
    client.disconnect()
    assert len(cluster[1].broker.proposals) == 0
    cluster[1].store_error = None
    cluster.advance(PATIENCE_MS)
    assert not wish.is_done(cluster)


def test_what_a_client_left_with_the_store_is_not_tried_again() -> None:
    """Meanwhile the topic that it wanted gone may be another."""
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    client, wish = cluster[1].connect(), deletion()
    cluster[1].store_error = AWAY
    cluster.queue(partial(client.send, wish.request, wish.version))
    cluster.queue(client.disconnect)
    cluster.run()
    assert len(cluster[1].broker.proposals) == 0
    cluster[1].store_error = None
    cluster.advance(PATIENCE_MS)
    assert not wish.is_done(cluster)


def test_what_stands_in_line_goes_with_its_client_when_the_store_does_not_answer() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster.deaf.add(cluster[1])
    client, other = cluster[1].connect(), cluster[1].connect()
    client.send(setting().request, 1)
    cluster.advance(PATIENCE_MS // 2)
    other.send(creation().request, 7)
    other.disconnect()
    assert len(cluster[1].broker.proposals) == 2
    cluster.advance(PATIENCE_MS // 2)
    assert len(cluster[1].broker.proposals) == 1, "the store has the first yet"


# ---------------------------------------------------------------------- large wishes, in part


def creations(number: int) -> CreateTopicsRequest:
    topics = [CreateTopicsRequestTopic(name=f"t{n}", num_partitions=10, replication_factor=1) for n in range(number)]
    return CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)


def test_an_answer_that_says_that_something_was_done_asks_nobody_to_send_all_of_it_again() -> None:
    """Java's client does so if it finds a single NOT_CONTROLLER."""
    cluster = Cluster(2)
    cluster[1].writes_left = 1
    client = cluster[1].connect()
    client.send(creations(60), 7)
    cluster.advance(PATIENCE_MS)
    answers = Counter(topic.error_code for topic in client.take(CreateTopicsResponse).topics)
    assert answers.keys() == {Error.NONE, Error.NETWORK_EXCEPTION}
    assert answers[Error.NONE] == sum(name.startswith("t") for name in cluster[2].broker.image.topics)


def test_an_answer_that_says_that_nothing_was_done_may_be_sent_again() -> None:
    cluster = Cluster(2)
    cluster.topic("t0", [1])
    cluster[1].writes_left = 0
    client = cluster[1].connect()
    client.send(creations(60), 7)
    cluster.advance(PATIENCE_MS)
    topics = {topic.name: topic.error_code for topic in client.take(CreateTopicsResponse).topics}
    assert topics.pop("t0") == Error.TOPIC_ALREADY_EXISTS, "what was known to be wrong with one is told"
    assert (len(topics), set(topics.values())) == (59, {Error.NOT_CONTROLLER})


def test_no_portion_is_sent_when_the_patience_is_over() -> None:
    cluster = Cluster(2)
    cluster[1].store_error = AWAY
    client = cluster[1].connect()
    client.send(creations(60), 7)
    cluster.advance(PATIENCE_MS - 1)
    cluster[1].store_error = None
    cluster.advance(1)
    topics = client.take(CreateTopicsResponse).topics
    assert (len(topics), {topic.error_code for topic in topics}) == (60, {Error.NOT_CONTROLLER})
    assert not any(name.startswith("t") for name in cluster[1].broker.image.topics)


def test_portions_with_nothing_to_do_are_many() -> None:
    cluster = Cluster(2)
    unknown = [DeleteTopicsRequestTopic(name=f"unknown-{number}") for number in range(20_000)]
    response = cluster[1].connect().ask(DeleteTopicsRequest(topics=unknown), 6, DeleteTopicsResponse)
    assert {one.error_code for one in response.responses} == {Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(response.responses) == 20_000


# ---------------------------------------------------------------------- from which metadata


def hang(cluster: Cluster) -> None:
    """The first broker has no connection to the store, and hears nothing."""
    cluster.deaf.add(cluster[1])
    cluster[1].execute(cluster[1].broker.session_changed(SessionState.SUSPENDED, cluster[1].now))


def hear_again(cluster: Cluster) -> None:
    cluster.deaf.clear()
    cluster[1].regain_session()
    cluster.advance(0)


def test_what_others_made_meanwhile_is_found_and_deleted() -> None:
    cluster = Cluster(2)
    hang(cluster)
    client, wish = cluster[1].connect(), deletion()
    client.send(wish.request, wish.version)
    other, made = cluster[2].connect(), creation("t")
    other.send(made.request, made.version)
    assert made.answer(other) == (Error.NONE, None)
    hear_again(cluster)
    assert wish.answer(client) == (Error.NONE, None)
    assert wish.is_done(cluster)


def test_an_election_everywhere_is_one_of_what_is_there_when_it_happens() -> None:
    cluster = Cluster(3, auto_leader_rebalance_enable=False)
    restart(cluster, 1)  # it is not the controller any more
    hang(cluster)
    client = cluster[1].connect()
    client.send(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS), 2)
    other, made = cluster[3].connect(), creation("t")
    made.request.topics[0].assignments = [Assignment(partition_index=0, broker_ids=[2, 3])]  # type: ignore[attr-defined]
    made.request.topics[0].num_partitions = made.request.topics[0].replication_factor = -1  # type: ignore[attr-defined]
    other.send(made.request, made.version)
    assert made.answer(other) == (Error.NONE, None)
    restart(cluster, 2)
    assert cluster.isr("t") == [2, 3]
    assert cluster.leader("t") is cluster[3]
    hear_again(cluster)
    (topic,) = client.take(ElectLeadersResponse).replica_election_results
    assert topic.topic == "t"
    assert cluster.leader("t") is cluster[2]
