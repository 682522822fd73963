"""The dead-letter topic is checked before a query needs it: the first bad record may come after weeks."""

from dataclasses import replace
from typing import Final

from cordwood.client.raw import RawClient, RawError, RawSettings, RequestRefused, Unavailable
from cordwood.errors import ConfigError

_MADE_WITHIN_MS: Final = 10_000
"""A cluster that creates topics on demand has done so by then."""
_CLEANUP: Final = "cleanup.policy"
_LIMIT: Final = "max.message.bytes"
_LIMIT_MIN: Final = 4096
"""The name of a topic and a reason, at their longest, and what else remains of a record that is too large."""


def prepare(settings: RawSettings, topic: str) -> None:
    """Have the topic created if it does not exist.

    Raises:
        ConfigError: there is none, or it would not accept, or not keep, every letter.
    """
    with RawClient(settings) as client:
        try:
            if topic not in client.topics([topic]):
                _make(settings, topic)
        except RequestRefused as reason:
            raise ConfigError(f"option deadLetterTopic is {topic}, which cannot be used: {reason}") from reason
        found = _settings(client, topic)
    if "compact" in found.get(_CLEANUP, ""):
        raise ConfigError(
            f"option deadLetterTopic is {topic}, which is compacted: it takes no record without a key, and keeps one "
            f"of each key. Set its {_CLEANUP} to delete, or choose another topic"
        )
    if int(found.get(_LIMIT, _LIMIT_MIN)) < _LIMIT_MIN:
        raise ConfigError(
            f"option deadLetterTopic is {topic}, whose {_LIMIT} is {found[_LIMIT]}: where a record was, and what is "
            f"wrong with it, may need {_LIMIT_MIN}. Choose another topic"
        )


def _make(settings: RawSettings, topic: str) -> None:
    try:
        with RawClient(replace(settings, timeout_ms=min(settings.timeout_ms, _MADE_WITHIN_MS))) as maker:
            maker.topics([topic], create=True)
    except Unavailable as reason:
        raise ConfigError(
            f"option deadLetterTopic is {topic}, which does not exist, and the cluster does not make it by itself. "
            "Make it, or choose another topic"
        ) from reason


def _settings(client: RawClient, topic: str) -> dict[str, str]:
    """Empty if we are not allowed to know."""
    try:
        return client.topic_settings([topic], [_CLEANUP, _LIMIT]).get(topic, {})
    except RawError:
        return {}
