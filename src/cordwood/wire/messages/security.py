"""Authentication and authorization: SASL, ACLs, SCRAM credentials, delegation tokens."""

from cordwood.wire.types import i8, i16, i32, i64, message, v


@message(key=17, versions="0-1")
class SaslHandshakeRequest:
    """Choose a SASL mechanism. Version 1 wraps what follows in SaslAuthenticate."""

    mechanism: str = ""


@message(key=17, versions="0-1")
class SaslHandshakeResponse:
    """The mechanisms that are enabled."""

    error_code: i16 = 0
    mechanisms: list[str] = v()


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """A step of the SASL exchange: the client's bytes."""

    auth_bytes: bytes = b""


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """A step of the SASL exchange: the broker's bytes."""

    error_code: i16 = 0
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: i64 = v("1+")  # 0: no need to authenticate again


@message(key=29, versions="1-3", flexible="2+")
class DescribeAclsRequest:
    """Ask for the ACLs that match a filter; None matches everything."""

    resource_type_filter: i8 = 0
    resource_name_filter: str | None = None
    pattern_type_filter: i8 = 3  # 1 any, 2 match, 3 literal, 4 prefixed
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: i8 = 0
    permission_type: i8 = 0


@message
class DescribeAclsResponseAcl:
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message
class DescribeAclsResponseResource:
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = 3
    acls: list[DescribeAclsResponseAcl] = v()


@message(key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """The ACLs found, by resource."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    resources: list[DescribeAclsResponseResource] = v()


@message
class CreateAclsRequestCreation:
    resource_type: i8 = 0
    resource_name: str = ""
    resource_pattern_type: i8 = 3  # 3 literal, 4 prefixed
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0  # 2 deny, 3 allow


@message(key=30, versions="1-3", flexible="2+")
class CreateAclsRequest:
    """Add ACLs."""

    creations: list[CreateAclsRequestCreation] = v()


@message
class CreateAclsResponseResult:
    error_code: i16 = 0
    error_message: str | None = None


@message(key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """What became of each ACL, in the order of the request."""

    throttle_time_ms: i32 = 0
    results: list[CreateAclsResponseResult] = v()


@message
class DeleteAclsRequestFilter:
    resource_type_filter: i8 = 0
    resource_name_filter: str | None = None
    pattern_type_filter: i8 = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: i8 = 0
    permission_type: i8 = 0


@message(key=31, versions="1-3", flexible="2+")
class DeleteAclsRequest:
    """Remove the ACLs that match filters."""

    filters: list[DeleteAclsRequestFilter] = v()


@message
class DeleteAclsResponseMatchingAcl:
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8 = 0
    resource_name: str = ""
    pattern_type: i8 = 3
    principal: str = ""
    host: str = ""
    operation: i8 = 0
    permission_type: i8 = 0


@message
class DeleteAclsResponseFilter:
    error_code: i16 = 0
    error_message: str | None = None
    matching_acls: list[DeleteAclsResponseMatchingAcl] = v()


@message(key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """The ACLs that each filter removed, in the order of the request."""

    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsResponseFilter] = v()


@message
class DescribeUserScramCredentialsRequestUser:
    name: str = ""


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """Ask which SCRAM credentials users have; no list means all users."""

    users: list[DescribeUserScramCredentialsRequestUser] | None = v(default=[])


@message
class DescribeUserScramCredentialsResponseCredential:
    mechanism: i8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: i32 = 0


@message
class DescribeUserScramCredentialsResponseUser:
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = None
    credential_infos: list[DescribeUserScramCredentialsResponseCredential] = v()


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """The users' mechanisms and iterations: never the secrets."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResponseUser] = v()


@message
class AlterUserScramCredentialsRequestDeletion:
    name: str = ""
    mechanism: i8 = 0


@message
class AlterUserScramCredentialsRequestUpsertion:
    name: str = ""
    mechanism: i8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: i32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """Set and remove SCRAM credentials, salted by the client."""

    deletions: list[AlterUserScramCredentialsRequestDeletion] = v()
    upsertions: list[AlterUserScramCredentialsRequestUpsertion] = v()


@message
class AlterUserScramCredentialsResponseUser:
    user: str = ""
    error_code: i16 = 0
    error_message: str | None = None


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """What became of each user."""

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResponseUser] = v()


@message
class CreateDelegationTokenRequestRenewer:
    principal_type: str = ""
    principal_name: str = ""


@message(key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    """Ask for a token that can log in as its owner."""

    owner_principal_type: str | None = v("3+")  # None: whoever asks
    owner_principal_name: str | None = v("3+")
    renewers: list[CreateDelegationTokenRequestRenewer] = v()
    max_lifetime_ms: i64 = 0  # -1: the broker's limit


@message(key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token, with the secret it is used with."""

    error_code: i16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = v("3+")
    token_requester_principal_name: str = v("3+")
    issue_timestamp_ms: i64 = 0
    expiry_timestamp_ms: i64 = 0
    max_timestamp_ms: i64 = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: i32 = 0


@message(key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    """Extend a token's lifetime."""

    hmac: bytes = b""
    renew_period_ms: i64 = 0


@message(key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """When the token expires now."""

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0


@message(key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """Let a token expire, now (a negative period) or later."""

    hmac: bytes = b""
    expiry_time_period_ms: i64 = 0  # negative: now


@message(key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """When the token expires now."""

    error_code: i16 = 0
    expiry_timestamp_ms: i64 = 0
    throttle_time_ms: i32 = 0


@message
class DescribeDelegationTokenRequestOwner:
    principal_type: str = ""
    principal_name: str = ""


@message(key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """Ask for the tokens of owners; no list means all that may be seen."""

    owners: list[DescribeDelegationTokenRequestOwner] | None = v(default=[])


@message
class DescribeDelegationTokenResponseRenewer:
    principal_type: str = ""
    principal_name: str = ""


@message
class DescribeDelegationTokenResponseToken:
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = v("3+")
    token_requester_principal_name: str = v("3+")
    issue_timestamp: i64 = 0
    expiry_timestamp: i64 = 0
    max_timestamp: i64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribeDelegationTokenResponseRenewer] = v()


@message(key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """The tokens found."""

    error_code: i16 = 0
    tokens: list[DescribeDelegationTokenResponseToken] = v()
    throttle_time_ms: i32 = 0
