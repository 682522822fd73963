"""What the config APIs share: which things have settings, and how to find them."""

from typing import TYPE_CHECKING

from cordwood.cluster.image import TopicInfo
from cordwood.cluster.layout import DEFAULT_BROKER, broker_config_path, group_config_path, topic_config_path
from cordwood.cluster.topic_names import check_name
from cordwood.errors import Error, Refused

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def find_topic(broker: "Broker", name: str) -> TopicInfo:
    topic = broker.image.topics.get(check_name(name))
    if topic is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    return topic


def check_broker_name(broker: "Broker", name: str) -> bool:
    """Does it mean all brokers (an empty name)? A broker other than this one is refused."""
    if not name:
        return True
    if name != str(broker.node):
        raise Refused(Error.INVALID_REQUEST, f"This is broker {broker.node}; ask broker {name} itself.")
    return False


def check_logger_name(broker: "Broker", name: str) -> None:
    """Loggers belong to one broker, and only that broker can report or change them."""
    if check_broker_name(broker, name):
        raise Refused(Error.INVALID_REQUEST, "The loggers of all brokers have no levels together; name the broker.")


def group_config(broker: "Broker", group_id: str) -> dict[str, str]:
    """The settings of a group, which need not exist yet."""
    if not group_id:
        raise Refused(Error.INVALID_REQUEST, "A group has a name of at least one character.")
    return broker.image.group_configs.get(group_id, {})


def unserved(resource_type: int) -> Refused:
    return Refused(Error.INVALID_REQUEST, f"Resources of type {resource_type} have no settings here.")


def config_path(broker: "Broker", resource_type: int, name: str) -> str:
    """Where the altered settings of a topic, a group, this broker or all brokers are stored."""
    if resource_type == TOPIC:
        if not name:
            raise Refused(Error.INVALID_REQUEST, "Topics have no settings together; alter those of all brokers.")
        return topic_config_path(find_topic(broker, name).name)
    if resource_type == GROUP:
        return group_config_path(name)
    if resource_type != BROKER:
        raise unserved(resource_type)
    return broker_config_path(DEFAULT_BROKER if check_broker_name(broker, name) else name)
