"""What a machine lacks is no failure of the tests there; in CI nothing may be left out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.peer import PeerMissingError, java

TESTS = Path(__file__).parent

IN_NEED = """
import pytest
from benchmarks.peer import PeerMissingError
from support.missing import missing

@pytest.fixture(scope="session")
def peer():
    raise PeerMissingError("a JDK is needed: install it")

def test_by_its_fixture(peer):
    pass

def test_by_its_fixture_again(peer):
    pass

def test_by_itself():
    raise PeerMissingError("a JDK is needed: install it")

def test_by_its_word():
    missing("kcat is needed: install it")

def test_in_no_need():
    pass
"""


@pytest.mark.parametrize(
    ("variables", "summary"),
    [({}, "1 passed, 4 skipped in"), ({"CI": "true"}, "2 failed, 1 passed, 2 errors in")],
)
def test_what_needs_more_than_there_is(tmp_path: Path, variables: dict[str, str], summary: str) -> None:
    file = tmp_path / "test_in_need.py"
    file.write_text(IN_NEED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "support.missing", file.name],
        cwd=tmp_path,
        env={**os.environ, "CI": "", "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]), **variables},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1].startswith(summary)
    assert "a JDK is needed: install it" in done.stdout
    assert "kcat is needed: install it" in done.stdout


def test_a_java_that_only_says_there_is_none_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has such a one."""
    for name in ("java", "javac"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(PeerMissingError, match="need a JDK"):
        java()
