"""What ``cordwood pipeline init`` writes: a small pipeline that works, with comments to start from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cordwood.errors import ConfigError

from .project import BOOTSTRAP_KEY, GROUP_KEY, KAFKA_PREFIX, SPEC_NAMES

SPEC: Final = f"""\
# A pipeline. `cordwood pipeline run DIR` brings its tables and topics up to date, `cordwood pipeline watch DIR` keeps
# them so. The form is that of Spark Declarative Pipelines: `spark-pipelines` can run it too.
name: {{name}}

# Where the streams keep how far they are. Without it they would begin anew.
storage: {{storage}}

# Settings for Spark and for the files below, each a text.
configuration:
  {BOOTSTRAP_KEY}: "{{bootstrap}}"
  # The consumer group that shows how far the streams are: `cordwood groups describe {{name}}`.
  {GROUP_KEY}: "{{name}}"
  # A cluster that wants TLS or a password: by such settings of Kafka's client `watch` and `status` reach it. The files
  # below give them to their sources and sinks as options.
  # {KAFKA_PREFIX}security.protocol: "SSL"

# All files in here belong to the pipeline, whatever their names.
libraries:
  - glob:
      include: transformations/**
"""

ORDERS: Final = '''\
"""From the topic `orders` into the table `orders`: one row for each record.

A record's key is the customer, its value a JSON such as {"item": "tea", "cents": 350}.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table(comment="Every order, as it came.", format="parquet")
def orders() -> DataFrame:
    records = (
        spark.readStream.format("cordwood")
        .option("kafka.bootstrap.servers", spark.conf.get("spark.cordwood.bootstrap"))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("group", spark.conf.get("spark.cordwood.group"))
        # A run takes so many records at a time. Whatever a batch has done stays done if the run is stopped.
        .option("maxOffsetsPerTrigger", 500_000)
        .load()
    )
    order = f.from_json(f.col("value").cast("string"), "item STRING, cents BIGINT")
    return records.select(
        f.col("key").cast("string").alias("customer"),
        order["item"].alias("item"),
        order["cents"].alias("cents"),
        f.col("timestamp").alias("ordered_at"),
    )
'''

CUSTOMERS: Final = """\
-- From the table `orders` into the table `customers`, which is made anew in each run.
CREATE MATERIALIZED VIEW customers
COMMENT 'What each customer has ordered so far.'
AS SELECT customer, count(*) AS orders, sum(cents) AS cents, max(ordered_at) AS last_ordered_at
FROM orders
GROUP BY customer;
"""

LARGE_ORDERS: Final = '''\
"""From the table `orders` into the topic `large-orders`: those of 50.00 or more."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()

dp.create_sink(
    "large_orders_topic",
    "cordwood",
    {"kafka.bootstrap.servers": spark.conf.get("spark.cordwood.bootstrap"), "topic": "large-orders"},
)


@dp.append_flow(target="large_orders_topic")
def large_orders() -> DataFrame:
    large = spark.readStream.table("orders").where("cents >= 5000")
    return large.select(f.col("customer").alias("key"), f.to_json(f.struct("customer", "item", "cents")).alias("value"))
'''

IGNORED: Final = """\
/.cordwood/
/state/
/status.png
/tables/
"""

TOPICS: Final = ("orders", "large-orders")


def write_example(directory: str, *, bootstrap: str) -> list[Path]:
    """Write the example into a directory, which may exist; returns the files.

    Raises:
        ConfigError: there is a pipeline already, or one of the example's files would replace another.
    """
    root = Path(directory).absolute()
    if any((root / name).exists() for name in SPEC_NAMES):
        raise ConfigError(f"{directory} has a pipeline already; `cordwood pipeline run {directory}` runs it")
    files = {root / name: text for name, text in _files(root, bootstrap).items()}
    for path in files:
        if path.exists():
            raise ConfigError(f"{path} is there already; choose an empty directory")
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be written: {error.strerror}") from None
    return list(files)


def _files(root: Path, bootstrap: str) -> Mapping[str, str]:
    # The names of topics and groups allow fewer characters than those of directories.
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in root.name).strip("-")
    return {
        SPEC_NAMES[0]: SPEC.format(name=name or "pipeline", storage=(root / "state").as_uri(), bootstrap=bootstrap),
        "transformations/orders.py": ORDERS,
        "transformations/customers.sql": CUSTOMERS,
        "transformations/large_orders.py": LARGE_ORDERS,
        ".gitignore": IGNORED,
    }
