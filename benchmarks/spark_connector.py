"""Spark's own Kafka connector, fetched once through Maven and kept in the project's cache.

The tests compare our source with it, the benchmarks measure it as the peer.

There is no release for the newest Spark yet; these versions work with it.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from .peer import CACHE

ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
DIRECTORY: Final = CACHE / "spark-kafka-4.2.0"


def jars() -> list[Path] | None:
    """The connector's jars; None if Maven is not installed, or cannot fetch them."""
    if not DIRECTORY.is_dir() and not _download():
        return None
    return sorted(DIRECTORY.glob("*.jar"))


def _download() -> bool:
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        return False
    CACHE.mkdir(exist_ok=True)
    # Filled under another name, then renamed: nobody uses an incomplete copy, and two runs do not fill the same one.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        for artifact in ARTIFACTS:
            command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={work}/jars"]
            if subprocess.run(command, capture_output=True, cwd=work).returncode != 0:
                return False
        if not DIRECTORY.is_dir():
            (Path(work) / "jars").rename(DIRECTORY)
    return True
