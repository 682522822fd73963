"""The APIs, held against the list of Apache Kafka 4.3: key, name, versions, the first flexible version."""

from cordwood.wire.registry import API_BY_NAME, APIS, Api

KAFKA = """
0 Produce 3-13 9
1 Fetch 4-18 12
2 ListOffsets 1-11 6
3 Metadata 0-13 9
8 OffsetCommit 2-10 8
9 OffsetFetch 1-10 6
10 FindCoordinator 0-6 3
11 JoinGroup 0-9 6
12 Heartbeat 0-4 4
13 LeaveGroup 0-5 4
14 SyncGroup 0-5 4
15 DescribeGroups 0-6 5
16 ListGroups 0-5 3
17 SaslHandshake 0-1 -
18 ApiVersions 0-4 3
19 CreateTopics 2-7 5
20 DeleteTopics 1-6 4
21 DeleteRecords 0-2 2
22 InitProducerId 0-6 2
23 OffsetForLeaderEpoch 2-4 4
24 AddPartitionsToTxn 0-5 3
25 AddOffsetsToTxn 0-4 3
26 EndTxn 0-5 3
27 WriteTxnMarkers 1-2 1
28 TxnOffsetCommit 0-5 3
29 DescribeAcls 1-3 2
30 CreateAcls 1-3 2
31 DeleteAcls 1-3 2
32 DescribeConfigs 1-4 4
33 AlterConfigs 0-2 2
34 AlterReplicaLogDirs 1-2 2
35 DescribeLogDirs 1-5 2
36 SaslAuthenticate 0-2 2
37 CreatePartitions 0-3 2
38 CreateDelegationToken 1-3 2
39 RenewDelegationToken 1-2 2
40 ExpireDelegationToken 1-2 2
41 DescribeDelegationToken 1-3 2
42 DeleteGroups 0-2 2
43 ElectLeaders 0-2 2
44 IncrementalAlterConfigs 0-1 1
45 AlterPartitionReassignments 0-1 0
46 ListPartitionReassignments 0-0 0
47 OffsetDelete 0-0 -
48 DescribeClientQuotas 0-1 1
49 AlterClientQuotas 0-1 1
50 DescribeUserScramCredentials 0-0 0
51 AlterUserScramCredentials 0-0 0
55 DescribeQuorum 0-2 0
57 UpdateFeatures 0-2 0
60 DescribeCluster 0-2 0
61 DescribeProducers 0-0 0
64 UnregisterBroker 0-0 0
65 DescribeTransactions 0-0 0
66 ListTransactions 0-2 0
68 ConsumerGroupHeartbeat 0-1 0
69 ConsumerGroupDescribe 0-1 0
71 GetTelemetrySubscriptions 0-0 0
72 PushTelemetry 0-0 0
74 ListConfigResources 0-1 0
75 DescribeTopicPartitions 0-0 0
76 ShareGroupHeartbeat 1-1 0
77 ShareGroupDescribe 1-1 0
78 ShareFetch 1-2 0
79 ShareAcknowledge 1-2 0
80 AddRaftVoter 0-1 0
81 RemoveRaftVoter 0-0 0
83 InitializeShareGroupState 0-0 0
84 ReadShareGroupState 0-0 0
85 WriteShareGroupState 0-1 0
86 DeleteShareGroupState 0-0 0
87 ReadShareGroupStateSummary 0-1 0
88 StreamsGroupHeartbeat 0-0 0
89 StreamsGroupDescribe 0-0 0
90 DescribeShareGroupOffsets 0-1 0
91 AlterShareGroupOffsets 0-0 0
92 DeleteShareGroupOffsets 0-0 0
"""


def _line(api: Api) -> str:
    flexible = api.flexible_from if api.flexible_from in range(100) else "-"
    return f"{api.key} {api.name} {api.versions.start}-{api.versions.stop - 1} {flexible}"


def test_the_apis_are_those_of_kafka() -> None:
    assert [_line(api) for api in APIS.values()] == KAFKA.split("\n")[1:-1]
    assert len(APIS) == 77


def test_apis_are_found_by_name() -> None:
    assert list(API_BY_NAME.values()) == list(APIS.values())
    assert API_BY_NAME["Produce"] is APIS[0]


def test_headers_follow_flexibility() -> None:
    assert [APIS[12].request_header_version(version) for version in (3, 4)] == [1, 2]
    assert [APIS[12].response_header_version(version) for version in (3, 4)] == [0, 1]
    assert [APIS[18].request_header_version(version) for version in (2, 3, 99)] == [1, 2, 2]
    assert [APIS[18].response_header_version(version) for version in (2, 3, 99)] == [0, 0, 0]
    assert APIS[17].request_header_version(1) == 1
