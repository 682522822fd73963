"""What is loaded with what: a client that lives for a second speaks few of the APIs, and should not load all."""

import subprocess
import sys

import pytest

from cordwood.wire import messages

PREFIX = f"{messages.__name__}."


def themes_after(statement: str) -> set[str]:
    """The themes that a fresh process has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(*(name for name in sys.modules if name.startswith({PREFIX!r})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.removeprefix(PREFIX) for name in done.stdout.split()}


def test_a_theme_comes_alone() -> None:
    assert themes_after("import cordwood.wire.messages.produce_fetch") == {"produce_fetch"}


def test_frames_of_a_client_bring_no_message() -> None:
    assert themes_after("import cordwood.wire.client_frame") == set()


def test_a_name_of_the_package_brings_all_messages() -> None:
    assert themes_after("from cordwood.wire.messages import FetchRequest") >= {"produce_fetch", "groups", "streams"}


def test_a_message_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        getattr(messages, "NoSuchRequest")  # noqa: B009
