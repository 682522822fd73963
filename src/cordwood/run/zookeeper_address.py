"""The address of a cluster's ZooKeeper, as users write it: ``host:port,host:port/path``."""

from typing import NamedTuple

from cordwood.errors import ConfigError


class Address(NamedTuple):
    """Where ZooKeeper is, and the node below which the cluster's nodes are."""

    hosts: str
    chroot: str

    @classmethod
    def parse(cls, connect: str) -> "Address":
        """
        >>> Address.parse("a:2181,b:2181/kafka/one")
        Address(hosts='a:2181,b:2181', chroot='/kafka/one')
        """
        hosts, _, path = connect.strip().partition("/")
        names = path.rstrip("/").split("/") if path.strip("/") else []
        if not all(host.strip() for host in hosts.split(",")) or any(name in ("", ".", "..") for name in names):
            raise ConfigError(f"{connect!r} is not an address of ZooKeeper; write host:port,host:port/path")
        for host in hosts.split(","):
            _, colon, port = host.strip().rpartition(":")
            if colon and not host.strip().endswith("]") and not (port.isdecimal() and 0 < int(port) < 65536):
                raise ConfigError(f"{host.strip()!r} is not an address of ZooKeeper; write host:port,host:port/path")
        return cls(hosts, "".join(f"/{name}" for name in names))
