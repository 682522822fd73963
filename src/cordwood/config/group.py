"""A group's own settings: the timing of its members' reports. What a group does not set comes from the broker, which
also sets the limits; if these are changed later, a group's values are kept within them."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from cordwood.errors import ConfigError

from .broker import BrokerConfig
from .names import unknown_name
from .setting import Int, Setting, at_least, setting, settings, settings_of


@settings
class GroupConfig:
    """How often the members of one consumer-protocol group report to the broker, and how often it assigns."""

    consumer_session_timeout_ms: Int = setting(
        default=45_000, check=at_least(1), doc="How long a silent member stays in the group."
    )
    consumer_heartbeat_interval_ms: Int = setting(
        default=5000, check=at_least(1), doc="How often members of the group report."
    )
    consumer_assignment_interval_ms: Int = setting(
        default=1000, check=at_least(0), doc="The least time between two new assignments of the group."
    )

    @classmethod
    def merge(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> Self:
        """A group's settings: its own values if it has them, within the broker's limits."""
        values = {s.attribute: _value(s, overrides, broker) for s in GROUP_SETTINGS.values()}
        return cls(**values)


class Bounds(NamedTuple):
    """The broker's settings behind a group's: default, minimum and maximum."""

    default: str
    least: str
    greatest: str


def bounds_of(name: str) -> Bounds:
    """The names of the broker's settings behind a group's."""
    kind = name.removeprefix("consumer.")
    return Bounds(f"group.consumer.{kind}", f"group.consumer.min.{kind}", f"group.consumer.max.{kind}")


def check_group(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """
    Raises:
        ConfigError: an unknown name, a wrong kind, a value beyond the broker's limits, or two that conflict.
    """
    for name, text in overrides.items():
        if (declared := GROUP_SETTINGS.get(name)) is None:
            raise unknown_name("group setting", name, GROUP_SETTINGS)
        declared.parse(text)
        value, (least, greatest) = int(text), _limits(name, broker)
        if not least <= value <= greatest:
            raise ConfigError(f"{name} is {value}; it must be from {least} to {greatest}, the broker's limits")
    config = GroupConfig.merge(overrides, broker)
    if config.consumer_session_timeout_ms <= config.consumer_heartbeat_interval_ms:
        raise ConfigError(
            f"consumer.session.timeout.ms is {config.consumer_session_timeout_ms}; it must be more than "
            f"consumer.heartbeat.interval.ms, {config.consumer_heartbeat_interval_ms}"
        )


def _value(setting: Setting, overrides: Mapping[str, str], broker: BrokerConfig) -> int:
    if (text := overrides.get(setting.name)) is None:
        return _of_broker(bounds_of(setting.name).default, broker)
    least, greatest = _limits(setting.name, broker)
    return min(max(int(text), least), greatest)


def _limits(name: str, broker: BrokerConfig) -> tuple[int, int]:
    bounds = bounds_of(name)
    return _of_broker(bounds.least, broker), _of_broker(bounds.greatest, broker)


def _of_broker(name: str, broker: BrokerConfig) -> int:
    value = getattr(broker, name.replace(".", "_"))
    assert isinstance(value, int)
    return value


GROUP_SETTINGS: Mapping[str, Setting] = settings_of(GroupConfig)
