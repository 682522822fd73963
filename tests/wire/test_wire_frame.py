"""Frames and headers, from both ends of a connection."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.errors import ProtocolError
from cordwood.ports import Chunk, FileSlice
from cordwood.wire import decoder, encode
from cordwood.wire.client_frame import read_correlation_id, read_response, request_frame
from cordwood.wire.frame import Encoded, read_request, read_request_head, response_frame
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    RequestHeader,
    ResponseHeader,
    SaslHandshakeRequest,
)
from cordwood.wire.registry import APIS, Api

EVERY_API = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks)


def without_size(frame: bytes) -> memoryview:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return memoryview(frame)[4:]


def request_bytes(header: RequestHeader, *, flexible: bool, body: bytes = b"") -> memoryview:
    return memoryview(encode(header, 2 if flexible else 1) + body)


@EVERY_API
def test_a_request_is_read_as_it_was_written(api: Api) -> None:
    for version in api.versions:
        for client_id in (None, "", "me", "x" * 300):
            chunks = request_frame(correlation_id=7, api_version=version, message=api.request(), client_id=client_id)
            frame = without_size(joined(chunks))
            head = read_request_head(frame)
            found = head.api_key, head.api_version, head.correlation_id, head.client_id
            assert found == (api.key, version, 7, client_id)
            assert head.api is api
            assert head.known
            assert read_request(head, frame) == api.request()


@EVERY_API
def test_a_request_header_is_the_declared_one(api: Api) -> None:
    for version in api.versions:
        declared = RequestHeader(request_api_key=api.key, request_api_version=version, correlation_id=-3, client_id="é")
        header_bytes = encode(declared, api.request_header_version(version))
        made = joined(request_frame(correlation_id=-3, api_version=version, message=api.request(), client_id="é"))
        assert made[4 : 4 + len(header_bytes)] == header_bytes
        assert read_request_head(memoryview(header_bytes)).body == len(header_bytes)


@EVERY_API
def test_a_response_is_read_as_it_was_written(api: Api) -> None:
    for version in api.versions:
        made = response_frame(correlation_id=9, api_key=api.key, api_version=version, message=api.response())
        frame = without_size(joined(made))
        header, _ = decoder(ResponseHeader, api.response_header_version(version))(frame, 0)
        assert header == ResponseHeader(correlation_id=9)
        assert read_correlation_id(frame) == 9
        assert read_response(api.response, version, frame) == api.response()


def test_a_response_without_records_is_one_chunk() -> None:
    assert len(response_frame(correlation_id=1, api_key=12, api_version=4, message=HeartbeatResponse())) == 1


@pytest.mark.parametrize("version", [0, 4])  # with the header's old and new shape
def test_a_remembered_answer_is_the_same_on_the_wire(version: int) -> None:
    answer = HeartbeatResponse(error_code=27)
    remembered = Encoded(type(answer), version, encode(answer, version))
    assert remembered.message == answer
    frames = [
        response_frame(correlation_id=7, api_key=12, api_version=version, message=message)
        for message in (answer, remembered)
    ]
    assert frames[0] == frames[1]


def test_api_versions_is_answered_with_the_oldest_header() -> None:
    for version in range(5):
        made = response_frame(correlation_id=1, api_key=18, api_version=version, message=ApiVersionsResponse())
        assert joined(made)[4:] == b"\0\0\0\1" + encode(ApiVersionsResponse(), version)


def test_flexible_responses_have_one_byte_of_tags_in_the_header() -> None:
    made = response_frame(correlation_id=1, api_key=12, api_version=4, message=HeartbeatResponse())
    assert joined(made) == b"\0\0\0\x0c" + b"\0\0\0\1" + b"\0" + b"\0\0\0\0\0\0\0"


def test_sasl_handshake_never_became_flexible() -> None:
    made = request_frame(correlation_id=1, api_version=1, message=SaslHandshakeRequest(mechanism="PLAIN"))
    assert joined(made)[4:] == b"\0\x11\0\1\0\0\0\1\xff\xff" + b"\0\x05PLAIN"


def test_an_unknown_api_key_is_reported() -> None:
    for key in (4, 7, 93, 999, -1, -32768):
        header = RequestHeader(request_api_key=key, request_api_version=2, correlation_id=5, client_id="c")
        head = read_request_head(request_bytes(header, flexible=False))
        assert (head.api_key, head.api_version, head.correlation_id) == (key, 2, 5)
        assert head.api is None
        assert not head.known


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
def test_an_unknown_version_is_reported_with_its_correlation_id(version: int) -> None:
    header = RequestHeader(request_api_key=18, request_api_version=version, correlation_id=5, client_id="c")
    head = read_request_head(request_bytes(header, flexible=version > 2, body=b"what it means nobody knows"))
    assert head.api is APIS[18]
    assert not head.known
    assert (head.correlation_id, head.client_id) == (5, "c")


def test_versions_below_kafkas_minimum_are_unknown() -> None:
    header = RequestHeader(request_api_key=0, request_api_version=2, correlation_id=5)
    assert not read_request_head(request_bytes(header, flexible=False)).known


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "a request of 0 bytes"),
        (b"\0\x12\0\3\0\0\0\1\xff", "a request of 9 bytes"),
        (b"\0\x12\0\0\0\0\0\1\xff\xfe", "client id: length -2"),
        (b"\0\x12\0\0\0\0\0\1\x80\x00", "client id: length -32768"),
        (b"\0\x12\0\0\0\0\0\1\0\5abcd", "a request of 14 bytes"),
        (b"\0\x12\0\0\0\0\0\1\x7f\xff" + bytes(500), "client id: 32767 claimed, 500 bytes left"),
        (b"\0\x12\0\0\0\0\0\1\0\1\xff", "client id: not UTF-8"),
        (b"\0\x12\0\0\0\0\0\1\1\0" + b"\xff" * 256, "client id: not UTF-8"),
        (b"\0\x12\0\3\0\0\0\1\xff\xff", "the header ends too early"),
        (b"\0\x12\0\3\0\0\0\1\xff\xff\2\0\0\0\0", "tagged field 0 comes after 0"),
        (b"\0\x12\0\3\0\0\0\1\xff\xff\x01\0\x05abc", "tagged field 0 claims 5 bytes of 3"),
        (b"\0\x12\0\3\0\0\0\1\xff\xff\xff\xff\xff\xff\x0f", "tagged fields: 4294967295 claimed"),
    ],
)
def test_a_bad_header_is_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        read_request_head(memoryview(frame))


def test_unknown_tags_in_headers_are_passed_over() -> None:
    start = b"\0\x0c\0\4\0\0\0\1\0\2me" + b"\2\0\3abc\x80\1\0"
    frame = memoryview(start + encode(HeartbeatRequest(group_id="g"), 4))
    assert read_request(read_request_head(frame), frame) == HeartbeatRequest(group_id="g")
    answer = memoryview(b"\0\0\0\1" + b"\1\7\1x" + encode(HeartbeatResponse(error_code=27), 4))
    assert read_response(HeartbeatResponse, 4, answer) == HeartbeatResponse(error_code=27)


def test_a_body_that_does_not_fill_its_frame_is_refused() -> None:
    frame = memoryview(joined(request_frame(correlation_id=1, api_version=0, message=ApiVersionsRequest()))[4:] + b"!")
    with pytest.raises(ProtocolError, match="ApiVersionsRequest v0: 1 bytes too many"):
        read_request(read_request_head(frame), frame)
    with pytest.raises(ProtocolError, match="1 bytes too many"):
        read_response(HeartbeatResponse, 0, memoryview(b"\0\0\0\1" + b"\0\0" + b"!"))


@pytest.mark.parametrize("version", [11, 12, 13])
def test_librdkafka_may_ask_for_all_topics_in_its_own_way(version: int) -> None:
    """As Kafka does, we read the zeros that it writes too many in place of what it meant to write."""
    header = RequestHeader(request_api_key=3, request_api_version=version, correlation_id=5, client_id="rdkafka")
    for flags in (b"\1\0\0", b"\0\1\0", b"\0\0\0"):
        frame = request_bytes(header, flexible=True, body=b"\0\0\0\0" + flags)
        found = read_request(read_request_head(frame), frame)
        assert found == MetadataRequest(topics=None, allow_auto_topic_creation=False)


@pytest.mark.parametrize(
    ("version", "body"),
    [(12, b"\0\0\0\0\0"), (12, b"\0\0\0\0\0\0\0\0"), (12, b"\0\1\0\0\0\0\0"), (10, bytes(8)), (8, bytes(14))],
)
def test_other_metadata_requests_must_fill_their_frame(version: int, body: bytes) -> None:
    header = RequestHeader(request_api_key=3, request_api_version=version, correlation_id=5)
    frame = request_bytes(header, flexible=version >= 9, body=body)
    with pytest.raises(ProtocolError, match="bytes too many"):
        read_request(read_request_head(frame), frame)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0"])
def test_a_response_too_short_for_an_id_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"a response of {len(frame)} bytes"):
        read_correlation_id(memoryview(frame))


def test_a_response_without_the_tags_of_its_header_is_refused() -> None:
    with pytest.raises(ProtocolError, match="the header ends too early"):
        read_response(HeartbeatResponse, 4, memoryview(b"\0\0\0\1"))


def test_a_response_goes_out_under_its_own_api_only() -> None:
    with pytest.raises(AssertionError):
        response_frame(correlation_id=1, api_key=3, api_version=4, message=HeartbeatResponse())
    with pytest.raises(AssertionError):
        request_frame(correlation_id=1, api_version=0, message=HeartbeatResponse())


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=40))
def test_any_bytes_have_a_head_or_are_refused(frame: bytes) -> None:
    view = memoryview(frame)
    try:
        head = read_request_head(view)
        if head.known:
            read_request(head, view)
    except ProtocolError:
        pass


def test_the_frame_may_be_part_of_a_writable_buffer() -> None:
    made = joined(request_frame(correlation_id=1, api_version=12, message=MetadataRequest(topics=None), client_id="c"))
    buffer = bytearray(b"....") + made
    frame = memoryview(buffer)[8:]
    assert read_request(read_request_head(frame), frame) == MetadataRequest(topics=None)
