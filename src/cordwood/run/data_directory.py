"""The data directory as a whole: for one broker at a time, and never for a broker of another cluster.

``.lock`` is held while a broker runs; the system releases it however the process ends. ``meta.properties`` names the
cluster and the broker that the directory belongs to, in Kafka's format.
"""

import fcntl
import os
from collections.abc import Mapping
from uuid import UUID

from cordwood.cluster.layout import parse_uuid, uuid_text
from cordwood.errors import ConfigError

LOCK = ".lock"
IDENTITY = "meta.properties"


class DirectoryLock:
    """The exclusive right to a data directory. *kind* is what may be using it already, for the error message."""

    def __init__(self, directory: str, kind: str = "broker") -> None:
        try:
            self._fd = os.open(os.path.join(directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(
                f"the data directory {directory} cannot be written to: {error.strerror}; choose another --data"
            ) from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._fd, 20, 0).decode(errors="replace").strip()
            os.close(self._fd)
            by = f" (process {owner})" if owner.isdigit() else ""
            raise ConfigError(
                f"the data directory {directory} is in use by another {kind}{by}; stop it or choose another --data"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._fd)


class Identity:
    """The owner of a directory, as ``meta.properties`` names it."""

    def __init__(self, cluster_id: str, node_id: int, directory_id: UUID) -> None:
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.directory_id = directory_id

    def text(self) -> bytes:
        return (
            "#\n"
            f"cluster.id={self.cluster_id}\n"
            f"directory.id={uuid_text(self.directory_id)}\n"
            f"node.id={self.node_id}\n"
            "version=1\n"
        ).encode()

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> "Identity":
        try:
            version = properties["version"]
            if version not in ("0", "1"):
                raise ConfigError(
                    f"{IDENTITY} has version {version}, and this broker knows 0 and 1; "
                    "use a newer one, or another --data"
                )
            node = properties.get("broker.id") or properties["node.id"]
            return cls(properties["cluster.id"], int(node), parse_uuid(properties["directory.id"]))
        except KeyError as missing:
            raise ConfigError(
                f"{IDENTITY} has no {missing.args[0]}; restore it, or start with another --data"
            ) from None
        except ValueError as error:
            raise ConfigError(f"{IDENTITY} is damaged: {error}; restore it, or start with another --data") from None

    def check(self, *, cluster_id: str, node_id: int) -> None:
        """Refuse to run on a directory that belongs to another broker or cluster."""
        if self.cluster_id != cluster_id:
            raise ConfigError(
                f"the data directory belongs to cluster {self.cluster_id}, but its metadata is that of cluster "
                f"{cluster_id}; give each cluster a directory of its own"
            )
        if self.node_id != node_id:
            raise ConfigError(
                f"the data directory belongs to broker {self.node_id}, but this is broker {node_id}; start it with "
                f"--node-id {self.node_id} or with another --data"
            )


def boot_id() -> str:
    """An id of this boot of the machine; empty where the system does not provide one.

    Until the next boot, everything that a process wrote before it died is still there, synced or not.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode().strip()
    except OSError:
        return ""
