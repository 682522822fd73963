"""Where a broker's metadata comes from: a SQLite file beside its logs, or the ZooKeeper of its cluster."""

import os
import random
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from cordwood.cluster.controller import begin_epochs, new_uuid
from cordwood.cluster.image import MetadataImage
from cordwood.cluster.layout import CLUSTER_ID, cluster_id_data, uuid_text
from cordwood.cluster.registration import Applicant, standalone_nodes
from cordwood.config import BrokerConfig, parse_properties
from cordwood.errors import ConfigError, StoreConflict
from cordwood.ids import NodeId
from cordwood.log.directory import CLEAN_STOP
from cordwood.ports import Create, Disk, MetadataStore
from cordwood.run.data_directory import IDENTITY, Identity, boot_id
from cordwood.run.sqlite_store import SqliteStore

METADATA = "metadata.sqlite"
EVERY_INTERFACE = ("", "0.0.0.0", "::")


class Metadata(NamedTuple):
    """A store, its content, and this broker's place in it."""

    store: MetadataStore
    image: MetadataImage
    applicant: Applicant


class Place(NamedTuple):
    """The broker that needs its metadata: its settings, its directory, and the port of each listener."""

    config: BrokerConfig
    directory: str
    disk: Disk
    ports: Mapping[str, int]


def open_standalone(place: Place, entropy: random.Random) -> Metadata:
    """The metadata of a broker on its own.

    Raises:
        ConfigError: the metadata and the directory do not belong together.
    """
    identity, image = _identity(place.disk), MetadataImage()
    store = SqliteStore(os.path.join(place.directory, METADATA))
    image.apply(store.load())
    if not image.cluster_id:
        if identity is not None:
            raise ConfigError(
                f"{place.directory} holds logs of cluster {identity.cluster_id}, but its metadata is missing; "
                f"restore {METADATA}, or start with another --data"
            )
        image.apply(*store.multi([_new_cluster(entropy)]))
    applicant = _applicant(place, image, identity, entropy)
    image.apply(standalone_nodes(applicant))
    if not applicant.clean:
        image.apply(*store.multi(begin_epochs(image, applicant.node)))
    return Metadata(store, image, applicant)


def open_shared(place: Place, store: MetadataStore, entropy: random.Random) -> Metadata:
    """The metadata of a cluster, from the store shared by its brokers."""
    identity, image = _identity(place.disk), MetadataImage()
    image.apply(store.load())
    if not image.cluster_id:
        if identity is not None:
            raise ConfigError(
                f"{place.directory} holds logs of cluster {identity.cluster_id}, but there is no cluster at "
                f"{place.config.zookeeper_connect}; is that the right chroot? Else start with another --data"
            )
        with suppress(StoreConflict):  # another broker was faster
            store.multi([_new_cluster(entropy)])
        image.replace(store.load())
    return Metadata(store, image, _applicant(place, image, identity, entropy))


def _identity(disk: Disk) -> Identity | None:
    if not disk.exists(IDENTITY):
        return None
    return Identity.parse(parse_properties(disk.read(IDENTITY).decode(errors="replace")))


def _new_cluster(entropy: random.Random) -> Create:
    return Create(CLUSTER_ID, cluster_id_data(uuid_text(new_uuid(entropy))))


def _applicant(place: Place, image: MetadataImage, identity: Identity | None, entropy: random.Random) -> Applicant:
    """This broker, after checking that the directory belongs to it."""
    config = place.config
    if identity is None:
        identity = Identity(image.cluster_id, config.node_id, new_uuid(entropy))
        place.disk.replace(IDENTITY, identity.text())
    identity.check(cluster_id=image.cluster_id, node_id=config.node_id)
    return Applicant(
        NodeId(config.node_id),
        _endpoints(place),
        identity.directory_id,
        boot_id(),
        clean=place.disk.exists(CLEAN_STOP),
        rack=config.broker_rack,
    )


def _endpoints(place: Place) -> dict[str, tuple[str, str, int]]:
    """Where others reach this broker: the addresses that it advertises, or else those where it listens."""
    advertised = place.config.advertised_endpoints()
    if advertised:
        return {e.name: (e.protocol, e.host, e.port) for e in advertised}
    return {
        e.name: (e.protocol, socket.gethostname() if e.host in EVERY_INTERFACE else e.host, place.ports[e.name])
        for e in place.config.endpoints()
    }
