"""Spark's own Kafka connector, fetched once through Maven and kept in the project's cache.

The tests take it as the judge of our source, the benchmarks as its peer.

There is none yet for the newest Spark; these versions work with it.
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
    """The connector's jars; None if Maven is not here, or cannot bring them."""
    if not DIRECTORY.is_dir() and not _download():
        return None
    return sorted(DIRECTORY.glob("*.jar"))


def _download() -> bool:
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        return False
    CACHE.mkdir(exist_ok=True)
    # Filled aside and renamed, so that a half-made copy is never taken for a whole one, nor by two at once.
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        for artifact in ARTIFACTS:
            command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={work}/jars"]
            if subprocess.run(command, capture_output=True, cwd=work).returncode != 0:
                return False
        if not DIRECTORY.is_dir():
            (Path(work) / "jars").rename(DIRECTORY)
    return True
