"""This machine's Java: where it is, whether it is new enough, and what to install if not."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

JAVA_MIN: Final = 17


def java_command() -> str | None:
    """The ``java`` to run: that of ``JAVA_HOME``, else the first on the path; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_version() -> str | None:
    """What ``java -version`` prints; None if there is no Java. On macOS, ``java`` may be a stub that only says so."""
    java = java_command()
    if java is None:
        return None
    try:
        outcome = subprocess.run([java, "-version"], capture_output=True, text=True)
    except OSError:
        return None
    return outcome.stderr + outcome.stdout if outcome.returncode == 0 else None


def missing_java(version: str | None, *, wanted_by: str = "Spark") -> str | None:
    """What to do about a Java whose ``java -version`` prints this; None if nothing is to be done.

    >>> missing_java('openjdk version "21.0.2" 2024-01-16')
    >>> missing_java('java version "1.8.0_392"')
    'Spark needs Java 17 or newer, and java here is 8: install it (Debian: apt install default-jre-headless; macOS: \
brew install openjdk)'
    """
    install = "install it (Debian: apt install default-jre-headless; macOS: brew install openjdk)"
    if version is None:
        return f"{wanted_by} needs Java {JAVA_MIN} or newer, and there is none: {install}"
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    if found is not None and int(found[1]) < JAVA_MIN:
        return f"{wanted_by} needs Java {JAVA_MIN} or newer, and java here is {found[1]}: {install}"
    return None
