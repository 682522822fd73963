"""Is everything installed that Spark needs? If not, one sentence says what to install."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from cordwood.errors import ConfigError
from cordwood.run.java import java_version, missing_java

PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "numba")
PIPELINE_PACKAGES: Final = (*PACKAGES, "grpc", "grpc_status", "yaml")


def missing_for_spark(packages: Sequence[str] = PACKAGES) -> str | None:
    """What to install before Spark can run, as a sentence; None if everything is there."""
    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        return f"Spark is not installed ({absent[0]} is missing); run: pip install 'cordwood[spark]'"
    return missing_java(java_version())


def require_spark(packages: Sequence[str] = PACKAGES) -> None:
    """
    Raises:
        ConfigError: something has to be installed first.
    """
    if (sentence := missing_for_spark(packages)) is not None:
        raise ConfigError(sentence)
