"""Is everything here that Spark needs? If not, one sentence that says what to install."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cordwood.errors import ConfigError

JAVA_MIN: Final = 17
PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "numba")
PIPELINE_PACKAGES: Final = (*PACKAGES, "grpc", "grpc_status", "yaml")


def missing_for_spark(packages: Sequence[str] = PACKAGES) -> str | None:
    """What to install before Spark can run, as a sentence; None if it is all there."""
    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        return f"Spark is not installed ({absent[0]} is missing); run: pip install 'cordwood[spark]'"
    return missing_java(_java_version())


def require_spark(packages: Sequence[str] = PACKAGES) -> None:
    """
    Raises:
        ConfigError: something has to be installed first.
    """
    if (sentence := missing_for_spark(packages)) is not None:
        raise ConfigError(sentence)


def missing_java(version: str | None) -> str | None:
    """What to do about the Java whose ``java -version`` says this; None is nothing to do.

    >>> missing_java('openjdk version "21.0.2" 2024-01-16')
    >>> missing_java('java version "1.8.0_392"')
    'Spark needs Java 17 or newer, and java here is 8: install it (Debian: apt install default-jre-headless; macOS: \
brew install openjdk)'
    """
    install = "install it (Debian: apt install default-jre-headless; macOS: brew install openjdk)"
    if version is None:
        return f"Spark needs Java {JAVA_MIN} or newer, and there is none: {install}"
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    if found is not None and int(found[1]) < JAVA_MIN:
        return f"Spark needs Java {JAVA_MIN} or newer, and java here is {found[1]}: {install}"
    return None


def _java_version() -> str | None:
    """What Java says of itself; None if there is none. macOS has a java that only says so."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        outcome = subprocess.run([java, "-version"], capture_output=True, text=True)
    except OSError:
        return None
    return outcome.stderr + outcome.stdout if outcome.returncode == 0 else None
