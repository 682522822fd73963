"""Every API for clients: its key, its two messages, its versions.

The wire layer can read and write all APIs listed here; whether a broker serves them is the broker's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from . import messages as m
from .types import API_VERSIONS_KEY, VERSION_MAX, spec_of


@dataclass(frozen=True, slots=True)
class Api:
    """One API. For the few that never became flexible, ``flexible_from`` is beyond all versions."""

    key: int
    name: str
    request: type[Any]
    response: type[Any]
    versions: range
    flexible_from: int

    def request_header_version(self, version: int) -> int:
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """The header's version. For ApiVersions it is always 0, because a client reads that response before it knows
        what the broker supports."""
        return 1 if version >= self.flexible_from and self.key != API_VERSIONS_KEY else 0


def _api(request: type, response: type) -> Api:
    asks, answers = spec_of(request), spec_of(response)
    assert asks.key is not None
    assert (asks.key, asks.versions, asks.flexible) == (answers.key, answers.versions, answers.flexible)
    return Api(
        key=asks.key,
        name=asks.name.removesuffix("Request"),
        request=request,
        response=response,
        versions=asks.versions,
        flexible_from=asks.flexible.start if asks.flexible else VERSION_MAX + 1,
    )


def _by_key(pairs: tuple[tuple[type, type], ...]) -> Mapping[int, Api]:
    apis = {api.key: api for api in (_api(request, response) for request, response in pairs)}
    assert len(apis) == len(pairs)
    return MappingProxyType(apis)


APIS: Final = _by_key(
    (
        (m.ProduceRequest, m.ProduceResponse),  # 0
        (m.FetchRequest, m.FetchResponse),  # 1
        (m.ListOffsetsRequest, m.ListOffsetsResponse),  # 2
        (m.MetadataRequest, m.MetadataResponse),  # 3
        (m.OffsetCommitRequest, m.OffsetCommitResponse),  # 8
        (m.OffsetFetchRequest, m.OffsetFetchResponse),  # 9
        (m.FindCoordinatorRequest, m.FindCoordinatorResponse),  # 10
        (m.JoinGroupRequest, m.JoinGroupResponse),  # 11
        (m.HeartbeatRequest, m.HeartbeatResponse),  # 12
        (m.LeaveGroupRequest, m.LeaveGroupResponse),  # 13
        (m.SyncGroupRequest, m.SyncGroupResponse),  # 14
        (m.DescribeGroupsRequest, m.DescribeGroupsResponse),  # 15
        (m.ListGroupsRequest, m.ListGroupsResponse),  # 16
        (m.SaslHandshakeRequest, m.SaslHandshakeResponse),  # 17
        (m.ApiVersionsRequest, m.ApiVersionsResponse),  # 18
        (m.CreateTopicsRequest, m.CreateTopicsResponse),  # 19
        (m.DeleteTopicsRequest, m.DeleteTopicsResponse),  # 20
        (m.DeleteRecordsRequest, m.DeleteRecordsResponse),  # 21
        (m.InitProducerIdRequest, m.InitProducerIdResponse),  # 22
        (m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse),  # 23
        (m.AddPartitionsToTxnRequest, m.AddPartitionsToTxnResponse),  # 24
        (m.AddOffsetsToTxnRequest, m.AddOffsetsToTxnResponse),  # 25
        (m.EndTxnRequest, m.EndTxnResponse),  # 26
        (m.WriteTxnMarkersRequest, m.WriteTxnMarkersResponse),  # 27
        (m.TxnOffsetCommitRequest, m.TxnOffsetCommitResponse),  # 28
        (m.DescribeAclsRequest, m.DescribeAclsResponse),  # 29
        (m.CreateAclsRequest, m.CreateAclsResponse),  # 30
        (m.DeleteAclsRequest, m.DeleteAclsResponse),  # 31
        (m.DescribeConfigsRequest, m.DescribeConfigsResponse),  # 32
        (m.AlterConfigsRequest, m.AlterConfigsResponse),  # 33
        (m.AlterReplicaLogDirsRequest, m.AlterReplicaLogDirsResponse),  # 34
        (m.DescribeLogDirsRequest, m.DescribeLogDirsResponse),  # 35
        (m.SaslAuthenticateRequest, m.SaslAuthenticateResponse),  # 36
        (m.CreatePartitionsRequest, m.CreatePartitionsResponse),  # 37
        (m.CreateDelegationTokenRequest, m.CreateDelegationTokenResponse),  # 38
        (m.RenewDelegationTokenRequest, m.RenewDelegationTokenResponse),  # 39
        (m.ExpireDelegationTokenRequest, m.ExpireDelegationTokenResponse),  # 40
        (m.DescribeDelegationTokenRequest, m.DescribeDelegationTokenResponse),  # 41
        (m.DeleteGroupsRequest, m.DeleteGroupsResponse),  # 42
        (m.ElectLeadersRequest, m.ElectLeadersResponse),  # 43
        (m.IncrementalAlterConfigsRequest, m.IncrementalAlterConfigsResponse),  # 44
        (m.AlterPartitionReassignmentsRequest, m.AlterPartitionReassignmentsResponse),  # 45
        (m.ListPartitionReassignmentsRequest, m.ListPartitionReassignmentsResponse),  # 46
        (m.OffsetDeleteRequest, m.OffsetDeleteResponse),  # 47
        (m.DescribeClientQuotasRequest, m.DescribeClientQuotasResponse),  # 48
        (m.AlterClientQuotasRequest, m.AlterClientQuotasResponse),  # 49
        (m.DescribeUserScramCredentialsRequest, m.DescribeUserScramCredentialsResponse),  # 50
        (m.AlterUserScramCredentialsRequest, m.AlterUserScramCredentialsResponse),  # 51
        (m.DescribeQuorumRequest, m.DescribeQuorumResponse),  # 55
        (m.UpdateFeaturesRequest, m.UpdateFeaturesResponse),  # 57
        (m.DescribeClusterRequest, m.DescribeClusterResponse),  # 60
        (m.DescribeProducersRequest, m.DescribeProducersResponse),  # 61
        (m.UnregisterBrokerRequest, m.UnregisterBrokerResponse),  # 64
        (m.DescribeTransactionsRequest, m.DescribeTransactionsResponse),  # 65
        (m.ListTransactionsRequest, m.ListTransactionsResponse),  # 66
        (m.ConsumerGroupHeartbeatRequest, m.ConsumerGroupHeartbeatResponse),  # 68
        (m.ConsumerGroupDescribeRequest, m.ConsumerGroupDescribeResponse),  # 69
        (m.GetTelemetrySubscriptionsRequest, m.GetTelemetrySubscriptionsResponse),  # 71
        (m.PushTelemetryRequest, m.PushTelemetryResponse),  # 72
        (m.ListConfigResourcesRequest, m.ListConfigResourcesResponse),  # 74
        (m.DescribeTopicPartitionsRequest, m.DescribeTopicPartitionsResponse),  # 75
        (m.ShareGroupHeartbeatRequest, m.ShareGroupHeartbeatResponse),  # 76
        (m.ShareGroupDescribeRequest, m.ShareGroupDescribeResponse),  # 77
        (m.ShareFetchRequest, m.ShareFetchResponse),  # 78
        (m.ShareAcknowledgeRequest, m.ShareAcknowledgeResponse),  # 79
        (m.AddRaftVoterRequest, m.AddRaftVoterResponse),  # 80
        (m.RemoveRaftVoterRequest, m.RemoveRaftVoterResponse),  # 81
        (m.InitializeShareGroupStateRequest, m.InitializeShareGroupStateResponse),  # 83
        (m.ReadShareGroupStateRequest, m.ReadShareGroupStateResponse),  # 84
        (m.WriteShareGroupStateRequest, m.WriteShareGroupStateResponse),  # 85
        (m.DeleteShareGroupStateRequest, m.DeleteShareGroupStateResponse),  # 86
        (m.ReadShareGroupStateSummaryRequest, m.ReadShareGroupStateSummaryResponse),  # 87
        (m.StreamsGroupHeartbeatRequest, m.StreamsGroupHeartbeatResponse),  # 88
        (m.StreamsGroupDescribeRequest, m.StreamsGroupDescribeResponse),  # 89
        (m.DescribeShareGroupOffsetsRequest, m.DescribeShareGroupOffsetsResponse),  # 90
        (m.AlterShareGroupOffsetsRequest, m.AlterShareGroupOffsetsResponse),  # 91
        (m.DeleteShareGroupOffsetsRequest, m.DeleteShareGroupOffsetsResponse),  # 92
    )
)
API_BY_NAME: Final[Mapping[str, Api]] = MappingProxyType({api.name: api for api in APIS.values()})


def api_of(message: object) -> Api:
    """The API of a request."""
    key = spec_of(type(message)).key
    assert key is not None
    api = APIS[key]
    assert isinstance(message, api.request)
    return api
