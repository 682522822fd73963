"""The settings in force: the file's and the command line's, with what was altered since on top."""

from cordwood.cluster.image import MetadataImage
from cordwood.cluster.layout import DEFAULT_BROKER
from cordwood.config import BrokerConfig, Layers


class Settings:
    """The broker's settings, made anew whenever somebody alters one."""

    def __init__(self, static: dict[str, str], image: MetadataImage, node_id: int) -> None:
        self._static = static
        self._node_id = node_id
        self.layers = Layers(static=static)
        self.config = BrokerConfig()
        self.reload(image)

    def reload(self, image: MetadataImage) -> None:
        self.layers = Layers(
            static=self._static,
            cluster=image.broker_configs.get(DEFAULT_BROKER, {}),
            broker=image.broker_configs.get(str(self._node_id), {}),
        )
        self.config = BrokerConfig.parse(self.layers)
