"""Addresses as Kafka's ``listeners`` and ``advertised.listeners`` write them: NAME://host:port."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from cordwood.errors import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Endpoint(NamedTuple):
    """A listener: an empty host is every interface, port 0 is any free one."""

    name: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_endpoints(setting: str, texts: Iterable[str], protocol_map: str) -> tuple[Endpoint, ...]:
    """The endpoints of a setting's list.

    >>> parse_endpoints("listeners", ["PLAINTEXT://[::1]:9092"], "PLAINTEXT:PLAINTEXT")
    (Endpoint(name='PLAINTEXT', protocol='PLAINTEXT', host='::1', port=9092),)
    """
    protocols = _protocols(protocol_map)
    found = tuple(_parse(setting, text, protocols) for text in texts)
    names = [e.name for e in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"{setting} is {','.join(texts)}; each listener's name may be there only once")
    return found


def _parse(setting: str, text: str, protocols: dict[str, str]) -> Endpoint:
    match = re.fullmatch(r"([^:/]+)://(?:\[([0-9a-fA-F:.%]*)\]|([0-9A-Za-z_.-]*)):([0-9]{1,5})", text)
    if match is None or (port := int(match[4])) > 65535:
        raise ConfigError(f"{setting} has {text}; write it as PLAINTEXT://host:9092")
    name = match[1].upper()
    if name not in protocols:
        raise ConfigError(f"{setting} has {text}; listener.security.protocol.map must say which protocol {name} is")
    return Endpoint(name, protocols[name], match[2] or match[3] or "", port)


def _protocols(protocol_map: str) -> dict[str, str]:
    """NAME:PROTOCOL,NAME:PROTOCOL as a dictionary."""
    pairs = [pair.partition(":") for pair in re.split(r"\s*,\s*", protocol_map.strip()) if pair]
    for name, _, protocol in pairs:
        if protocol.strip() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map says {name}:{protocol}; known protocols are {', '.join(PROTOCOLS)}"
            )
    return {name.strip().upper(): protocol.strip() for name, _, protocol in pairs}
