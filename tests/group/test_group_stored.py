"""Records of ``__consumer_offsets``: those that Apache Kafka 4.3.1 wrote are understood, and written the same."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData
from cordwood.group.committed import CommittedOffset
from cordwood.group.stored import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    decode_record,
    encode_record,
)
from cordwood.group.stored_offsets import OffsetCommitKey

TOPIC_T = UUID("314e28d8-4d32-454d-814d-1fc5437893ec")

# What a broker of Apache Kafka 4.3.1 had in its log after clients of several kinds had been there: (key, value).
WRITTEN_BY_KAFKA = {
    "offset with a note, a leader epoch and a topic id": (
        "0001000673696d706c6500017400000002",
        "0004000000000000000500000003056e6f7465000001a1e16e24ec010010314e28d84d32454d814d1fc5437893ec",
    ),
    "offset whose client chose when it expires": (
        "0001000372657400017500000000",
        "00010000000000000005000178000001a1e16e253f000001a1e16fabdf",
    ),
    "new classic group": (
        "00020007636c6173736963",
        "0003000000000000ffffffff000001a1e16e277f00000000",
    ),
    "classic group with a static member": (
        "0002000e636c61737369632d737461746963",
        "00030008636f6e73756d657200000001000572616e6765002769312d62663465373937362d376436302d346533392d613334362d3230346663"
        "64666531326231000001a1e16e46f000000001002769312d62663465373937362d376436302d346533392d613334362d323034666364666531"
        "32623100026931000772646b61666b61000a2f3132372e302e302e31000493e00000afc8000000170003000000010001740000000000000000"
        "ffffffff000000000021000000000001000174000000040000000000000001000000020000000300000000",
    ),
    "classic group that its members have left": (
        "00020007636c6173736963",
        "00030008636f6e73756d657200000002ffffffff000001a1e16e46ac00000000",
    ),
    "consumer group": ("00030008636f6e73756d6572", "000000000002010008b638c3df3549c558"),
    "member of a consumer group": (
        "00050008636f6e73756d6572001664317975494374385165715032663764637165344741",
        "000000000872646b61666b610b2f3132372e302e302e31030274027501000493e00001000100",
    ),
    "member of a consumer group that speaks the classic protocol": (
        "000500036d697800166e6f50636a766a7152704f48524b7a59536f46394667",
        "000000000872646b61666b610b2f3132372e302e302e3102027401000493e000010026010000afc8020672616e67651800030000000100017400"
        "00000000000000ffffffff00000000",
    ),
    "epoch and time of a target assignment": ("00060008636f6e73756d6572", "000000000002010008000001a1e16e6675"),
    "target assignment": (
        "00070008636f6e73756d6572001664317975494374385165715032663764637165344741",
        "000003314e28d84d32454d814d1fc5437893ec05000000000000000100000002000000030097e890e78fb64527a0eb48c3b64e38e305000000"
        "000000000100000002000000030000",
    ),
    "current assignment": (
        "00080008636f6e73756d6572001664317975494374385165715032663764637165344741",
        "000000000002000000000003314e28d84d32454d814d1fc5437893ec0500000000000000010000000200000003010011050000000200000002"
        "000000020000000297e890e78fb64527a0eb48c3b64e38e3050000000000000001000000020000000301001105000000020000000200000002"
        "000000020100",
    ),
    "member that has left": ("00050008636f6e73756d6572001656654556352b706151376959482b4b4a6d644e786951", None),
    "regular expression": ("0010000572656765780006285e742e2a29", "00000202740000000000000077000001a1e16e85f700"),
}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("name", WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_written_the_same(name: str) -> None:
    key, value = WRITTEN_BY_KAFKA[name]
    record = decode_record(bytes.fromhex(key), _bytes(value))
    assert record is not None
    assert encode_record(record) == (bytes.fromhex(key), _bytes(value))


def _decoded(name: str) -> StateRecord:
    key, value = WRITTEN_BY_KAFKA[name]
    record = decode_record(bytes.fromhex(key), _bytes(value))
    assert record is not None
    return record


def test_an_offset_is_understood() -> None:
    assert _decoded("offset with a note, a leader epoch and a topic id") == StateRecord(
        OffsetCommitKey("simple", "t", 2), CommittedOffset(5, 3, "note", 1794783454444, -1, TOPIC_T)
    )
    assert _decoded("offset whose client chose when it expires") == StateRecord(
        OffsetCommitKey("ret", "u", 0), CommittedOffset(5, -1, "x", 1794783454527, 1794783554527)
    )


def test_a_classic_group_is_understood() -> None:
    record = _decoded("classic group with a static member")
    assert record.key == GroupMetadataKey(group="classic-static")
    value = record.value
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", 1, "range")
    (member,) = value.members
    assert isinstance(member, GroupMetadataMember)
    assert (member.group_instance_id, member.session_timeout, member.rebalance_timeout) == ("i1", 45_000, 300_000)


def test_who_speaks_the_classic_protocol_in_a_consumer_group_is_told_apart() -> None:
    values = [
        _decoded(name).value
        for name in ("member of a consumer group", "member of a consumer group that speaks the classic protocol")
    ]
    plain, classic = values
    assert isinstance(plain, ConsumerGroupMemberMetadataValue)
    assert isinstance(classic, ConsumerGroupMemberMetadataValue)
    assert plain.classic_member_metadata is None
    assert classic.classic_member_metadata is not None
    assert classic.classic_member_metadata.session_timeout_ms == 45_000
    assert [protocol.name for protocol in classic.classic_member_metadata.supported_protocols] == ["range"]
    assert _decoded("member that has left").value is None
    assert _decoded("member that has left").key == ConsumerGroupMemberMetadataKey(
        group_id="consumer", member_id="VeEV5+paQ7iYH+KJmdNxiQ"
    )


KEY = bytes.fromhex("0001000167000174" + "00000002")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000" + "0000000000000005" + "000178" + "0000000000000009", CommittedOffset(5, -1, "x", 9)),
        (
            "0001" + "0000000000000005" + "000178" + "0000000000000009" + "000000000000000b",
            CommittedOffset(5, -1, "x", 9, 11),
        ),
        ("0002" + "0000000000000005" + "000178" + "0000000000000009", CommittedOffset(5, -1, "x", 9)),
        ("0003" + "0000000000000005" + "00000007" + "000178" + "0000000000000009", CommittedOffset(5, 7, "x", 9)),
        ("0004" + "0000000000000005" + "00000007" + "0278" + "0000000000000009" + "00", CommittedOffset(5, 7, "x", 9)),
        # tags of later versions, alone and behind the topic's id
        (
            "0004" + "0000000000000005" + "00000007" + "01" + "0000000000000009" + "01" + "050100",
            CommittedOffset(5, 7, "", 9),
        ),
        (
            "0004"
            + "0000000000000005"
            + "00000007"
            + "01"
            + "0000000000000009"
            + "02"
            + f"0010{TOPIC_T.hex}"
            + "050100",
            CommittedOffset(5, 7, "", 9, -1, TOPIC_T),
        ),
    ],
)
def test_offsets_of_all_versions_are_read(value: str, expected: CommittedOffset) -> None:
    assert decode_record(KEY, bytes.fromhex(value)) == StateRecord(OffsetCommitKey("g", "t", 2), expected)


def test_the_oldest_key_of_an_offset_is_read() -> None:
    assert decode_record(b"\0\0" + KEY[2:], None) == StateRecord(OffsetCommitKey("g", "t", 2), None)


@pytest.mark.parametrize("number", [4, 9, 10, 15, 17, 0x7FFF, 0xFFFF])
def test_unknown_kinds_are_passed_over(number: int) -> None:
    assert decode_record(number.to_bytes(2, "big") + b"whatever", b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", None),
        ("00", None),
        ("0001", None),
        ("00010001", None),
        (KEY.hex()[:-2], None),
        (KEY.hex() + "00", None),
        ("00018000" + KEY.hex()[8:], None),
        ("00010001ff000174" + "00000002", None),
        (KEY.hex(), ""),
        (KEY.hex(), "00"),
        (KEY.hex(), "0004"),
        (KEY.hex(), "0005" + "00" * 40),
        (KEY.hex(), "ffff" + "00" * 40),
        (KEY.hex(), "0004" + "0000000000000005" + "00000007" + "0278" + "0000000000000009"),
        (KEY.hex(), "0004" + "0000000000000005" + "00000007" + "0278" + "0000000000000009" + "0000"),
        (KEY.hex(), "0004" + "0000000000000005" + "00000007" + "02ff" + "0000000000000009" + "00"),
        (KEY.hex(), "0004" + "0000000000000005" + "00000007" + "00" + "0000000000000009" + "00"),
        (KEY.hex(), "0004" + "0000000000000005" + "00000007" + "01" + "0000000000000009" + f"01000f{TOPIC_T.hex}"),
        ("0002", None),
        ("00020001", None),
        ("0002000167", "0005"),
        ("0002000167", "0003"),
    ],
)
def test_nonsense_is_corrupt(key: str, value: str | None) -> None:
    with pytest.raises(CorruptData):
        decode_record(bytes.fromhex(key), _bytes(value))


TEXTS = st.text(max_size=20) | st.sampled_from(["ü" * 63, "x" * 32767, "\U0001f600" * 40, "x" * 126, "x" * 127])
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NEVER_CHOSEN, NO_ID, NO_EPOCH = st.just(-1), st.just(UUID(int=0)), st.just(-1)
OFFSETS = st.tuples(INT64, INT32, TEXTS, INT64, NEVER_CHOSEN, st.uuids() | NO_ID) | st.tuples(
    INT64, NO_EPOCH, TEXTS, INT64, INT64, NO_ID
)


@settings(max_examples=60)
@given(
    key=st.tuples(TEXTS, TEXTS, INT32).map(OffsetCommitKey._make),
    value=st.none() | OFFSETS.map(CommittedOffset._make),
)
def test_every_offset_comes_back(key: OffsetCommitKey, value: CommittedOffset | None) -> None:
    stored_key, stored_value = encode_record(StateRecord(key, value))
    assert decode_record(stored_key, stored_value) == StateRecord(key, value)


@settings(max_examples=60)
@given(st.sampled_from(sorted(WRITTEN_BY_KAFKA)), st.integers(0, 1), st.integers(0), st.integers(0, 255), st.booleans())
def test_damage_is_corrupt_or_another_record(name: str, which: int, place: int, byte: int, cut: bool) -> None:
    parts = [bytearray(_bytes(text) or b"") for text in WRITTEN_BY_KAFKA[name]]
    damaged = parts[which]
    if damaged:
        place %= len(damaged)
        damaged[place] = byte
        if cut:
            del damaged[place:]
    with suppress(CorruptData):
        decode_record(bytes(parts[0]), bytes(parts[1]))
