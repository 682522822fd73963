"""Bytes written down by hand, byte by byte, for what is newest and for what is oldest."""

from uuid import UUID

import pytest

from cordwood.wire import decode, encode
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApi,
    ApiVersionsResponseFinalizedFeature,
    ClientQuotaEntity,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopic,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntry,
    DescribeClientQuotasResponseValue,
    FetchRequest,
    FetchRequestPartition,
    FetchRequestReplicaState,
    FetchRequestTopic,
    FetchResponse,
    FetchResponsePartition,
    FetchResponseTopic,
    InitProducerIdRequest,
    LeaderIdAndEpoch,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ShareFetchRequest,
    UpdateFeaturesRequest,
)

TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
TOPIC_ID_HEX = "00112233445566778899aabbccddeeff"

CASES: list[tuple[object, int, str]] = [
    (ApiVersionsRequest(), 0, ""),
    (ApiVersionsRequest(client_software_name="me", client_software_version="1"), 3, "03 6d65 02 31 00"),
    (
        ApiVersionsResponse(api_keys=[ApiVersionsResponseApi(api_key=18, min_version=0, max_version=4)]),
        0,
        "0000  00000001  0012 0000 0004",
    ),
    (
        ApiVersionsResponse(
            finalized_features_epoch=7,
            finalized_features=[
                ApiVersionsResponseFinalizedFeature(name="f", max_version_level=2, min_version_level=1)
            ],
            zk_migration_ready=True,
        ),
        4,
        "0000 01 00000000  03  01 08 0000000000000007  02 08 02 02 66 0002 0001 00  03 01 01",
    ),
    (MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 0, "00000001 0001 74"),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=TOPIC_ID)]),
        13,
        f"02 {TOPIC_ID_HEX} 00 00  01 00 00",
    ),
    (
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                ProduceRequestTopic(
                    topic_id=TOPIC_ID, partition_data=[ProduceRequestPartition(index=3, records=b"batch")]
                )
            ],
        ),
        13,
        f"00 ffff 000003e8  02 {TOPIC_ID_HEX}  02 00000003 06 6261746368 00  00  00",
    ),
    (
        ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[ProduceRequestTopic(name="t", partition_data=[ProduceRequestPartition(records=b"batch")])],
        ),
        3,
        "ffff 0001 000003e8  00000001 0001 74  00000001 00000000 00000005 6261746368",
    ),
    (
        FetchRequest(
            replica_state=FetchRequestReplicaState(replica_id=2, replica_epoch=9),
            max_wait_ms=500,
            min_bytes=1,
            topics=[
                FetchRequestTopic(
                    topic_id=TOPIC_ID,
                    partitions=[
                        FetchRequestPartition(
                            partition=1,
                            fetch_offset=5,
                            partition_max_bytes=1024,
                            replica_directory_id=TOPIC_ID,
                            high_watermark=4,
                        )
                    ],
                )
            ],
        ),
        18,
        "000001f4 00000001 7fffffff 00 00000000 ffffffff"
        f"  02 {TOPIC_ID_HEX}"
        "  02 00000001 ffffffff 0000000000000005 ffffffff ffffffffffffffff 00000400"
        f"  02  00 10 {TOPIC_ID_HEX}  01 08 0000000000000004"
        "  00  01 01"
        "  01  01 0d 00000002 0000000000000009 00",
    ),
    (
        FetchResponse(
            responses=[
                FetchResponseTopic(
                    topic="t",
                    partitions=[
                        FetchResponsePartition(
                            high_watermark=2,
                            aborted_transactions=None,
                            records=b"xy",
                            current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=6),
                        )
                    ],
                )
            ]
        ),
        12,
        "00000000 0000 00000000  02 02 74"
        "  02 00000000 0000 0000000000000002 ffffffffffffffff ffffffffffffffff 00 ffffffff 03 7879"
        "  01 01 09 00000001 00000006 00"
        "  00  00",
    ),
    (ListOffsetsRequest(replica_id=-1, timeout_ms=30_000), 11, "ffffffff 00 01 00007530 00"),
    (
        InitProducerIdRequest(transaction_timeout_ms=5, producer_id=-1, producer_epoch=-1, enable2_pc=True),
        6,
        "00 00000005 ffffffffffffffff ffff 01 00 00",
    ),
    (
        ConsumerGroupHeartbeatResponse(member_epoch=3, heartbeat_interval_ms=5000),
        1,
        "00000000 0000 00 00 00000003 00001388 ff 00",
    ),
    (
        ConsumerGroupHeartbeatResponse(
            assignment=ConsumerGroupHeartbeatResponseAssignment(
                topic_partitions=[ConsumerGroupHeartbeatResponseTopic(topic_id=TOPIC_ID, partitions=[0, 1])]
            )
        ),
        1,
        f"00000000 0000 00 00 00000000 00000000  01 02 {TOPIC_ID_HEX} 03 00000000 00000001 00 00  00",
    ),
    (
        DescribeClientQuotasResponse(
            entries=[
                DescribeClientQuotasResponseEntry(
                    entity=[ClientQuotaEntity(entity_type="user", entity_name=None)],
                    values=[DescribeClientQuotasResponseValue(key="k", value=1.5)],
                )
            ]
        ),
        0,
        "00000000 0000 ffff  00000001  00000001 0004 75736572 ffff  00000001 0001 6b 3ff8000000000000",
    ),
    (UpdateFeaturesRequest(timeout_ms=60_000, validate_only=True), 2, "0000ea60 01 01 00"),
    (
        ShareFetchRequest(
            group_id="g", member_id="m", max_wait_ms=1, min_bytes=2, max_bytes=3, max_records=4, batch_size=5
        ),
        1,
        "02 67 02 6d 00000000 00000001 00000002 00000003 00000004 00000005 01 01 00",
    ),
    (
        ShareFetchRequest(group_id="g", member_id="m", share_acquire_mode=1, is_renew_ack=True),
        2,
        "02 67 02 6d 00000000 00000000 00000000 7fffffff 00000000 00000000 01 01 01 01 00",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "text"), CASES, ids=lambda value: getattr(type(value), "__name__", None)
)
def test_bytes_by_hand(message: object, version: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode(message, version).hex() == data.hex()
    assert decode(type(message), version, data) == message
