"""What the Spark rows share: topics full of records, the aggregate that reads them, the check that all were read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .brokers import Broker
from .clients import Clients, ProduceLoad, create_topic, end_offsets
from .processes import ToolFailedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD_BYTES: Final = 100
# The format that reads from and writes to each side's broker.
FORMATS: Final[Mapping[str, str]] = {"cordwood": "cordwood", "kafka": "kafka"}
# It looks at the bytes of all values, at the offsets and at the timestamps.
AGGREGATE: Final = ("count(1)", "sum(length(value))", "max(offset)", "max(timestamp)")


def fill(
    broker: Broker, clients: Clients, topic: str, records: int, *, partitions: int, batch_bytes: int = 64 * 1024
) -> None:
    """Create a topic with this many records: ProducerPerformance sends the same ones each time."""
    create_topic(broker, topic, partitions=partitions)
    warm_up = records // 4
    load = ProduceLoad(records, record_bytes=RECORD_BYTES, batch_bytes=batch_bytes, acks="all", warm_up=warm_up)
    clients.produce(broker, topic, load)
    check(broker, "records stored", end_offsets(broker, topic, partitions=partitions), records)


def check(broker: Broker, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise ToolFailedError(f"{broker.name}: {found:,} {what} where {expected:,} were expected")


def aggregate(frame: "DataFrame") -> "DataFrame":
    """One row; its first two columns are the number of records and the number of bytes."""
    from pyspark.sql.functions import expr

    return frame.agg(*(expr(text) for text in AGGREGATE))


def connection(broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}
