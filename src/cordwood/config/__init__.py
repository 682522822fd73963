"""Every setting once: name, kind, default, valid range, scope, and one line of documentation."""

from .broker import BROKER_SETTINGS, BrokerConfig
from .endpoint import Endpoint
from .layers import Layers, Source
from .setting import Kind, Scope, Setting
from .topic import TOPIC_SETTINGS, TopicConfig

__all__ = [
    "BROKER_SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "Endpoint",
    "Kind",
    "Layers",
    "Scope",
    "Setting",
    "Source",
    "TopicConfig",
]
