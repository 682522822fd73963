"""What DescribeConfigs answers: each setting's value, its source, and the values that it takes precedence over.

Pure functions over texts. Synonyms are in Kafka's order: the strongest first, the default last. One difference is
deliberate: if ``log.roll.hours`` in the file decides a topic's ``segment.ms``, Kafka calls that a default; we say
STATIC.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .broker import BROKER_SETTINGS, BrokerConfig, effective, topic_defaults
from .foreign import is_foreign
from .group import GROUP_SETTINGS, GroupConfig, bounds_of
from .layers import Layers, Source
from .setting import Kind, Scope, Setting
from .topic import TOPIC_SETTINGS, TopicConfig


class Given(NamedTuple):
    """One of the values behind a setting; a secret's value is None."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting as a client sees it."""

    name: str
    value: str | None
    source: Source
    kind: Kind
    read_only: bool
    sensitive: bool
    synonyms: tuple[Given, ...]
    doc: str


def describe_topic(overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None) -> list[Entry]:
    """A topic's settings (those in *names*, or all), by name."""
    config = TopicConfig.merge(overrides, topic_defaults(layers))
    wanted = _wanted(TOPIC_SETTINGS, names, overrides)
    return [_topic_entry(setting, config, overrides, layers) for setting in wanted]


def describe_group(overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None) -> list[Entry]:
    """A group's settings (those in *names*, or all), by name."""
    config = GroupConfig.merge(overrides, BrokerConfig.parse(layers))
    return [_group_entry(s, config, overrides, layers) for s in _wanted(GROUP_SETTINGS, names, overrides)]


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[Entry]:
    """A broker's settings (those in *names*, or all), by name; Kafka's others come last, if they are in its file."""
    entries = [_broker_entry(s, layers) for s in _wanted(BROKER_SETTINGS, names, layers.static)]
    foreign = [n for n in sorted(layers.static) if is_foreign(n) and n not in BROKER_SETTINGS]
    return entries + [_foreign_entry(n) for n in foreign if names is None or n in names]


def describe_cluster(layers: Layers, names: Collection[str] | None = None) -> list[Entry]:
    """What was altered for all brokers at once: the answer for a broker without a name."""
    only = Layers(cluster=layers.cluster)
    changed = [s for s in _wanted(BROKER_SETTINGS, names, layers.cluster) if s.name in layers.cluster]
    return [_broker_entry(s, only, with_default=False) for s in changed]


def _wanted(known: Mapping[str, Setting], names: Collection[str] | None, given: Collection[str]) -> list[Setting]:
    """An empty list of names asks for all, as in Kafka. Internal settings are shown only if they have been set."""
    shown = [s for name, s in sorted(known.items()) if not s.internal or name in given]
    return [s for s in shown if not names or s.name in names]


def _topic_entry(setting: Setting, config: TopicConfig, overrides: Mapping[str, str], layers: Layers) -> Entry:
    value = setting.text(getattr(config, setting.attribute))
    own = [Given(setting.name, value, Source.TOPIC)] if setting.name in overrides else []
    brokers = [BROKER_SETTINGS[s.name] for s in setting.brokers]
    synonyms = (*own, *_given(brokers, layers, setting.sensitive), *_defaults(brokers))
    return _entry(setting, value, synonyms, read_only=False)


def _group_entry(setting: Setting, config: GroupConfig, overrides: Mapping[str, str], layers: Layers) -> Entry:
    value = setting.text(getattr(config, setting.attribute))
    own = [Given(setting.name, value, Source.GROUP)] if setting.name in overrides else []
    brokers = [BROKER_SETTINGS[bounds_of(setting.name).default]]
    synonyms = (*own, *_given(brokers, layers, setting.sensitive), *_defaults(brokers))
    return _entry(setting, value, synonyms, read_only=False)


def _broker_entry(setting: Setting, layers: Layers, *, with_default: bool = True) -> Entry:
    value = setting.text(effective(setting, layers))
    defaults = _defaults(_family(setting)) if with_default else ()
    synonyms = [*_given(_family(setting), layers, setting.sensitive), *defaults]
    while synonyms and synonyms[0].name not in (setting.name, setting.alias):
        del synonyms[0]  # stronger, but in another unit: not where this name's own value comes from
    return _entry(setting, value, synonyms, read_only=setting.scope is Scope.READ_ONLY)


def _entry(setting: Setting, value: str | None, synonyms: Sequence[Given], *, read_only: bool) -> Entry:
    return Entry(
        name=setting.name,
        value=None if setting.sensitive else value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        kind=setting.kind,
        read_only=read_only,
        sensitive=setting.sensitive,
        synonyms=tuple(synonyms),
        doc=setting.doc,
    )


def _foreign_entry(name: str) -> Entry:
    """It is not known here, so it may be a secret."""
    given = Given(name, None, Source.STATIC)
    return Entry(name, None, Source.STATIC, Kind.STRING, True, True, (given,), "It has no effect here.")


def _given(settings: Sequence[Setting], layers: Layers, sensitive: bool) -> tuple[Given, ...]:
    found = layers.all([s.name for s in settings])
    return tuple(Given(f.name, None if sensitive else f.text, f.source) for f in found)


def _defaults(settings: Sequence[Setting]) -> tuple[Given, ...]:
    return tuple(Given(s.name, s.text(s.default), Source.DEFAULT) for s in settings if s.default is not None)


def _family(setting: Setting) -> list[Setting]:
    """A broker's setting and those that mean the same in another unit or under another name, the strongest first."""
    for topic in TOPIC_SETTINGS.values():
        names = [s.name for s in topic.brokers]
        if setting.name in names:
            return [BROKER_SETTINGS[n] for n in names]
    return [setting] if setting.alias is None else [setting, BROKER_SETTINGS[setting.alias]]
