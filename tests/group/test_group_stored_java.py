"""Kafka's own tool reads the records of ``__consumer_offsets`` that are written here."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from clients.java.bridge import Jvm
from cordwood.coordinator.state_record import StateRecord
from cordwood.group.committed import CommittedOffset
from cordwood.group.stored import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    TargetTopicPartitions,
    encode_record,
)
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.record.build import Record, build

pytestmark = pytest.mark.java

TOPIC = UUID("314e28d8-4d32-454d-814d-1fc5437893ec")
SHOWN_TOPIC = "MU4o2E0yRU2BTR_FQ3iT7A"
DUMP = "org.apache.kafka.tools.DumpLogSegments"

Shown = dict[str, object]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    with Jvm() as jvm:
        yield jvm


def _dumped(jvm: Jvm, path: Path, *records: StateRecord) -> list[tuple[Shown, Shown | None]]:
    """Keys and values as Kafka's tool shows them."""
    encoded = map(encode_record, records)
    log = path / "00000000000000000000.log"
    log.write_bytes(build([Record(n, 1, key, value) for n, (key, value) in enumerate(encoded)]))
    ran = jvm.run(DUMP, "--files", str(log), "--offsets-decoder")
    assert ran.code == 0, ran.err
    lines = re.findall(r"key: (\{.*?\}\}) payload: (.*)", ran.out)
    assert len(lines) == len(records), ran.out
    return [(json.loads(key), None if value == "<DELETE>" else json.loads(value)) for key, value in lines]


def test_kafka_reads_offsets(jvm: Jvm, tmp_path: Path) -> None:
    key = OffsetCommitKey("grüße", "t", 2)
    shown_key = {"type": "1", "data": {"group": "grüße", "topic": "t", "partition": 2}}
    plain = {"offset": 5, "leaderEpoch": 3, "metadata": "note", "commitTimestamp": 7}
    long = "x" * 4096
    assert _dumped(
        jvm,
        tmp_path,
        StateRecord(key, CommittedOffset(5, 3, "note", 7, -1, TOPIC)),
        StateRecord(key, CommittedOffset(5, 3, "note", 7)),
        StateRecord(key, CommittedOffset(5, -1, "note", 7, 9)),
        StateRecord(key, CommittedOffset(5, 3, long, 7, -1, TOPIC)),
        StateRecord(key, None),
    ) == [
        (shown_key, {"version": "4", "data": {**plain, "topicId": SHOWN_TOPIC}}),
        (shown_key, {"version": "4", "data": plain}),
        (
            shown_key,
            {"version": "1", "data": {"offset": 5, "metadata": "note", "commitTimestamp": 7, "expireTimestamp": 9}},
        ),
        (shown_key, {"version": "4", "data": {**plain, "metadata": long, "topicId": SHOWN_TOPIC}}),
        (shown_key, None),
    ]


def test_kafka_reads_classic_groups(jvm: Jvm, tmp_path: Path) -> None:
    member = GroupMetadataMember(
        member_id="m", group_instance_id="i", client_id="c", client_host="/h", rebalance_timeout=1, session_timeout=2
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=4,
        members=[member],
    )
    [(key, shown), gone] = _dumped(
        jvm,
        tmp_path,
        StateRecord(GroupMetadataKey(group="g"), value),
        StateRecord(GroupMetadataKey(group="g"), None),
    )
    assert key == {"type": "2", "data": {"group": "g"}}
    assert gone == (key, None)
    assert shown is not None
    assert shown["version"] == "3"
    data = shown["data"]
    assert isinstance(data, dict)
    assert {name: data[name] for name in ("protocolType", "generation", "protocol", "leader")} == {
        "protocolType": "consumer",
        "generation": 3,
        "protocol": "range",
        "leader": "m",
    }
    assert data["currentStateTimestamp"] == 4
    assert [(m["memberId"], m["groupInstanceId"], m["sessionTimeout"]) for m in data["members"]] == [("m", "i", 2)]


def test_kafka_reads_consumer_groups(jvm: Jvm, tmp_path: Path) -> None:
    group, member = {"groupId": "g"}, {"groupId": "g", "memberId": "m"}
    assignment = {"topicId": SHOWN_TOPIC, "partitions": [0, 3]}
    classic = ClassicMemberMetadata(session_timeout_ms=9, supported_protocols=[ClassicProtocol(name="range")])
    said = ConsumerGroupMemberMetadataValue(client_id="c", client_host="/h", subscribed_topic_names=["t"])
    also_said = ConsumerGroupMemberMetadataValue(subscribed_topic_regex="t.*", classic_member_metadata=classic)
    shown = _dumped(
        jvm,
        tmp_path,
        StateRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=5, metadata_hash=-7)),
        StateRecord(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), said),
        StateRecord(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), also_said),
        StateRecord(
            ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=5, assignment_timestamp=6),
        ),
        StateRecord(
            ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
            ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=[TargetTopicPartitions(topic_id=TOPIC, partitions=[0, 3])]
            ),
        ),
        StateRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=5,
                previous_member_epoch=4,
                assigned_partitions=[
                    CurrentTopicPartitions(topic_id=TOPIC, partitions=[0, 3], assignment_epochs=[4, 5])
                ],
            ),
        ),
        StateRecord(
            ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*"),
            ConsumerGroupRegularExpressionValue(topics=["t"], version=8, timestamp=9),
        ),
    )
    assert [key for key, _ in shown] == [
        {"type": "3", "data": group},
        {"type": "5", "data": member},
        {"type": "5", "data": member},
        {"type": "6", "data": group},
        {"type": "7", "data": member},
        {"type": "8", "data": member},
        {"type": "16", "data": {"groupId": "g", "regularExpression": "t.*"}},
    ]
    values = [value["data"] if value is not None else None for _, value in shown]
    assert values[0] == {"epoch": 5, "metadataHash": -7}
    assert isinstance(values[1], dict)
    assert (values[1]["subscribedTopicNames"], values[1]["classicMemberMetadata"]) == (["t"], None)
    assert isinstance(values[2], dict)
    assert values[2]["subscribedTopicRegex"] == "t.*"
    assert values[2]["classicMemberMetadata"]["sessionTimeoutMs"] == 9
    assert values[3] == {"assignmentEpoch": 5, "assignmentTimestamp": 6}
    assert values[4] == {"topicPartitions": [assignment]}
    assert isinstance(values[5], dict)
    assert values[5]["assignedPartitions"] == [{**assignment, "assignmentEpochs": [4, 5]}]
    assert values[6] == {"topics": ["t"], "version": 8, "timestamp": 9}
