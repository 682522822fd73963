"""Answers that are made of a common part and a member's own are those that the message itself would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.group.classic.answers import Answers
from cordwood.group.classic.member import Member
from cordwood.wire import encode
from cordwood.wire.messages import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

texts = st.text(max_size=200)


@pytest.mark.parametrize("version", range(10))
@given(generation=st.integers(0, 2**31 - 1), leader=texts, protocol_type=texts, protocol=texts, members=st.lists(texts))
def test_everybody_hears_of_the_generation(
    version: int, generation: int, leader: str, protocol_type: str, protocol: str, members: list[str]
) -> None:
    answers = Answers(generation=generation, leader=leader, protocol_type=protocol_type, protocol=protocol)
    for member_id in members:
        message = JoinGroupResponse(
            generation_id=generation,
            protocol_type=protocol_type,
            protocol_name=protocol,
            leader=leader,
            member_id=member_id,
        )
        answer = answers.joined(version, member_id)
        assert (answer.api_version, answer.body) == (version, encode(message, version))


said = st.tuples(texts, st.none() | texts, st.binary(max_size=300))


@pytest.mark.parametrize("version", range(10))
@given(generation=st.integers(0, 2**31 - 1), leader=texts, protocol=texts, members=st.lists(said))
def test_the_leader_hears_what_everybody_says(
    version: int, generation: int, leader: str, protocol: str, members: list[tuple[str, str | None, bytes]]
) -> None:
    answers = Answers(generation=generation, leader=leader, protocol_type="consumer", protocol=protocol)
    known = [
        Member(
            id=member_id,
            instance_id=instance_id,
            client_id="",
            client_host="",
            rebalance_timeout_ms=0,
            session_timeout_ms=0,
            protocols={protocol: metadata},
        )
        for member_id, instance_id, metadata in members
    ]
    message = JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol,
        leader=leader,
        member_id=leader,
        members=[
            JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id if version >= 5 else None, metadata=metadata
            )
            for member_id, instance_id, metadata in members
        ],
    )
    answer = answers.leads(version, leader, known, protocol)
    assert (answer.api_version, answer.body) == (version, encode(message, version))


@pytest.mark.parametrize("version", range(6))
@given(protocol_type=texts, protocol=texts, assignments=st.lists(st.binary(max_size=300)))
def test_everybody_hears_of_its_assignment(
    version: int, protocol_type: str, protocol: str, assignments: list[bytes]
) -> None:
    answers = Answers(generation=1, leader="", protocol_type=protocol_type, protocol=protocol)
    for assignment in assignments:
        message = SyncGroupResponse(protocol_type=protocol_type, protocol_name=protocol, assignment=assignment)
        answer = answers.synced(version, assignment)
        assert (answer.api_version, answer.body) == (version, encode(message, version))
