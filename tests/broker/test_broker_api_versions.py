"""ApiVersions: what is served, in every version, and to a client from the future."""

import pytest

from broker.harness import Harness
from cordwood.broker.handlers import HANDLERS
from cordwood.errors import Error
from cordwood.wire.messages import ApiVersionsRequest, ApiVersionsResponse, InitProducerIdRequest
from cordwood.wire.registry import APIS


@pytest.mark.parametrize("version", range(5))
def test_everything_served_is_listed_with_its_versions(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="a-client", client_software_version="1.0")
    response = Harness().connect().ask(request, version, ApiVersionsResponse)
    assert response.error_code == Error.NONE
    listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert listed.keys() == HANDLERS.keys()
    unreleased = {22: 5}
    assert listed == {
        key: (0 if key == 0 else APIS[key].versions[0], unreleased.get(key, APIS[key].versions[-1])) for key in listed
    }


def test_a_version_that_kafka_has_not_released_is_not_served() -> None:
    client = Harness().connect()
    client.send(InitProducerIdRequest(transaction_timeout_ms=1000), 6)
    assert client.closed is not None
    assert "InitProducerId version 6" in client.closed


def test_produce_is_listed_from_version_zero_for_librdkafka() -> None:
    response = Harness().connect().ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert (response.api_keys[0].api_key, response.api_keys[0].min_version) == (0, 0)


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unknown_version_is_answered_in_version_zero_with_the_list(version: int) -> None:
    client = Harness().connect()
    client.expect_raw(77, ApiVersionsResponse, 0)
    head = b"\0\x12" + version.to_bytes(2, "big") + (77).to_bytes(4, "big") + b"\xff\xff\0"
    client.send_bytes(head + b"whatever the future may bring")
    response = client.take(ApiVersionsResponse)
    assert response.error_code == Error.UNSUPPORTED_VERSION
    assert {api.api_key for api in response.api_keys} == HANDLERS.keys()
    assert client.closed is None


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1!"), ("a", ".1"), ("ä", "1"), ("a\n", "1")],
)
def test_a_client_software_name_is_checked(version: int, name: str, software_version: str) -> None:
    client = Harness().connect()
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    assert client.ask(request, version, ApiVersionsResponse).error_code == Error.INVALID_REQUEST
    assert client.connection.software == ""


def test_a_clients_software_is_remembered() -> None:
    client = Harness().connect()
    request = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.0")
    client.ask(request, 4, ApiVersionsResponse)
    assert client.connection.software == "apache-kafka-java/4.3.0"
