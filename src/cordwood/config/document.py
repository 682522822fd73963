"""docs/configuration.md, written from the declarations."""

from collections.abc import Iterable, Mapping

from .broker import BROKER_SETTINGS
from .group import GROUP_SETTINGS, bounds_of
from .setting import INT_MAX, LONG_MAX, Setting
from .topic import TOPIC_SETTINGS

_HEAD = """\
# Configuration

Kafka's names, kinds, defaults and ranges; where there is a difference, the line says so. This page is written by
`python -m cordwood.config` from the declarations in `src/cordwood/config/`.

A broker takes its settings from a properties file (`cordwood serve --config server.properties`) and from its command
line (`--set log.retention.hours=24`), which overrides the file. A file written for Apache Kafka loads: settings without
a meaning here are named in a warning, and an unknown name is refused and the nearest known one suggested. Settings
whose scope is *per-broker* or *cluster-wide* can be altered while the broker runs, with any Kafka tool. *Later* marks
settings that are checked and kept, but take effect only with the feature they belong to.
"""


def configuration_page() -> str:
    """The page as Markdown."""
    parts = [
        _HEAD,
        "## Topics\n\nGiven when a topic is created, or altered later. The broker's settings in the last column are "
        "the defaults of all topics that do not have their own, the strongest first.\n",
        _table(
            ["setting", "kind", "default", "must be", "what it does", "broker's setting"],
            map(_topic_row, _shown(TOPIC_SETTINGS)),
        ),
        "\n## Groups\n\nOf the consumer protocol, for one group alone (`kafka-configs --entity-type groups`). The last "
        "column has the broker's settings: the default, and the limits within which a group may choose.\n",
        _table(
            ["setting", "kind", "default", "must be", "what it does", "broker's settings"],
            map(_group_row, _shown(GROUP_SETTINGS)),
        ),
        "\n## Brokers\n",
        _table(
            ["setting", "kind", "default", "must be", "scope", "what it does"],
            map(_broker_row, _shown(BROKER_SETTINGS)),
        ),
    ]
    return "\n".join(parts) + "\n"


def _shown(settings: Mapping[str, Setting]) -> list[Setting]:
    return sorted(settings.values(), key=lambda s: s.name)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def _topic_row(setting: Setting) -> list[str]:
    brokers = ", ".join(f"`{s.name}`" for s in setting.brokers)
    return [*_facts(setting), _purpose(setting), brokers]


def _group_row(setting: Setting) -> list[str]:
    brokers = ", ".join(f"`{name}`" for name in bounds_of(setting.name))
    return [*_facts(setting), _purpose(setting), brokers]


def _broker_row(setting: Setting) -> list[str]:
    return [*_facts(setting), setting.scope.value, _purpose(setting)]


def _purpose(setting: Setting) -> str:
    return f"*Later:* {setting.doc}" if setting.later else setting.doc


def _facts(setting: Setting) -> list[str]:
    check = setting.check.words if setting.check else ""
    return [f"`{setting.name}`", setting.kind.name.lower(), _default(setting), check]


def _default(setting: Setting) -> str:
    """The default in a readable form."""
    match setting.default:
        case None:
            return "none"
        case bool():
            return f"`{setting.text(setting.default)}`"
        case int() as number if number in (INT_MAX, LONG_MAX):
            return "no limit"
        case float() as number if number > 1e300:
            return "no limit"
        case "" | ():
            return "empty"
    return f"`{setting.text(setting.default)}`"
