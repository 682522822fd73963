"""Fetch sessions (KIP-227): incremental requests and answers, their epochs, their end."""

from uuid import UUID

import pytest

from broker.harness import Client, Harness, batch, codes, fetch, read, values_of
from cordwood.broker.broker import FETCH_SESSION_EVICTION_MS
from cordwood.broker.fetch_sessions import next_epoch
from cordwood.errors import Error
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchRequestForgottenTopic,
    FetchRequestPartition,
    FetchRequestTopic,
    FetchResponse,
)

SIZE = len(batch(b"0123456789"))


class Session:
    """A client's side of a fetch session."""

    def __init__(self, client: Client, *wanted: tuple[str, int, int], version: int = 12, **more: int) -> None:
        self._client = client
        self._version = version
        self.first = client.ask(fetch(*wanted, session_epoch=0, **more), version, FetchResponse)
        assert self.first.error_code == Error.NONE
        self.id = self.first.session_id
        self.epoch = 1

    def send(self, *wanted: tuple[str, int, int], forget: tuple[tuple[str, int], ...] = (), **more: int) -> None:
        request = fetch(*wanted, session_id=self.id, session_epoch=self.epoch, **more)
        request.forgotten_topics_data = [
            FetchRequestForgottenTopic(topic=topic, partitions=[partition]) for topic, partition in forget
        ]
        self.epoch += 1
        self._client.send(request, self._version)

    def next(self, *wanted: tuple[str, int, int], **more: object) -> FetchResponse:
        self.send(*wanted, **more)  # type: ignore[arg-type]
        return self._client.take(FetchResponse)


def sessions(harness: Harness) -> int:
    return len(harness.broker.sessions)


@pytest.mark.parametrize("version", range(7, 13))
def test_a_full_fetch_opens_a_session_and_names_everything(version: int) -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    session = Session(harness.connect(), ("t", 0, 0), ("t", 1, 0), version=version)
    assert session.id > 0
    assert codes(session.first) == {("t", 0): 0, ("t", 1): 0}


@pytest.mark.parametrize("version", [4, 5, 6])
def test_versions_without_sessions_get_none(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    harness.connect().ask(fetch(("t", 0, 0)), version, FetchResponse)
    assert sessions(harness) == 0
    assert harness.watchers() == 0


def test_a_final_epoch_asks_for_no_session() -> None:
    harness = Harness()
    harness.topic("t")
    response = harness.connect().ask(fetch(("t", 0, 0), session_epoch=-1), 12, FetchResponse)
    assert response.session_id == 0
    assert sessions(harness) == 0


def test_an_incremental_answer_names_only_what_has_news() -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    session = Session(harness.connect(), ("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
    assert session.next().responses == []
    harness.append("t", b"x", partition=1)
    assert read(session.next()) == {("t", 1): [b"x"]}
    response = session.next(("t", 1, 1))
    assert response.session_id == session.id
    assert response.responses == []


def test_what_was_not_taken_comes_again() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"x")
    session = Session(harness.connect(), ("t", 0, 0))
    assert read(session.next()) == {("t", 0): [b"x"]}
    assert read(session.next()) == {("t", 0): [b"x"]}
    assert session.next(("t", 0, 1)).responses == []


def test_partitions_join_and_leave_a_session() -> None:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")
    session = Session(harness.connect(), ("a", 0, 0))
    assert codes(session.next(("b", 0, 0))) == {("b", 0): 0}
    harness.append("b", b"x")
    assert read(session.next(forget=(("a", 0),))) == {("b", 0): [b"x"]}
    harness.append("a", b"unread")
    assert session.next(("b", 0, 1)).responses == []
    assert harness.watchers() == 1


def test_forgetting_what_is_not_in_the_session_does_nothing() -> None:
    harness = Harness()
    harness.topic("a")
    session = Session(harness.connect(), ("a", 0, 0))
    assert session.next(forget=(("b", 0), ("a", 9))).session_id == session.id


def test_a_session_without_partitions_ends() -> None:
    harness = Harness()
    harness.topic("a")
    session = Session(harness.connect(), ("a", 0, 0))
    response = session.next(forget=(("a", 0),), max_wait_ms=1000)
    assert (response.session_id, response.error_code, response.responses) == (0, Error.NONE, [])
    assert sessions(harness) == 0
    assert harness.watchers() == 0


def test_an_incremental_fetch_waits_for_news() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    client = harness.connect()
    session = Session(client, ("t", 0, 0), ("t", 1, 0))
    session.send(max_wait_ms=500)
    assert not client.inbox
    harness.append("t", b"x", partition=1)
    assert read(client.take(FetchResponse)) == {("t", 1): [b"x"]}
    session.send(("t", 1, 1), max_wait_ms=500)
    harness.advance(500)
    assert client.take(FetchResponse).responses == []


def test_the_first_fetch_of_a_session_may_wait_too() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), session_epoch=0, max_wait_ms=500), 12)
    harness.append("t", b"x")
    response = client.take(FetchResponse)
    assert response.session_id > 0
    assert read(response) == {("t", 0): [b"x"]}


def test_a_client_that_disconnects_while_it_waits_leaves_its_session_usable() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    session.send(max_wait_ms=500)
    client.disconnect()
    harness.advance(500)
    harness.append("t", b"x")
    session._client = harness.connect()
    assert read(session.next()) == {("t", 0): [b"x"]}


# ---------------------------------------------------------------------- news other than records


def test_a_moved_high_watermark_is_news_even_without_room() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    session = Session(harness.connect(), ("t", 0, 0), ("t", 1, 0))
    harness.append("t", b"0123456789", partition=0)
    harness.append("t", b"0123456789", partition=1)
    response = session.next(max_bytes=SIZE)
    assert {key: len(values) for key, values in read(response).items()} == {("t", 0): 1, ("t", 1): 0}
    assert response.responses[0].partitions[1].high_watermark == 1


def test_a_moved_start_is_news() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"a", b"b")
    client = harness.connect()
    session = Session(client, ("t", 0, 2))
    assert session.next().responses == []
    session.send(max_wait_ms=500)
    part = DeleteRecordsRequestPartition(partition_index=0, offset=1)
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequestTopic(name="t", partitions=[part])])
    harness.connect().ask(request, 2, DeleteRecordsResponse)
    assert client.take(FetchResponse).responses[0].partitions[0].log_start_offset == 1


def test_an_error_is_repeated_until_it_is_gone() -> None:
    harness = Harness(auto_create_topics_enable="false")
    harness.topic("t")
    session = Session(harness.connect(), ("t", 0, 0), ("late", 0, 0))
    for _ in range(2):
        assert codes(session.next()) == {("late", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
    harness.topic("late")
    assert codes(session.next()) == {("late", 0): Error.NONE}
    assert session.next().responses == []
    harness.append("late", b"x")
    assert read(session.next()) == {("late", 0): [b"x"]}


def test_a_deleted_topic_is_told_in_its_sessions() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    session.send(max_wait_ms=500)
    harness.connect().ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    assert codes(client.take(FetchResponse)) == {("t", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
    harness.topic("t")
    harness.append("t", b"of the new topic")
    assert read(session.next()) == {("t", 0): [b"of the new topic"]}


def test_an_answer_that_was_full_starves_nobody() -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    for partition in range(3):
        for _ in range(10):
            harness.append("t", b"0123456789", partition=partition)
    offsets = [0, 0, 0]
    session = Session(harness.connect(), *(("t", p, 0) for p in range(3)), max_bytes=SIZE)
    response = session.first
    for _ in range(8):
        for (_, partition), values in read(response).items():
            offsets[partition] += len(values)
        response = session.next(*(("t", p, offsets[p]) for p in range(3) if offsets[p]), max_bytes=SIZE)
    assert max(offsets) - min(offsets) <= 1, offsets


def test_only_partitions_with_news_are_looked_at() -> None:
    harness = Harness()
    harness.topic("t", partitions=50)
    session = Session(harness.connect(), *(("t", p, 0) for p in range(50)))
    (reader,) = harness.broker.sessions
    assert len(reader.news) == 0
    harness.append("t", b"x", partition=33)
    assert [entry.index for entry in reader.news] == [33]
    assert read(session.next()) == {("t", 33): [b"x"]}


# ---------------------------------------------------------------------- epochs, ids, ends


def test_an_unknown_session_is_refused() -> None:
    harness = Harness()
    response = harness.connect().ask(fetch(session_id=77, session_epoch=1), 12, FetchResponse)
    assert (response.error_code, response.session_id) == (Error.FETCH_SESSION_ID_NOT_FOUND, 0)


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_wrong_epoch_is_refused_and_the_session_lives_on(epoch: int) -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    request = fetch(session_id=session.id, session_epoch=epoch)
    assert client.ask(request, 12, FetchResponse).error_code == Error.INVALID_FETCH_SESSION_EPOCH
    assert session.next().error_code == Error.NONE


def test_a_repeated_request_is_refused_by_its_epoch() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    session.next()
    request = fetch(session_id=session.id, session_epoch=1)
    assert client.ask(request, 12, FetchResponse).error_code == Error.INVALID_FETCH_SESSION_EPOCH


def test_epochs_begin_again_at_one() -> None:
    assert next_epoch(1) == 2
    assert next_epoch(2**31 - 1) == 1


def test_a_session_by_name_can_not_go_on_by_id() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    request = FetchRequest(min_bytes=1, session_id=session.id, session_epoch=1)
    assert client.ask(request, 13, FetchResponse).error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR
    request.session_epoch = 9
    assert client.ask(request, 13, FetchResponse).error_code == Error.INVALID_FETCH_SESSION_EPOCH


def test_a_session_by_id_can_not_go_on_by_name() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    wanted = [FetchRequestPartition(partition=0, partition_max_bytes=1000)]
    topic = FetchRequestTopic(topic_id=harness.broker.image.topics[TopicName("t")].id, partitions=wanted)
    first = client.ask(FetchRequest(session_epoch=0, min_bytes=0, topics=[topic]), 13, FetchResponse)
    request = fetch(session_id=first.session_id, session_epoch=1)
    assert client.ask(request, 12, FetchResponse).error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_by_id_follows_its_topic_and_not_its_name() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    wanted = [FetchRequestPartition(partition=0, partition_max_bytes=1000)]
    topic_id = harness.broker.image.topics[TopicName("t")].id
    topics = [FetchRequestTopic(topic_id=i, partitions=wanted) for i in (topic_id, UUID(int=3))]
    first = client.ask(FetchRequest(session_epoch=0, min_bytes=0, topics=topics), 13, FetchResponse)
    assert [t.partitions[0].error_code for t in first.responses] == [0, Error.UNKNOWN_TOPIC_ID]
    harness.append("t", b"x")
    forgotten = [FetchRequestForgottenTopic(topic_id=UUID(int=3), partitions=[0])]
    request = FetchRequest(session_id=first.session_id, session_epoch=1, min_bytes=0, forgotten_topics_data=forgotten)
    (answer,) = client.ask(request, 13, FetchResponse).responses
    assert values_of(answer.partitions[0].records) == [b"x"]
    client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    harness.topic("t")
    request = FetchRequest(session_id=first.session_id, session_epoch=2, min_bytes=0)
    (answer,) = client.ask(request, 13, FetchResponse).responses
    assert answer.partitions[0].error_code == Error.UNKNOWN_TOPIC_ID


def test_a_full_fetch_replaces_the_session_that_it_names() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    response = client.ask(fetch(("t", 0, 0), session_id=session.id, session_epoch=0), 12, FetchResponse)
    assert response.session_id not in (0, session.id)
    assert sessions(harness) == 1
    assert session.next().error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_client_closes_its_session() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    response = client.ask(fetch(session_id=session.id, session_epoch=-1), 12, FetchResponse)
    assert (response.session_id, response.error_code) == (0, Error.NONE)
    assert sessions(harness) == 0
    assert harness.watchers() == 0


def test_a_session_closed_by_another_connection_while_its_reader_waits() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    session.send(max_wait_ms=500)
    harness.connect().ask(fetch(session_id=session.id, session_epoch=-1), 12, FetchResponse)
    harness.append("t", b"x")
    harness.advance(500)
    assert client.take(FetchResponse).responses == []
    assert session.next().error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_two_requests_of_one_session_at_once_are_both_answered() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    session.send(max_wait_ms=100)
    session.send(max_wait_ms=1000)
    harness.advance(100)
    assert client.take(FetchResponse).responses == []
    harness.append("t", b"x")
    assert read(client.take(FetchResponse)) == {("t", 0): [b"x"]}


# ---------------------------------------------------------------------- how many


def test_without_a_free_slot_a_reader_gets_no_session() -> None:
    harness = Harness(max_incremental_fetch_session_cache_slots=1)
    harness.topic("t")
    Session(harness.connect(), ("t", 0, 0))
    client = harness.connect()
    response = client.ask(fetch(("t", 0, 0), session_epoch=0), 12, FetchResponse)
    assert response.session_id == 0
    assert sessions(harness) == 1
    assert harness.watchers() == 1


def test_a_reader_that_waited_and_got_no_session_leaves_no_watcher() -> None:
    harness = Harness(max_incremental_fetch_session_cache_slots=0)
    harness.topic("t")
    client = harness.connect()
    client.send(fetch(("t", 0, 0), session_epoch=0, max_wait_ms=500), 12)
    harness.append("t", b"x")
    assert client.take(FetchResponse).session_id == 0
    assert harness.watchers() == 0


def test_all_sessions_together_remember_so_many_partitions() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    client = harness.connect()
    session = Session(client, ("t", 0, 0))
    harness.broker.sessions.partitions_max = 1
    response = client.ask(fetch(("t", 0, 0), session_epoch=0), 12, FetchResponse)
    assert response.session_id == 0
    assert session.next().error_code == Error.NONE
    assert session.next(("t", 1, 0)).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    assert sessions(harness) == 0
    assert harness.watchers() == 0


def test_an_idle_session_gives_way() -> None:
    harness = Harness(max_incremental_fetch_session_cache_slots=2)
    harness.topic("t")
    client = harness.connect()
    idle, used = Session(client, ("t", 0, 0)), Session(client, ("t", 0, 0))
    harness.advance(FETCH_SESSION_EVICTION_MS - 1)
    assert client.ask(fetch(("t", 0, 0), session_epoch=0), 12, FetchResponse).session_id == 0
    used.next()
    harness.advance(1)
    assert Session(client, ("t", 0, 0)).id > 0
    assert used.next().error_code == Error.NONE
    assert idle.next().error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    assert harness.watchers() == 2


def test_an_id_in_use_or_zero_is_drawn_again() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    first = Session(client, ("t", 0, 0))
    drawn = iter([0, first.id, 42])

    class Loaded:
        def getrandbits(self, k: int, /) -> int:
            return next(drawn)

    harness.broker.sessions._entropy = Loaded()
    assert Session(client, ("t", 0, 0)).id == 42


def test_who_poses_as_a_broker_that_is_not_there_gets_no_session() -> None:
    """Followers have a session each, whatever the limit: names that nobody has would be sessions without end."""
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    for replica in range(2, 5):
        request = fetch(("t", 0, 0), session_epoch=0)
        request.replica_id = replica
        assert client.ask(request, 12, FetchResponse).session_id == 0
    assert list(harness.broker.sessions) == []
