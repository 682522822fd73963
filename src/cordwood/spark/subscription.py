"""Which partitions a query reads: topics given by name or by a pattern, or given partitions. Pure."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cordwood.client.raw_errors import UnknownTopic
from cordwood.errors import ConfigError

from .java_pattern import translated
from .offsets import Partition

if TYPE_CHECKING:
    from cordwood.client.raw_cluster import TopicMeta

INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions, as far as they exist."""

    partitions: frozenset[Partition]

    @property
    def topics(self) -> Sequence[str]:
        return sorted({topic for topic, _ in self.partitions})

    def select(self, topics: "Mapping[str, TopicMeta]") -> set[Partition]:
        return _all(topics) & self.partitions


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics."""

    topics: Sequence[str]

    def select(self, topics: "Mapping[str, TopicMeta]") -> set[Partition]:
        return _all({name: topics[name] for name in self.topics if name in topics})


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics whose names contain a match of the pattern, as in Spark; internal topics are left
    out."""

    pattern: str
    """In Python's syntax."""

    @property
    def topics(self) -> None:
        """None, because all topics have to be looked at."""
        return None

    def select(self, topics: "Mapping[str, TopicMeta]") -> set[Partition]:
        wanted = re.compile(self.pattern)
        return _all({name: meta for name, meta in topics.items() if name not in INTERNAL and wanted.search(name)})


Subscription = Assign | Subscribe | SubscribePattern


def check_found(subscription: Subscription, topics: "Mapping[str, TopicMeta]", existing: Collection[str]) -> None:
    """
    Args:
        existing: The names of all topics, for a hint.

    Raises:
        UnknownTopic: a topic that was named does not exist.
    """
    for name in subscription.topics or ():
        if name not in topics:
            raise MissingTopic(name, existing)


class MissingTopic(UnknownTopic):
    """A topic that the query names does not exist."""

    def __init__(self, topic: str, existing: Collection[str]) -> None:
        super().__init__(topic)
        near = difflib.get_close_matches(topic, sorted(set(existing) - INTERNAL), n=1)
        self.args = (f"there is no topic {topic}" + (f"; did you mean {near[0]}?" if near else "; make it first"),)


def parse(option: str, text: str) -> Subscription:
    """The value of ``subscribe`` or ``subscribePattern``."""
    if option == "subscribePattern":
        return SubscribePattern(_pattern(option, text.strip()))
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise ConfigError(f"option {option} names no topic; write it as topic,topic")
    return Subscribe(topics)


def _pattern(option: str, text: str) -> str:
    """Options have it in Java's syntax."""
    if not text:
        raise ConfigError(f"option {option} is empty; write a regular expression such as orders.*")
    try:
        pattern = translated(text)
        re.compile(pattern)
    except ConfigError as error:
        raise ConfigError(f"option {option} is {text!r}: {error}") from None
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"option {option} is {text!r}, which is not a regular expression: {error}") from None
    return pattern


def _all(topics: "Mapping[str, TopicMeta]") -> set[Partition]:
    return {(name, number) for name, meta in topics.items() for number in meta.partitions}
