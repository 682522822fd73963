"""Every setting once: name, kind, default, valid range, scope, and one line of documentation.

``TopicConfig`` and ``BrokerConfig`` are what the rest of the program reads; ``Layers`` holds the texts behind them.
``describe`` has what clients ask about settings, ``alter`` what they change, ``properties`` reads files.
"""

from .alter import (
    Change,
    Operation,
    alter_broker,
    alter_group,
    alter_topic,
    checked_broker,
    checked_group,
    checked_topic,
)
from .broker import BROKER_SETTINGS, BrokerConfig, topic_defaults
from .describe import Entry, Given, describe_broker, describe_cluster, describe_group, describe_topic
from .endpoint import Endpoint
from .foreign import without_effect
from .group import GROUP_SETTINGS, GroupConfig
from .layers import Layers, Source
from .loggers import alter_loggers, describe_loggers
from .properties import parse_properties
from .setting import Kind, Scope, Setting
from .topic import TOPIC_SETTINGS, TopicConfig

__all__ = [
    "BROKER_SETTINGS",
    "GROUP_SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "Change",
    "Endpoint",
    "Entry",
    "Given",
    "GroupConfig",
    "Kind",
    "Layers",
    "Operation",
    "Scope",
    "Setting",
    "Source",
    "TopicConfig",
    "alter_broker",
    "alter_group",
    "alter_loggers",
    "alter_topic",
    "checked_broker",
    "checked_group",
    "checked_topic",
    "describe_broker",
    "describe_cluster",
    "describe_group",
    "describe_loggers",
    "describe_topic",
    "parse_properties",
    "topic_defaults",
    "without_effect",
]
