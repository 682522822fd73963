"""The settings in force: those of the file and the command line, with later alterations on top."""

from cordwood.cluster.image import MetadataImage
from cordwood.cluster.layout import DEFAULT_BROKER
from cordwood.config import BrokerConfig, Layers
from cordwood.errors import ConfigError
from cordwood.ports import Logger


class Settings:
    """The broker's settings, computed anew whenever one is altered.

    Alterations were checked before they were stored, but against the settings of that time: two alterations at the same
    time, or a different file at the next start, may contradict one. Then it is left out, and the broker goes on.
    """

    def __init__(
        self, static: dict[str, str], image: MetadataImage, node_id: int, logger: Logger | None = None
    ) -> None:
        self._static = static
        self._node_id = node_id
        self._logger = logger
        self.layers = Layers(static=static)
        self.config = BrokerConfig()
        self.advertised: dict[str, tuple[str, int]] = {}
        """By listener name: the address to give to its clients, if it is not the one that they dialled."""
        self.reload(image)

    def reload(self, image: MetadataImage) -> None:
        cluster = image.broker_configs.get(DEFAULT_BROKER, {})
        broker = image.broker_configs.get(str(self._node_id), {})
        for layers in (
            Layers(static=self._static, cluster=cluster, broker=broker),
            Layers(static=self._static, cluster=cluster),
        ):
            try:
                self._use(layers)
                return
            except ConfigError as error:
                if self._logger is not None:
                    self._logger.error("settings that were altered are left out, they contradict others: %s", error)
        self._use(Layers(static=self._static))

    def _use(self, layers: Layers) -> None:
        self.config = BrokerConfig.parse(layers)
        self.layers = layers
        self.advertised = {e.name: (e.host, e.port) for e in self.config.advertised_endpoints()}
