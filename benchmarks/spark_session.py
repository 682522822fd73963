"""A Spark session for measurements: two cores, Spark's defaults, both connectors in it.

Both sides of a row run in the same session, so that the JVM is equally warm for both.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import peer, spark_connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The aggregates have one row: with the default, a stream would keep a state for each of 200 partitions.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}


def make_session(log: Path) -> "SparkSession":
    """
    Raises:
        PeerMissingError: PySpark or Spark's Kafka connector is missing; the text says what to do.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise peer.PeerMissingError("the Spark rows need PySpark: pip install cordwood[spark]") from None
    peer.java()
    jars = spark_connector.jars()
    if jars is None:
        raise peer.PeerMissingError("Spark's Kafka connector comes through Maven, and Maven did not bring it")
    # Workers must run this Python, even if another one comes first on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("cordwood benchmarks")
    for name, value in {**SETTINGS, "spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}.items():
        builder = builder.config(name, value)
    with _errors_to(log):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Spark:
    """The session of a run, started when a row first needs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._session: SparkSession | None = None
        self._checkpoints = 0

    @property
    def session(self) -> "SparkSession":
        if self._session is None:
            self._session = make_session(self.directory / "spark.log")
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def checkpoint(self) -> str:
        """A directory that no query has used."""
        self._checkpoints += 1
        return str(self.directory / f"checkpoint-{self._checkpoints}")


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Send the JVM's stderr to a file: a JVM keeps the stream that it was started with for life."""
    kept = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(file)
        os.close(kept)
