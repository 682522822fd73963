"""Groups through the clients' admin APIs: listed, described, their offsets changed, deleted; and what is refused."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    TopicPartition,
)
from kafka import errors as kafka_errors
from kafka.admin import MemberToRemove
from kafka.structs import OffsetAndMetadata

from clients.admins import KafkaPythonAdmin, LibrdkafkaAdmin, only, refusal
from clients.drivers import DEADLINE_S, Librdkafka
from clients.groups.conftest import create_topic
from clients.groups.crew import Crew, Member, places, settle
from clients.groups.events import Place
from clients.groups.kinds import CONFLUENT, CONFLUENT_NEW, Kind, each
from support.waiting import eventually

SESSION_MS: Final = 30_000

BOTH = each(CONFLUENT, CONFLUENT_NEW)


@contextmanager
def python_admin(bootstrap: str) -> Iterator[kafka.KafkaAdminClient]:
    with KafkaPythonAdmin(bootstrap).client() as client:
        yield client


def started(crew: Crew, kind: Kind, topic: str) -> Member:
    """A group of one, which has all partitions."""
    member = crew.start(kind)
    settle([member], places(topic, 4), [4])
    return member


def commit(bootstrap: str, group: str, offsets: dict[Place, int]) -> None:
    consumer = Librdkafka(bootstrap).consumer(group_id=group)
    consumer.commit(offsets=[TopicPartition(*place, after) for place, after in offsets.items()], asynchronous=False)
    consumer.close()


def committed(admin: LibrdkafkaAdmin, group: str) -> dict[Place, int]:
    found = only(admin.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
    return {Place(one.topic, one.partition): one.offset for one in found.topic_partitions}


def listed(admin: LibrdkafkaAdmin, **filters: object) -> dict[str, tuple[ConsumerGroupState, ConsumerGroupType]]:
    found = admin.client.list_consumer_groups(**filters).result(DEADLINE_S)
    assert found.errors == []
    return {group.group_id: (group.state, group.type) for group in found.valid}


@BOTH
def test_groups_are_listed_by_state_and_type(
    crew: Crew, admin: LibrdkafkaAdmin, bootstrap: str, topic: str, kind: Kind
) -> None:
    group = crew.wish.group
    type_ = ConsumerGroupType.CONSUMER if kind.protocol == "consumer" else ConsumerGroupType.CLASSIC
    [other_type] = {ConsumerGroupType.CONSUMER, ConsumerGroupType.CLASSIC} - {type_}
    member = started(crew, kind, topic)
    eventually(lambda: listed(admin)[group] == (ConsumerGroupState.STABLE, type_), what="a stable group")
    assert group in listed(admin, states={ConsumerGroupState.STABLE}, types={type_})
    assert group not in listed(admin, states={ConsumerGroupState.EMPTY})
    assert group not in listed(admin, types={other_type})
    member.leave()
    eventually(lambda: listed(admin)[group][0] == ConsumerGroupState.EMPTY, what="an empty group")
    assert group in listed(admin, states={ConsumerGroupState.EMPTY})


@BOTH
def test_group_is_described_with_members_and_assignments(
    crew: Crew, admin: LibrdkafkaAdmin, topic: str, kind: Kind
) -> None:
    pair = [crew.start(kind, instance=name) for name in ("a", "b")]
    settle(pair, places(topic, 4), [2, 2])

    def stable() -> bool:
        described = only(admin.client.describe_consumer_groups([crew.wish.group]))
        shares = {
            member.group_instance_id: {Place(one.topic, one.partition) for one in member.assignment.topic_partitions}
            for member in described.members
        }
        return described.state == ConsumerGroupState.STABLE and shares == {"a": pair[0].owned, "b": pair[1].owned}

    eventually(stable, what="what the members say")
    described = only(admin.client.describe_consumer_groups([crew.wish.group]))
    assert described.partition_assignor == kind.assignor
    assert {member.client_id for member in described.members} == {member.name for member in pair}
    assert {member.host.removeprefix("/") for member in described.members} == {"127.0.0.1"}
    assert described.coordinator.id == admin.cluster().controller_id


def test_group_that_does_not_exist_is_described_as_such(admin: LibrdkafkaAdmin, bootstrap: str, name: str) -> None:
    assert refusal(lambda: only(admin.client.delete_consumer_groups([name]))) == "GROUP_ID_NOT_FOUND"
    assert committed(admin, name) == {}
    assert name not in listed(admin)
    with python_admin(bootstrap) as client:
        described = client.describe_groups([name])[name]
    assert described["group_state"] == "Dead"


def test_two_python_clients_see_a_classic_group(crew: Crew, bootstrap: str, topic: str) -> None:
    member = started(crew, CONFLUENT, topic)
    group = crew.wish.group
    with python_admin(bootstrap) as client:
        described = client.describe_groups([group])[group]
        by_state = client.list_groups(states_filter=["Stable"], types_filter=["classic"])
    assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
    assert [one["client_id"] for one in described["members"]] == [member.name]
    assert group in {one["group_id"] for one in by_state}

    async def ask() -> tuple[list[tuple[str, str]], str]:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            [answer] = await client.describe_consumer_groups([group])
            return await client.list_consumer_groups(), answer.groups[0][2]
        finally:
            await client.close()

    groups, state = asyncio.run(asyncio.wait_for(ask(), DEADLINE_S))
    assert (group, "consumer") in groups
    assert state == "Stable"


@BOTH
def test_group_with_members_is_not_deleted(
    crew: Crew, admin: LibrdkafkaAdmin, bootstrap: str, topic: str, kind: Kind
) -> None:
    group = crew.wish.group
    commit(bootstrap, group, {Place(topic, 0): 0})
    member = started(crew, kind, topic)
    assert refusal(lambda: only(admin.client.delete_consumer_groups([group]))) == "NON_EMPTY_GROUP"
    member.leave()
    only(admin.client.delete_consumer_groups([group]))
    assert group not in listed(admin)
    assert committed(admin, group) == {}
    assert refusal(lambda: only(admin.client.delete_consumer_groups([group]))) == "GROUP_ID_NOT_FOUND"


@BOTH
def test_offsets_are_altered_only_without_members(crew: Crew, admin: LibrdkafkaAdmin, topic: str, kind: Kind) -> None:
    group = crew.wish.group
    first, second = Place(topic, 0), Place(topic, 1)

    def alter(offsets: dict[Place, int]) -> None:
        told = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        answer = only(admin.client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, told)]))
        for one in answer.topic_partitions:
            if one.error is not None:
                raise KafkaException(one.error)

    alter({first: 0, second: 0})
    member = started(crew, kind, topic)
    assert refusal(lambda: alter({first: 9})) == "UNKNOWN_MEMBER_ID"
    member.leave()
    alter({first: 7})
    assert committed(admin, group) == {first: 7, second: 0}


@BOTH
def test_offsets_are_deleted_unless_somebody_reads_the_topic(
    crew: Crew, admin: LibrdkafkaAdmin, bootstrap: str, topic: str, kind: Kind
) -> None:
    group = crew.wish.group
    other = f"{topic}-other"
    create_topic(admin, other, partitions=2)
    commit(bootstrap, group, {Place(topic, 0): 0, Place(other, 0): 4, Place(other, 1): 5})
    member = started(crew, kind, topic)

    def delete(*asked: Place) -> dict[Place, type[Exception]]:
        with python_admin(bootstrap) as client:
            answers = client.delete_group_offsets(group, [kafka.TopicPartition(*place) for place in asked])
        return {Place(place.topic, place.partition): answer for place, answer in answers.items()}

    assert delete(Place(topic, 0), Place(other, 0)) == {
        Place(topic, 0): kafka_errors.GroupSubscribedToTopicError,
        Place(other, 0): kafka_errors.NoError,
    }
    assert committed(admin, group) == {Place(topic, 0): 0, Place(other, 1): 5}
    member.leave()
    assert delete(Place(topic, 0)) == {Place(topic, 0): kafka_errors.NoError}
    assert committed(admin, group) == {Place(other, 1): 5}


def test_python_clients_list_offsets_of_many_groups(
    admin: LibrdkafkaAdmin, bootstrap: str, topic: str, name: str
) -> None:
    groups = [f"{name}-{number}" for number in range(3)]
    for number, group in enumerate(groups):
        commit(bootstrap, group, {Place(topic, 0): number, Place(topic, 3): number * 2})
    with python_admin(bootstrap) as client:
        found = client.list_group_offsets(groups)
        client.alter_group_offsets(groups[0], {kafka.TopicPartition(topic, 1): OffsetAndMetadata(9, "note", 0)})
    zero, three = kafka.TopicPartition(topic, 0), kafka.TopicPartition(topic, 3)
    assert {group: {place: kept.offset for place, kept in offsets.items()} for group, offsets in found.items()} == {
        group: {zero: number, three: number * 2} for number, group in enumerate(groups)
    }

    async def ask() -> dict[AioTopicPartition, OffsetAndMetadata]:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            found: dict[AioTopicPartition, OffsetAndMetadata] = await client.list_consumer_group_offsets(groups[0])
            return found
        finally:
            await client.close()

    kept = asyncio.run(asyncio.wait_for(ask(), DEADLINE_S))
    assert kept[AioTopicPartition(topic, 1)] == (9, "note")
    assert kept[AioTopicPartition(topic, 3)] == (0, "")


def test_static_member_is_removed_by_an_administrator(crew: Crew, bootstrap: str, topic: str) -> None:
    pair = [crew.start(CONFLUENT, instance=name) for name in ("a", "b")]
    settle(pair, places(topic, 4), [2, 2])
    pair[0].kill()
    with python_admin(bootstrap) as client:
        gone, unknown = MemberToRemove(group_instance_id="a"), MemberToRemove(group_instance_id="c")
        answers = client.remove_group_members(crew.wish.group, [gone, unknown])
    assert answers == {"a": kafka_errors.NoError, "c": kafka_errors.UnknownMemberIdError}
    settle(pair[1:], places(topic, 4), [4])
