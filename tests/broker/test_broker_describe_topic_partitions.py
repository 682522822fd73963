"""DescribeTopicPartitions: pages of partitions, to the end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.harness import Client, Harness
from cordwood.cluster.image import NO_LEADER
from cordwood.errors import Error
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopic,
    DescribeTopicPartitionsResponse,
    TopicPartitionCursor,
)


def ask(
    client: Client, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else TopicPartitionCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return client.ask(request, 0, DescribeTopicPartitionsResponse)


def cursor_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    following = response.next_cursor
    return None if following is None else (following.topic_name, following.partition_index)


def partitions_of(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]


def errors_of(response: DescribeTopicPartitionsResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
        harness.topic(name, partitions=partitions)
    return harness


EVERYTHING = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_all_topics_come_by_name(harness: Harness) -> None:
    response = ask(harness.connect())
    assert partitions_of(response) == EVERYTHING
    assert cursor_of(response) is None
    topic = response.topics[0]
    assert (topic.topic_id, topic.is_internal) == (harness.broker.image.topics[TopicName("a")].id, False)
    first = topic.partitions[0]
    assert (first.leader_id, first.leader_epoch, first.replica_nodes, first.isr_nodes) == (1, 0, [1], [1])
    assert (first.eligible_leader_replicas, first.last_known_elr, first.offline_replicas) == ([], [], [])


def test_named_topics_come_by_name_too_and_once(harness: Harness) -> None:
    assert partitions_of(ask(harness.connect(), "c", "a", "c")) == [("a", 0), ("a", 1), ("c", 0)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 2000, 0, -1])
def test_pages_follow_each_other_to_the_end(harness: Harness, limit: int) -> None:
    client = harness.connect()
    pages = [ask(client, limit=limit)]
    while (cursor := cursor_of(pages[-1])) is not None:
        pages.append(ask(client, limit=limit, cursor=cursor))
    assert [partition for page in pages for partition in partitions_of(page)] == EVERYTHING
    assert all(0 < len(partitions_of(page)) <= max(limit, 1) for page in pages)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 7), st.booleans())
def test_no_partition_is_left_out_or_told_twice(sizes: list[int], limit: int, named: bool) -> None:
    harness = Harness()
    names = [f"t{number}" for number in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        harness.topic(name, partitions=size)
    wanted = [*names, "t1x"] if named else []  # one that does not exist
    client = harness.connect()
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        response = ask(client, *wanted, limit=limit, cursor=cursor)
        seen += partitions_of(response)
        cursor = cursor_of(response)
        if cursor is None:
            break
    assert seen == [(name, index) for name, size in zip(names, sizes, strict=True) for index in range(size)]


def test_the_brokers_limit_counts_too() -> None:
    harness = Harness(max_request_partition_size_limit=2)
    harness.topic("t", partitions=5)
    response = ask(harness.connect())
    assert len(partitions_of(response)) == 2
    assert cursor_of(response) == ("t", 2)


def test_a_cursor_at_a_topic_that_is_gone_goes_on_behind_it(harness: Harness) -> None:
    assert partitions_of(ask(harness.connect(), cursor=("aa", 1))) == EVERYTHING[2:]


def test_a_cursor_past_the_end_of_a_topic_goes_on_behind_it(harness: Harness) -> None:
    assert partitions_of(ask(harness.connect(), cursor=("a", 9))) == EVERYTHING[2:]


def test_unknown_and_invalid_names_have_an_error_each(harness: Harness) -> None:
    response = ask(harness.connect(), "a", "no", "a b")
    assert errors_of(response) == {
        "a": Error.NONE,
        "a b": Error.INVALID_TOPIC,
        "no": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_negative_cursor_is_refused(harness: Harness) -> None:
    response = ask(harness.connect(), "a", "b", cursor=("a", -1))
    assert errors_of(response) == {"a": Error.INVALID_REQUEST, "b": Error.INVALID_REQUEST}


def test_a_cursor_outside_the_named_topics_is_refused(harness: Harness) -> None:
    assert errors_of(ask(harness.connect(), "a", cursor=("b", 0))) == {"a": Error.INVALID_REQUEST}


def test_a_partition_without_leader_says_so(harness: Harness) -> None:
    harness.broker.image.topics[TopicName("c")].partitions[0].leader = NO_LEADER
    (topic,) = ask(harness.connect(), "c").topics
    assert topic.partitions[0].error_code == Error.LEADER_NOT_AVAILABLE
