"""What AlterConfigs and IncrementalAlterConfigs do to the existing texts. Pure: texts in, texts out.

Errors are Kafka's: a topic's bad setting is INVALID_CONFIG, a broker's is INVALID_REQUEST, and adding to a setting that
is not a list is INVALID_CONFIG for both. One difference is deliberate: Kafka stores a broker's setting that it does not
know; here it is refused, with the nearest name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from cordwood.errors import ConfigError, Error, Refused

from .broker import BROKER_SETTINGS, BrokerConfig, topic_defaults
from .foreign import is_foreign
from .group import GROUP_SETTINGS, check_group
from .layers import Layers
from .names import unknown_name
from .setting import Kind, Scope, Setting
from .topic import TOPIC_SETTINGS, TopicConfig

TEXT_BYTES_MAX = 32_767
"""Of one setting: the longest string that the protocol can carry."""


_WITH_ZERO = {
    # An altered value outlasts a restart, and takes precedence over the file.
    "max.connections": "nobody could come and alter it again",
    "max.connection.creation.rate": "nobody could come and alter it again",
    "log.cleaner.threads": "nothing would be compacted; log.cleaner.enable in the broker's file is for that",
}
"""What would happen if these were 0."""


class Operation(IntEnum):
    """Kafka's codes for an incremental change."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One incremental change; *operation* is the code as received."""

    name: str
    operation: int
    value: str | None


def alter_topic(current: Mapping[str, str], changes: Sequence[Change], layers: Layers) -> dict[str, str]:
    """A topic's settings after incremental *changes*.

    Raises:
        Refused: with Kafka's error code; then nothing has changed.
    """
    return checked_topic(_applied(current, changes, TOPIC_SETTINGS), layers)


def checked_topic(texts: Mapping[str, str | None], layers: Layers) -> dict[str, str]:
    """All settings of a new topic, or of an existing one after AlterConfigs, if they are valid.

    Raises:
        Refused: with Kafka's error code.
    """
    try:
        _check_lengths(texts)
        TopicConfig.parse(texts, topic_defaults(layers))
    except ConfigError as error:
        raise Refused(Error.INVALID_CONFIG, str(error)) from None
    return {name: text for name, text in texts.items() if text is not None}


def alter_broker(changes: Sequence[Change], layers: Layers, *, for_all: bool) -> dict[str, str]:
    """The altered settings of this broker, or of all brokers (*for_all*), after incremental *changes*.

    Raises:
        Refused: with Kafka's error code; then nothing has changed.
    """
    current = layers.cluster if for_all else layers.broker
    return checked_broker(_applied(current, changes, BROKER_SETTINGS), layers, for_all=for_all)


def checked_broker(texts: Mapping[str, str], layers: Layers, *, for_all: bool) -> dict[str, str]:
    """All altered settings of this broker, or of all brokers, if they are valid.

    Raises:
        Refused: with Kafka's error code.
    """
    try:
        _check_lengths(texts)
        for name in texts:
            _check_alterable(name, for_all)
        _check_not_zero(texts)
        BrokerConfig.parse(replace(layers, cluster=texts) if for_all else replace(layers, broker=texts))
    except ConfigError as error:
        raise Refused(Error.INVALID_REQUEST, str(error)) from None
    return dict(texts)


def alter_group(current: Mapping[str, str], changes: Sequence[Change], layers: Layers) -> dict[str, str]:
    """A group's settings after incremental *changes*.

    Raises:
        Refused: with Kafka's error code; then nothing has changed.
    """
    return checked_group(_applied(current, changes, GROUP_SETTINGS), layers)


def checked_group(texts: Mapping[str, str], layers: Layers) -> dict[str, str]:
    """All settings of a group, if they are valid.

    Raises:
        Refused: with Kafka's error code.
    """
    try:
        _check_lengths(texts)
        check_group(texts, BrokerConfig.parse(layers))
    except ConfigError as error:
        raise Refused(Error.INVALID_CONFIG, str(error)) from None
    return dict(texts)


def _check_lengths(texts: Mapping[str, str | None]) -> None:
    """A value that was put together by many small requests must still fit into the answer to one."""
    for name, text in texts.items():
        if text is not None and len(text.encode()) > TEXT_BYTES_MAX:
            raise ConfigError(f"{name} would have {len(text.encode())} bytes; it must have at most {TEXT_BYTES_MAX}")


def _check_not_zero(texts: Mapping[str, str]) -> None:
    """0 is allowed in a file, but no setting may be altered to it."""
    for name, otherwise in _WITH_ZERO.items():
        if name in texts and BROKER_SETTINGS[name].parse(texts[name]) == 0:
            raise ConfigError(f"{name} is 0; it must be at least 1, or {otherwise}")


def _check_alterable(name: str, for_all: bool) -> None:
    if (setting := BROKER_SETTINGS.get(name)) is None:
        if is_foreign(name):
            raise ConfigError(f"{name} has no effect here and cannot be altered")
        raise unknown_name("setting", name, BROKER_SETTINGS)
    if setting.scope is Scope.READ_ONLY:
        raise ConfigError(f"{name} cannot be altered while the broker runs; set it in its file and restart it")
    if for_all and setting.scope is Scope.PER_BROKER:
        raise ConfigError(f"{name} cannot be altered for all brokers at once; name the broker")


def _applied(current: Mapping[str, str], changes: Sequence[Change], known: Mapping[str, Setting]) -> dict[str, str]:
    if len({c.name for c in changes}) < len(changes):
        raise Refused(Error.INVALID_REQUEST, "a setting is changed twice in one request")
    result = dict(current)
    for change in changes:
        if (text := _outcome(result.get(change.name), change, known)) is None:
            result.pop(change.name, None)
        else:
            result[change.name] = text
    return result


def _outcome(current: str | None, change: Change, known: Mapping[str, Setting]) -> str | None:
    """A setting's text after one change; None if it falls back to its default."""
    try:
        operation = Operation(change.operation)
    except ValueError:
        raise Refused(Error.INVALID_REQUEST, f"unknown operation {change.operation} on {change.name}") from None
    if operation is Operation.DELETE:
        return None
    if change.value is None:
        raise Refused(Error.INVALID_REQUEST, f"{change.name} has no value")
    if operation is Operation.SET:
        return change.value
    return ",".join(_list_after(operation, current, change.name, change.value, known.get(change.name)))


def _list_after(operation: Operation, current: str | None, name: str, value: str, setting: Setting | None) -> list[str]:
    if setting is None or setting.kind is not Kind.LIST:
        raise Refused(Error.INVALID_CONFIG, f"cannot {operation.name} to {name}: it is not a list")
    text = current if current is not None else setting.text(setting.default)
    before = [word for word in (text or "").split(",") if word]
    words = value.split(",")
    if operation is Operation.APPEND:
        return list(dict.fromkeys([*before, *words]))
    return [word for word in before if word not in words]
