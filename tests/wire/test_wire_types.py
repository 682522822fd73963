"""What a declared class is to those who use it."""

import dataclasses
import inspect
from uuid import UUID

import pytest

from cordwood.errors import ProtocolError
from cordwood.wire import decode, encode, messages
from cordwood.wire.compiler import maker
from cordwood.wire.messages import (
    ConsumerGroupDescribeResponseMember,
    ConsumerProtocolSubscription,
    CreateTopicsResponseTopic,
    FetchRequest,
    FetchResponsePartition,
    JoinGroupResponse,
    LeaderIdAndEpoch,
    MetadataRequest,
    MetadataResponseTopic,
    ProduceRequest,
    ProduceRequestTopic,
    ProduceResponsePartition,
)
from cordwood.wire.types import NO_UUID, MessageSpec, i32, message, span, spec_of, v
from wire.builders import MESSAGES


def test_every_field_may_be_omitted() -> None:
    for name in messages.__all__:
        cls = getattr(messages, name)
        for version in spec_of(cls).versions if len(spec_of(cls).versions) < 100 else ():
            assert decode(cls, version, encode(cls(), version)) == cls()


def test_defaults_are_kafkas() -> None:
    assert FetchRequest().max_bytes == 2**31 - 1
    assert FetchRequest().replica_id == -1
    assert MetadataResponseTopic().topic_authorized_operations == -(2**31)
    assert ProduceRequestTopic().topic_id == NO_UUID
    assert ProduceRequest().transactional_id is None
    assert MetadataRequest().topics == []
    assert CreateTopicsResponseTopic().configs == [], "the Java admin client cannot bear null here"
    assert JoinGroupResponse().protocol_name == ""
    assert FetchResponsePartition().current_leader is None


def test_defaults_that_can_change_are_not_shared() -> None:
    ProduceRequest().topic_data.append(ProduceRequestTopic())
    assert ProduceRequest().topic_data == []
    one, other = ConsumerGroupDescribeResponseMember(), ConsumerGroupDescribeResponseMember()
    assert one.assignment is not other.assignment
    assert one.assignment == other.assignment


def test_what_a_maker_makes_is_what_the_class_makes() -> None:
    for name in messages.__all__:
        cls = getattr(messages, name)
        assert maker(cls)() == cls()
    make = maker(ProduceResponsePartition)
    assert make(index=3, base_offset=9) == ProduceResponsePartition(index=3, base_offset=9)
    assert make().record_errors is not make().record_errors
    with pytest.raises(TypeError, match="partition"):
        make(partition=3)  # type: ignore[call-arg]


def test_a_field_that_the_version_lacks_has_its_default() -> None:
    named = ProduceRequest(topic_data=[ProduceRequestTopic(name="t", topic_id=UUID(int=7))])
    assert decode(ProduceRequest, 12, encode(named, 12)).topic_data == [ProduceRequestTopic(name="t")]
    assert decode(ProduceRequest, 13, encode(named, 13)).topic_data == [ProduceRequestTopic(topic_id=UUID(int=7))]


def test_messages_are_slotted_dataclasses_that_compare_by_value() -> None:
    leader = LeaderIdAndEpoch(leader_id=3)
    assert leader == LeaderIdAndEpoch(leader_id=3, leader_epoch=-1)
    assert leader != LeaderIdAndEpoch(leader_id=4)
    assert leader != (3, -1)  # type: ignore[comparison-overlap]
    assert dataclasses.replace(leader, leader_epoch=2) == LeaderIdAndEpoch(leader_id=3, leader_epoch=2)
    assert repr(leader) == "LeaderIdAndEpoch(leader_id=3, leader_epoch=-1)"
    assert not hasattr(leader, "__dict__")
    with pytest.raises(TypeError):
        hash(leader)
    with pytest.raises(TypeError):
        LeaderIdAndEpoch(leader=3)  # type: ignore[call-arg]


def test_a_message_that_the_version_can_not_carry_is_our_bug() -> None:
    for wrong in (MetadataRequest(topics=None), MetadataRequest(topics=[ProduceRequestTopic(name=5)])):  # type: ignore
        with pytest.raises(AssertionError, match="MetadataRequest v0 cannot carry this message"):
            encode(wrong, 0)
    with pytest.raises(AssertionError, match="string of 40000 bytes"):
        encode(ProduceRequest(transactional_id="x" * 40_000), 9)
    with pytest.raises(AssertionError, match="ProduceRequest v8 cannot carry"):
        encode(ProduceRequest(transactional_id="x" * 40_000), 8)
    with pytest.raises(AssertionError, match="has no version 14"):
        encode(ProduceRequest(), 14)


def test_a_string_may_be_as_long_as_kafka_allows() -> None:
    for version in (8, 9):
        longest = ProduceRequest(transactional_id="x" * 32_767)
        assert decode(ProduceRequest, version, encode(longest, version)) == longest


def test_spans_of_versions() -> None:
    assert span("3+") == range(3, 32768)
    assert span("0-12") == range(13)
    assert span("7") == range(7, 8)
    assert span("none") == range(0)


def test_a_tagged_struct_must_be_declared_optional() -> None:
    with pytest.raises(AssertionError, match="a tagged struct is"):

        @message
        class Holder:
            leader: LeaderIdAndEpoch = v(tag=0)


def test_an_element_without_bytes_can_not_be_declared() -> None:
    @message
    class Empty:
        number: i32 = v("5+")

    @message(versions="0-5")
    class Holder:
        items: list[Empty] = v()

    assert decode(Holder, 5, b"\0\0\0\1\0\0\0\7").items == [Empty(number=7)]
    with pytest.raises(AssertionError, match="an element without bytes"):
        decode(Holder, 4, b"\0\0\0\1")


def test_the_facade_exports_every_declared_class() -> None:
    declared = {
        name
        for module in vars(messages).values()
        if inspect.ismodule(module)
        for name, value in vars(module).items()
        if isinstance(getattr(value, "__wire__", None), MessageSpec)
    }
    assert set(messages.__all__) == declared
    assert len(messages.__all__) == len(set(messages.__all__))


def test_every_message_has_a_docstring_of_its_own() -> None:
    for cls in MESSAGES:
        assert cls.__doc__ != cls.__name__


def test_a_consumer_subscription_is_read_like_any_message() -> None:
    bytes_of_a_client = b"\0\0\0\1\0\1t" + b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"\0\0\0\5" + b"\xff\xff"
    found = decode(ConsumerProtocolSubscription, 3, bytes_of_a_client)
    assert found == ConsumerProtocolSubscription(topics=["t"], generation_id=5)
    with pytest.raises(ProtocolError):
        decode(ConsumerProtocolSubscription, 2, bytes_of_a_client)
