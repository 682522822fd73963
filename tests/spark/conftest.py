"""One Spark session and one broker for all tests that need them.

Starting a session takes as long as many tests together, so there is one, and with several workers all tests that use it
go to the same. Spark's own Kafka connector is in it if a test wants that and Maven can bring it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks import spark_connector as connector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from cordwood.cli.spark_ready import missing_for_spark
from cordwood.testing import Broker
from spark.engine import Query
from spark.spark_home import JVM_OPTIONS, make_spark_home
from spark.spark_topics import Kafka
from support.missing import missing

Load = Callable[..., DataFrame]
Stream = Callable[..., Query]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.timeout(180))


def make_session(jars: list[Path]) -> SparkSession:
    # Workers must be this Python, wherever another one may be found first.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("cordwood tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
        "spark.driver.extraJavaOptions": JVM_OPTIONS,
    }
    if jars:
        settings["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    if (sentence := missing_for_spark()) is not None:
        missing(sentence)
    make_spark_home(tmp_path_factory.mktemp("spark") / "home")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, spark_home: None) -> Iterator[SparkSession]:
    wanted = any(item.get_closest_marker("java") for item in request.session.items)
    session = make_session(connector.jars() or [] if wanted else [])
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.cleaner.backoff.ms": 50, "log.retention.ms": -1}) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka(broker: Broker) -> Kafka:
    return Kafka(broker.bootstrap)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, legal as a topic's."""
    words = f"{request.path.stem.removeprefix('test_spark_')}-{request.node.name.removeprefix('test_')}"
    return "".join(letter if letter.isalnum() else "-" for letter in words).strip("-")[:200]


@pytest.fixture
def load(spark: SparkSession, broker: Broker) -> Load:
    """``load(subscribe="orders")``: a table of the source. Underscores in names stand for dots."""

    def load(kind: str = "cordwood", **options: object) -> DataFrame:
        reader = spark.read.format(kind).option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(**{name.replace("_", "."): str(value) for name, value in options.items()}).load()

    return load


@pytest.fixture
def load_stream(spark: SparkSession, broker: Broker) -> Load:
    """The same as a stream."""

    def load(kind: str = "cordwood", **options: object) -> DataFrame:
        reader: DataStreamReader = spark.readStream.format(kind).option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(**{name.replace("_", "."): str(value) for name, value in options.items()}).load()

    return load


@pytest.fixture
def stream(broker: Broker) -> Iterator[Stream]:
    """``stream(subscribe="orders")``: a streaming query without Spark, stopped at the end."""
    queries: list[Query] = []

    def start(**options: object) -> Query:
        queries.append(Query(broker.bootstrap, **options))
        return queries[-1]

    yield start
    for query in queries:
        query.stop()
