"""The blocking client over TLS: whom it believes, who believes it, and what it says if somebody does not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cordwood.client.raw import AuthenticationFailed, RawClient, RawSettings, Unavailable
from cordwood.record.build import Record, build
from cordwood.testing import Broker
from support.tls import Certificate, TlsServer, make_certificate

VALUE = b"x" * 1_500_000
"""More than one record of TLS, and more than the client's first buffer."""


class Certificates:
    def __init__(self, directory: Path) -> None:
        self.server = make_certificate(directory, "server")
        self.elsewhere = make_certificate(directory, "elsewhere", subject="DNS:kafka.example.org")
        self.client = make_certificate(directory, "client")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def served(server: TlsServer) -> Iterator[TlsServer]:
    settings = {"advertised.listeners": f"PLAINTEXT://{server.address}", "message.max.bytes": 2_000_000}
    with server, Broker(settings=settings) as broker:
        server.lead_to(broker.port)
        yield server


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[TlsServer]:
    yield from served(TlsServer(certificates.server))


@pytest.fixture(scope="module")
def strict_server(certificates: Certificates) -> Iterator[TlsServer]:
    """It wants to know who its clients are."""
    yield from served(TlsServer(certificates.server, clients=certificates.client))


@pytest.fixture(scope="module")
def other_server(certificates: Certificates) -> Iterator[TlsServer]:
    """Its certificate is that of another host."""
    yield from served(TlsServer(certificates.elsewhere))


def settings(server: TlsServer, **properties: object) -> RawSettings:
    """Underscores in names stand for dots."""
    given = {name.replace("_", "."): str(value) for name, value in properties.items()}
    short = {"default.api.timeout.ms": "1000", "retry.backoff.ms": "10"}
    return RawSettings.of_properties(
        {"bootstrap.servers": server.address, "security.protocol": "SSL", **short, **given}
    )


def stored_and_read(made: RawSettings) -> bool:
    with RawClient(made) as client:
        client.topics(["t"], create=True)
        offset = client.produce("t", {0: bytes(build([Record(0, 0, None, VALUE)]))})[0]
        return VALUE in bytes(client.fetch("t", 0, offset).records)


def trusting(certificate: Certificate) -> dict[str, object]:
    return {"ssl_truststore_location": certificate.certificate, "ssl_truststore_type": "PEM"}


def test_records_go_there_and_back(server: TlsServer, certificates: Certificates) -> None:
    assert stored_and_read(settings(server, **trusting(certificates.server)))
    assert stored_and_read(settings(server, ssl_ca_location=certificates.server.certificate))
    text = certificates.server.certificate.read_text()
    assert stored_and_read(settings(server, ssl_truststore_certificates=text))


def test_a_server_that_nobody_vouches_for_is_refused_in_one_sentence(
    server: TlsServer, certificates: Certificates
) -> None:
    before = server.connections
    refused = pytest.raises(AuthenticationFailed, match=rf"certificate of {server.address} is not trusted: ")
    with refused as caught, RawClient(settings(server, **trusting(certificates.client))) as client:
        client.topics()
    assert "\n" not in str(caught.value)
    assert server.connections == before + 1, "it will not be another one the next time"


def test_the_certificate_of_another_host_is_refused_unless_nobody_minds(
    other_server: TlsServer, certificates: Certificates
) -> None:
    trusted = trusting(certificates.elsewhere)
    with (
        pytest.raises(AuthenticationFailed, match="not valid for"),
        RawClient(settings(other_server, **trusted)) as client,
    ):
        client.topics()
    assert stored_and_read(settings(other_server, **trusted, ssl_endpoint_identification_algorithm=""))


def test_a_client_shows_its_certificate(strict_server: TlsServer, certificates: Certificates) -> None:
    trusted, client = trusting(certificates.server), certificates.client
    in_one = {"ssl_keystore_location": client.both, "ssl_keystore_type": "PEM"}
    in_two = {"ssl_certificate_location": client.certificate, "ssl_key_location": client.key}
    assert stored_and_read(settings(strict_server, **trusted, **in_one))
    assert stored_and_read(settings(strict_server, **trusted, **in_two))


def test_a_client_without_a_certificate_is_told_so(strict_server: TlsServer, certificates: Certificates) -> None:
    with (
        pytest.raises(AuthenticationFailed, match="does the broker want a certificate of ours"),
        RawClient(settings(strict_server, **trusting(certificates.server))) as client,
    ):
        client.topics()


def test_certificates_that_are_not_there_are_named(server: TlsServer, certificates: Certificates) -> None:
    with pytest.raises(AuthenticationFailed, match="they must be PEM files"):
        RawClient(settings(server, ssl_ca_location="/nowhere.pem"))
    with pytest.raises(AuthenticationFailed, match="they must be PEM files"):
        RawClient(settings(server, ssl_certificate_location=certificates.server.key))


def test_a_broker_without_tls_is_said_to_hang_up(certificates: Certificates) -> None:
    with Broker() as broker:
        given = {"bootstrap.servers": broker.bootstrap, "security.protocol": "SSL", "default.api.timeout.ms": "100"}
        ca = {"ssl.ca.location": str(certificates.server.certificate)}
        with (
            pytest.raises(Unavailable, match=r"the last reason: .*127\.0\.0\.1"),
            RawClient(RawSettings.of_properties({**given, **ca})) as client,
        ):
            client.topics()
