"""One broker on a simulated disk and store, opened the way ``run/node`` opens a real one."""

from collections.abc import Mapping

from cordwood.broker.broker import Broker
from cordwood.broker.replicas import Replicas
from cordwood.broker.settings import Settings
from cordwood.cluster.controller import begin_epochs, new_uuid
from cordwood.cluster.image import MetadataImage
from cordwood.cluster.layout import CLUSTER_ID, cluster_id_data, uuid_text
from cordwood.config import BrokerConfig
from cordwood.ids import NodeId
from cordwood.log.directory import CLEAN_STOP, LogDirectory
from cordwood.ports import Create, Disk, Entropy, Instant, Logger, MetadataStore

DIRECTORY_NAME = "/simulated"


def open_broker(
    *, static: Mapping[str, str], disk: Disk, store: MetadataStore, entropy: Entropy, logger: Logger, now: Instant
) -> Broker:
    """A broker that has read its metadata and recovered its logs; it waits for ``start``."""
    node_id = BrokerConfig.parse(static).node_id
    image = MetadataImage()
    image.apply(store.load())
    if not image.cluster_id:
        image.apply(*store.multi([Create(CLUSTER_ID, cluster_id_data(uuid_text(new_uuid(entropy))))]))
    if not disk.exists(CLEAN_STOP):
        image.apply(*store.multi(begin_epochs(image, NodeId(node_id))))
    settings = Settings(dict(static), image, node_id, logger)
    logs = LogDirectory(disk, decompressed_bytes_max=settings.config.max_decompressed_message_bytes, logger=logger)
    replicas = Replicas(logs, NodeId(node_id), DIRECTORY_NAME, logger)
    replicas.open(image, settings, now)
    return Broker(settings=settings, image=image, replicas=replicas, entropy=entropy, logger=logger, now=now)
