"""Bytes that are no requests, or not all of one."""

import pytest

from attacks.arena import MIB, REQUEST_BYTES_MAX
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
)
from support.process import BrokerProcess
from support.raw import RawClient, crowd, encoded, framed

API_VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
TLS_CLIENT_HELLO = bytes.fromhex("16030100f8010000f40303") + bytes(240)


def test_a_length_beyond_the_limit_closes(client: RawClient, broker: BrokerProcess) -> None:
    client.send_bytes((REQUEST_BYTES_MAX + 1).to_bytes(4, "big"))
    assert client.closed()
    assert broker.says(f"longer than socket.request.max.bytes = {REQUEST_BYTES_MAX}")


@pytest.mark.parametrize("length", [0, -1, -(2**31)])
def test_a_length_that_is_not_positive_closes(client: RawClient, broker: BrokerProcess, length: int) -> None:
    client.send_bytes(length.to_bytes(4, "big", signed=True) + b"rest")
    assert client.closed()
    assert broker.says(f"a request of length {length}")


def test_a_claimed_length_reserves_no_memory(broker: BrokerProcess) -> None:
    before = broker.forget_peak()
    with crowd(broker.bootstrap, 100) as clients, RawClient(broker.bootstrap) as other:
        for client in clients:
            client.send_bytes(REQUEST_BYTES_MAX.to_bytes(4, "big") + b"some")
        other.ask(API_VERSIONS, ApiVersionsResponse)
        assert broker.peak_rss_bytes - before < 40 * MIB, "100 claims of 8 MiB"


def test_a_request_before_a_bad_length_is_answered(client: RawClient) -> None:
    client.send_bytes(encoded(API_VERSIONS, version=4) + b"\x00\x00\x00\x00")
    assert client.receive_frame()
    assert client.closed()


@pytest.mark.parametrize("size", range(1, 10))
def test_a_request_shorter_than_its_header_closes(client: RawClient, size: int) -> None:
    client.send_bytes(framed(bytes(size)))
    assert client.closed()


@pytest.mark.parametrize("version", [0, 1, 8, 12, 13])
def test_a_truncated_body_closes(broker: BrokerProcess, version: int) -> None:
    request = encoded(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), version=version)[4:]
    for end in range(10, len(request)):
        with RawClient(broker.bootstrap) as client:
            client.send_bytes(framed(request[:end]))
            assert client.closed(), f"{end} of {len(request)} bytes were taken for a request"


@pytest.mark.parametrize("version", [0, 12])
def test_a_body_with_bytes_to_spare_closes(client: RawClient, broker: BrokerProcess, version: int) -> None:
    client.send_bytes(framed(encoded(MetadataRequest(topics=[]), version=version)[4:] + b"!"))
    assert client.closed()
    assert broker.says("1 bytes too many")


@pytest.mark.parametrize("count", [2**31 - 1, 1_000_000, -2, -(2**31)])
def test_an_array_count_beyond_the_frame_closes(client: RawClient, count: int) -> None:
    head = encoded(MetadataRequest(topics=[]), version=1)[4:-4]
    client.send_bytes(framed(head + count.to_bytes(4, "big", signed=True)))
    assert client.closed()


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff"])
def test_a_compact_count_beyond_the_frame_closes(client: RawClient, varint: bytes) -> None:
    head = encoded(MetadataRequest(topics=[]), version=12)[4:-4]
    client.send_bytes(framed(head + varint + bytes(3)))
    assert client.closed()


@pytest.mark.parametrize("length", [32767, -2, -32768])
def test_a_string_length_beyond_the_frame_closes(client: RawClient, length: int) -> None:
    head = encoded(MetadataRequest(topics=[]), version=1)[4:-4]
    client.send_bytes(framed(head + b"\0\0\0\1" + length.to_bytes(2, "big", signed=True) + b"t"))
    assert client.closed()


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf"], ids=["no-utf8", "surrogate", "overlong"])
def test_text_that_is_not_utf8_closes(client: RawClient, text: bytes) -> None:
    head = encoded(MetadataRequest(topics=[]), version=1)[4:-4]
    client.send_bytes(framed(head + b"\0\0\0\1" + len(text).to_bytes(2, "big") + text))
    assert client.closed()


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf"], ids=["no-utf8", "surrogate", "overlong"])
def test_a_client_id_that_is_not_utf8_closes(client: RawClient, text: bytes) -> None:
    client.send_bytes(framed(b"\0\x03\0\x01" + bytes(4) + len(text).to_bytes(2, "big") + text + b"\0\0\0\0"))
    assert client.closed()


@pytest.mark.parametrize("key", [-1, -32768, 4, 6, 7, 52, 93, 1000, 32767])
def test_an_unknown_api_closes(client: RawClient, broker: BrokerProcess, key: int) -> None:
    client.send_bytes(framed(key.to_bytes(2, "big", signed=True) + bytes(10)))
    assert client.closed()
    assert broker.says(f"API {key} version 0 is not served here")


@pytest.mark.parametrize(("key", "version"), [(3, -1), (3, 14), (3, 32767), (0, 2), (0, 14), (1, 3), (11, 0), (27, 0)])
def test_an_unknown_version_or_an_api_not_served_closes(client: RawClient, key: int, version: int) -> None:
    body = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + bytes(4) + b"\xff\xff" + bytes(20)
    client.send_bytes(framed(body))
    assert client.closed()


@pytest.mark.parametrize("version", [-1, 5, 99, 32767])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: RawClient, version: int) -> None:
    body = b"\0\x12" + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x07" + b"\xff\xff" + bytes(1)
    client.send_bytes(framed(body))
    answer = client.receive_frame()
    assert answer[:6] == b"\0\0\0\x07\0\x23", "its correlation id, and UNSUPPORTED_VERSION"


def test_garbage_closes(broker: BrokerProcess) -> None:
    for pattern in (bytes(range(255, 0, -1)), b"\x00" * 64, b"\x7f" * 64, b"hello\r\n" * 10, b"\xff" * 64):
        with RawClient(broker.bootstrap) as client:
            client.send_bytes(pattern)
            assert client.closed()


def test_tls_on_a_plain_port_closes_and_says_so(client: RawClient, broker: BrokerProcess) -> None:
    client.send_bytes(TLS_CLIENT_HELLO)
    assert client.closed()
    assert broker.says("TLS handshake")


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT"])
def test_http_closes_and_says_so(client: RawClient, broker: BrokerProcess, method: str) -> None:
    client.send_bytes(f"{method} / HTTP/1.1\r\nHost: broker\r\n\r\n".encode())
    assert client.closed()
    assert broker.says("HTTP request")
