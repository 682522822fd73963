"""The documents say what the code does."""

import argparse
import doctest
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest
from scripts.write_docs import PAGES as GENERATED

from cordwood.broker.handlers import HANDLERS
from cordwood.broker.handlers.api_versions import served_versions
from cordwood.cli.main import COMMANDS, parser_for
from cordwood.config import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS, BrokerConfig
from cordwood.config.group import bounds_of
from cordwood.config.setting import settings_of
from cordwood.spark.option_names import OPTIONS
from cordwood.spark.option_names_kafka import FORBIDDEN, KAFKA
from cordwood.spark.option_names_producer import FORBIDDEN as FORBIDDEN_TO_PRODUCERS
from cordwood.spark.option_names_producer import KAFKA as PRODUCER
from cordwood.wire.registry import APIS

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md"]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", GENERATED)
def test_pages_from_the_code_are_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == GENERATED[name](), "run `make docs`"


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_a_handler_begins_with_its_name_key_and_versions(key: int) -> None:
    api = APIS[key]
    served = served_versions(key)
    first, last = served.start, served.stop - 1
    versions = f"version {first}" if first == last else f"versions {first}-{last}"
    doc = sys.modules[HANDLERS[key].__module__].__doc__
    assert (doc or "").startswith(f"{api.name} ({key}), {versions}: ")


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    assert [name for name in [*TOPIC_SETTINGS, *BROKER_SETTINGS] if f"| `{name}` |" not in page] == []


def test_every_option_of_spark_is_documented() -> None:
    page = (ROOT / "docs/spark.md").read_text()
    assert [option.name for option in OPTIONS if f"| `{option.name}` |" not in page] == []
    named = KAFKA | PRODUCER | FORBIDDEN.keys() | FORBIDDEN_TO_PRODUCERS.keys()
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_every_setting_says_what_it_does_in_a_sentence() -> None:
    for setting in [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]:
        assert re.fullmatch(r"[A-Z].*[.]", setting.doc), setting.name


NO_PART_OF_A_BROKER = {"config", "client", "spark", "cli"}


def test_a_setting_is_used_or_says_that_it_is_not() -> None:
    """What acts on a setting reads its attribute; *Later* and *Accepted* are the words for all the others."""
    package = ROOT / "src/cordwood"
    broker = [path for path in package.rglob("*.py") if not NO_PART_OF_A_BROKER & {*path.relative_to(package).parts}]
    sources = [path.read_text() for path in broker]
    words = set(re.findall(r"\w+", " ".join(sources)))
    read_by_config = {"advertised.listeners", "controller.listener.names", "inter.broker.listener.name"}
    read_by_config |= {
        "listeners",
        "listener.security.protocol.map",
        "log.dirs",
        "authorizer.class.name",
        "internal.segment.bytes",
        "remote.storage.enable",
    }
    read_by_config |= {bound for name in GROUP_SETTINGS for bound in bounds_of(name)}
    declared = {**TOPIC_SETTINGS, **settings_of(BrokerConfig)}
    for name, setting in declared.items():
        idle = setting.later or "Accepted;" in setting.doc
        used = setting.attribute in words or name in read_by_config
        assert used != idle, f"{name} is {'used' if used else 'not used'}: correct its declaration in config/"


def test_every_command_is_in_the_readme_or_the_changelog() -> None:
    pages = README + (ROOT / "CHANGELOG.md").read_text()
    assert [command for command in COMMANDS if f"cordwood {command}" not in pages] == []


def _commands_of_the_readme() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [command.strip() for line in lines for command in line.split("|") if command.strip().startswith("cordwood ")]


@pytest.mark.parametrize("command", _commands_of_the_readme())
def test_commands_of_the_readme_exist(command: str) -> None:
    _, *words = shlex.split(command)
    assert isinstance(parser_for(words[0]).parse_args(words), argparse.Namespace)


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_in_the_documents_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9.-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z0-9.-]+)", (ROOT / page).read_text()))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def _modules_with_examples() -> list[str]:
    source = ROOT / "src"
    files = [path for path in sorted(source.rglob("*.py")) if ">>> " in path.read_text()]
    return [".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in files]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_examples_in_docstrings_hold(name: str) -> None:
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (in_process,) = [block for block in blocks if "cordwood.Broker()" in block]
    exec(compile(in_process, "README.md", "exec"), {})
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", capsys.readouterr().out)


def test_the_version_is_the_same_everywhere() -> None:
    import cordwood

    assert f'version = "{cordwood.__version__}"' in (ROOT / "pyproject.toml").read_text()
