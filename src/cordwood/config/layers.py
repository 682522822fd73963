"""The texts of a broker's settings, in layers: what was altered for this broker at runtime takes precedence over what
was altered for all brokers, and that over its file and its command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from .setting import Setting


class Source(IntEnum):
    """Where a value comes from, with the codes that DescribeConfigs sends."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Found(NamedTuple):
    """A text, the name under which it was given, and where."""

    name: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class Layers:
    """``static`` is the file and the command line; ``cluster`` and ``broker`` are later alterations by AlterConfigs."""

    static: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)

    def strongest_first(self) -> tuple[tuple[Source, Mapping[str, str]], ...]:
        return (
            (Source.DYNAMIC_BROKER, self.broker),
            (Source.DYNAMIC_CLUSTER, self.cluster),
            (Source.STATIC, self.static),
        )

    def mappings(self) -> tuple[Mapping[str, str], ...]:
        return self.static, self.cluster, self.broker

    def all(self, names: Sequence[str]) -> list[Found]:
        """Every text given under one of these names, the strongest first: ordered by layer, then by name."""
        return [
            Found(name, layer[name], source)
            for source, layer in self.strongest_first()
            for name in names
            if name in layer
        ]

    def strongest(self, names: Sequence[str]) -> Found | None:
        return next(iter(self.all(names)), None)

    def topic_texts(self, topic_settings: Mapping[str, Setting]) -> dict[str, str | None]:
        """The texts that this broker gives for topics' settings, by the topics' names for them."""
        texts: dict[str, str | None] = {}
        for name, setting in topic_settings.items():
            synonyms = {s.name: s for s in setting.brokers}
            if (found := self.strongest(list(synonyms))) is not None:
                texts[name] = synonyms[found.name].topic_text(found.text)
        return texts
