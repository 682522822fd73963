"""The raw client's settings, as a value that can be sent to any process.

``of_properties`` reads them under the names that Kafka's Java client uses. Settings for parts of that client that do
not exist here (deserializers, fetchers, metrics) are ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from cordwood.errors import ConfigError

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SASL_SSL = "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

FETCH_BYTES = 4 * 1024 * 1024
"""Larger answers gain nothing, but need more memory, and take longer until the first one is there."""
WAIT_MS = 500
"""How long a broker may wait for new records before it answers a Fetch."""

_JAAS_MODULES = ("plain.PlainLoginModule", "scram.ScramLoginModule")
_JAAS_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")


@dataclass(frozen=True, slots=True)
class Security:
    """How to authenticate ourselves and the broker."""

    protocol: str = PLAINTEXT
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str | None = None
    """A PEM file; without it, the system's authorities are trusted."""
    ca_text: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_file: str | None = None
    """If not set, the key is in the certificate's file."""
    key_password: str | None = field(default=None, repr=False)
    check_host: bool = True

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ConfigError(f"security.protocol is {self.protocol!r}; choose one of {', '.join(PROTOCOLS)}")
        if self.uses_sasl and self.mechanism not in MECHANISMS:
            raise ConfigError(f"sasl.mechanism is {self.mechanism!r}; choose one of {', '.join(MECHANISMS)}")
        if self.uses_sasl and not self.username:
            raise ConfigError(
                f"security.protocol is {self.protocol}, which needs a user: set sasl.jaas.config as for Kafka's "
                "client, or sasl.username and sasl.password"
            )

    @property
    def uses_tls(self) -> bool:
        return self.protocol in (SSL, SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)


@dataclass(frozen=True, slots=True)
class RawSettings:
    """Where the cluster is, and how patient to be with it."""

    bootstrap: str
    client_id: str = "cordwood"
    request_timeout_ms: int = 30_000
    """How long a single answer may take."""
    timeout_ms: int = 120_000
    """How long a whole operation may take, including retries: a broker that is away for less is waited for."""
    unknown_topic_timeout_ms: int = 2_000
    """It takes brokers a moment to hear of a new topic; one that stays unknown for longer is taken to be gone."""
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    isolation: int = READ_UNCOMMITTED
    """What ``offsets`` regards as the end of a partition: 0 the high watermark, 1 the last stable offset."""
    fetch_bytes: int = FETCH_BYTES
    """How many bytes one Fetch asks for."""
    response_bytes_max: int = 1024 * 1024 * 1024
    """Responses that claim to be larger are not believed. Only a batch of that size could need one."""
    rack: str = ""
    """Our location: what is read over the network comes from a replica there, if the brokers know of one."""
    security: Security = field(default_factory=Security)

    def __post_init__(self) -> None:
        addresses(self.bootstrap)
        for name in ("request_timeout_ms", "timeout_ms", "connect_timeout_ms", "retry_backoff_ms", "fetch_bytes"):
            if not 0 < getattr(self, name) < 2**31:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1 and less than 2^31")

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> Self:
        """From the properties of a Java client, such as ``bootstrap.servers`` and ``security.protocol``.

        Raises:
            ConfigError: one of them cannot be used; the text begins with its name.
        """
        if "bootstrap.servers" not in properties:
            raise ConfigError("bootstrap.servers is missing; write it as host:port, several with commas between them")
        numbers = {
            name: _number(properties, key)
            for key, name in (
                ("request.timeout.ms", "request_timeout_ms"),
                ("default.api.timeout.ms", "timeout_ms"),
                ("socket.connection.setup.timeout.ms", "connect_timeout_ms"),
                ("retry.backoff.ms", "retry_backoff_ms"),
                ("fetch.max.bytes", "fetch_bytes"),
            )
            if key in properties
        }
        level = properties.get("isolation.level", "read_uncommitted")
        if level not in ("read_uncommitted", "read_committed"):
            raise ConfigError(f"isolation.level is {level!r}; choose read_uncommitted or read_committed")
        return cls(
            bootstrap=properties["bootstrap.servers"],
            client_id=properties.get("client.id", "cordwood"),
            isolation=int(level == "read_committed"),
            rack=properties.get("client.rack", ""),
            security=_security(properties),
            **numbers,
        )


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """The hosts and ports in a list of addresses.

    >>> addresses("a:9092, [::1]:9093")
    [('a', 9092), ('::1', 9093)]
    """
    found = []
    for address in filter(None, map(str.strip, bootstrap.split(","))):
        host, _, port = address.rpartition("://")[2].rpartition(":")
        if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
            raise ConfigError(
                f"bootstrap.servers: {address} is not an address; write it as host:port, such as 127.0.0.1:9092"
            )
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ConfigError("bootstrap.servers is empty; write it as host:port, several with commas between them")
    return found


def _number(properties: Mapping[str, str], key: str) -> int:
    try:
        number = int(properties[key])
    except ValueError:
        number = 0
    if not 0 < number < 2**31:
        raise ConfigError(f"{key} is {properties[key]!r}; write a whole number, at least 1 and less than 2^31")
    return number


def _security(properties: Mapping[str, str]) -> Security:
    get = properties.get
    protocol = get("security.protocol", PLAINTEXT).upper()
    username, password = get("sasl.username", ""), get("sasl.password", "")
    if protocol.startswith("SASL") and "sasl.jaas.config" in properties:
        username, password = parse_jaas(properties["sasl.jaas.config"])
    return Security(
        protocol=protocol,
        mechanism=get("sasl.mechanism", "GSSAPI") if protocol.startswith("SASL") else "",
        username=username,
        password=password,
        ca_file=_pem(properties, "ssl.truststore") or get("ssl.ca.location"),
        ca_text=get("ssl.truststore.certificates"),
        certificate_file=_pem(properties, "ssl.keystore") or get("ssl.certificate.location"),
        key_file=get("ssl.key.location"),
        key_password=get("ssl.key.password"),
        check_host=get("ssl.endpoint.identification.algorithm", "https").lower() not in ("", "none"),
    )


def _pem(properties: Mapping[str, str], store: str) -> str | None:
    location = properties.get(f"{store}.location")
    if location is not None and properties.get(f"{store}.type", "JKS").upper() != "PEM":
        raise ConfigError(
            f"{store}.location is a Java key store, which cannot be read here: convert it to PEM "
            f"(keytool -exportcert -rfc) and set {store}.type=PEM"
        )
    return location


def parse_jaas(text: str) -> tuple[str, str]:
    """User and password of a ``sasl.jaas.config``.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";')
    ('a', 'b')
    """
    if not any(module in text for module in _JAAS_MODULES):
        raise ConfigError(f"sasl.jaas.config needs one of the modules {' and '.join(_JAAS_MODULES)}")
    options = {m[1]: re.sub(r"\\(.)", r"\1", m[2] or m[3] or m[4] or "") for m in _JAAS_OPTION.finditer(text)}
    if "username" not in options or "password" not in options:
        raise ConfigError('sasl.jaas.config needs username="…" and password="…", and a semicolon at its end')
    return options["username"], options["password"]
