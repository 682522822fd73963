"""One broker on a simulated disk and store, opened the way ``run/node`` opens a real one."""

from collections.abc import Mapping
from uuid import UUID

from cordwood.broker.broker import Broker
from cordwood.broker.replicas import Replicas
from cordwood.broker.settings import Settings
from cordwood.cluster.controller import begin_epochs, new_uuid
from cordwood.cluster.image import MetadataImage
from cordwood.cluster.layout import CLUSTER_ID, cluster_id_data, uuid_text
from cordwood.cluster.registration import Applicant, standalone_nodes
from cordwood.config import BrokerConfig
from cordwood.ids import NodeId
from cordwood.log.directory import CLEAN_STOP, LogDirectory
from cordwood.ports import Create, Disk, Entropy, Instant, Logger, MetadataStore
from cordwood.sim.log_levels import SimLogLevels

DIRECTORY_NAME = "/simulated"


def open_broker(
    *,
    static: Mapping[str, str],
    disk: Disk,
    store: MetadataStore,
    entropy: Entropy,
    logger: Logger,
    now: Instant,
    directory_id: UUID | None = None,
    boot_id: str = "",
) -> Broker:
    """A broker that has read its metadata and recovered its logs; the next step is ``start``."""
    config = BrokerConfig.parse(static)
    node_id = config.node_id
    image = MetadataImage()
    image.apply(store.load())
    if not image.cluster_id:
        image.apply(*store.multi([Create(CLUSTER_ID, cluster_id_data(uuid_text(new_uuid(entropy))))]))
    applicant = Applicant(
        NodeId(node_id),
        {e.name: (e.protocol, e.host, e.port) for e in config.advertised_endpoints() or config.endpoints()},
        directory_id or UUID(int=1),
        boot_id,
        clean=disk.exists(CLEAN_STOP),
        rack=config.broker_rack,
    )
    if config.zookeeper_connect is None:
        image.apply(standalone_nodes(applicant))
        if not applicant.clean:
            image.apply(*store.multi(begin_epochs(image, NodeId(node_id))))
    settings = Settings(dict(static), image, node_id, logger)
    logs = LogDirectory(disk, decompressed_bytes_max=settings.config.max_decompressed_message_bytes, logger=logger)
    replicas = Replicas(logs, NodeId(node_id), DIRECTORY_NAME, logger)
    replicas.open(image, settings, now)
    return Broker(
        settings=settings,
        image=image,
        replicas=replicas,
        entropy=entropy,
        logger=logger,
        log_levels=SimLogLevels(),
        now=now,
        applicant=applicant,
    )
