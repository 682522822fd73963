"""Every option once: its name, what it is for, and one line about it. Errors suggest the nearest right name.

Names are those of Spark's Kafka source wherever it has one, and as there, upper and lower case are the same. An option
that is not in the table is refused: a typo must not change what a query reads.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from cordwood.errors import ConfigError

from .option_names_kafka import KAFKA, check_kafka_name
from .option_names_producer import KAFKA as PRODUCER
from .option_names_producer import check_producer_name
from .values.settings import OPTIONS as VALUE_OPTIONS

PREFIX: Final = "kafka."


class Use(Flag):
    """What a query does with the source."""

    BATCH = auto()
    STREAM = auto()
    WRITE = auto()
    READ = BATCH | STREAM
    ALL = BATCH | STREAM | WRITE


@dataclass(frozen=True, slots=True)
class Option:
    """An option, with its name as it is documented."""

    name: str
    use: Use
    text: str


SOURCE: Final = (
    Option("assign", Use.READ, 'the partitions to read: {"orders":[0,1]}'),
    Option("subscribe", Use.READ, "the topics to read, with commas between them"),
    Option(
        "subscribePattern", Use.READ, "a regular expression, as Java has them, found in the names of the topics to read"
    ),
    Option("startingTimestamp", Use.READ, "begin with the first records not older than this time in ms"),
    Option("startingOffsetsByTimestamp", Use.READ, 'the same for each partition: {"orders":{"0":1700000000000}}'),
    Option("startingOffsetsByTimestampStrategy", Use.READ, "for partitions without such records: error or latest"),
    Option("startingOffsets", Use.READ, 'earliest, latest (streams), or {"orders":{"0":23,"1":-2}}'),
    Option("endingTimestamp", Use.BATCH, "end before the first records not older than this time in ms"),
    Option("endingOffsetsByTimestamp", Use.BATCH, 'the same for each partition: {"orders":{"0":1700000000000}}'),
    Option("endingOffsets", Use.BATCH, 'latest, or {"orders":{"0":50,"1":-1}}; the offset itself is not read'),
    Option("failOnDataLoss", Use.READ, "true: stop when records were deleted unread; false: warn and go on"),
    Option("includeHeaders", Use.ALL, "true: a column with the records' headers; without effect in writing"),
    Option("minPartitions", Use.READ, "split the offsets into at least about this many tasks"),
    Option("maxRecordsPerPartition", Use.READ, "at most this many offsets in a task"),
    Option("maxOffsetsPerTrigger", Use.READ, "at most this many offsets in a micro-batch; without effect in a batch"),
    Option(
        "minOffsetsPerTrigger",
        Use.READ,
        "start a micro-batch when there are this many offsets; without effect in a batch",
    ),
    Option("maxTriggerDelay", Use.READ, "wait no longer than this for them, such as 15m; without effect in a batch"),
    Option("fetchOffset.numRetries", Use.READ, "how often to ask for offsets that cannot be right"),
    Option("fetchOffset.retryIntervalMs", Use.READ, "how long to wait before asking again"),
    Option("kafkaConsumer.pollTimeoutMs", Use.READ, "how long a task waits for a broker that does not answer"),
    Option("partition.metadata.cache.ttl.ms", Use.READ, "without effect: asking for partitions costs little"),
    Option("groupIdPrefix", Use.READ, "without effect: reading needs no group; see group"),
    Option("group", Use.READ, "the consumer group that shows how far the query is, for every Kafka tool to see"),
    Option("columns", Use.READ, "the columns to read, with commas between them; the others are not decoded"),
    Option(
        "pushFilters", Use.READ, "true: what Spark's filters exclude is not read, if Spark hands them down; see README"
    ),
    Option("direct", Use.READ, "auto: read the broker's segment files where a task can see them; never"),
)
VALUES: Final = tuple(Option(name, Use.READ, text) for name, text in VALUE_OPTIONS.items())
ANY: Final = (
    Option("optionsFile", Use.ALL, "a JSON file with more options, such as passwords, that must not stand in a query"),
)
SINK: Final = (
    Option("topic", Use.WRITE, "the topic to write to; without it, the column topic says so for each row"),
    Option("checkpointLocation", Use.WRITE, "Spark's own: where a stream keeps its progress"),
    Option("queryName", Use.WRITE, "Spark's own: the stream's name"),
)
OPTIONS: Final = (*SOURCE, *VALUES, *ANY, *SINK)

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}
_HINTS: Final = {
    "bootstrap.servers": "kafka.bootstrap.servers",
    "path": "subscribe",
    "topic": "subscribe",
    "topics": "subscribe",
    "servers": "kafka.bootstrap.servers",
    "startingposition": "startingOffsets",
    "auto.offset.reset": "startingOffsets",
    "group.id": "group",
}


def check_names(given: Iterable[str], use: Use) -> None:
    """
    Raises:
        ConfigError: an option does not exist, or is not for this use.
    """
    for name in given:
        if name.lower().startswith(PREFIX):
            check = check_producer_name if use is Use.WRITE else check_kafka_name
            check(name.lower().removeprefix(PREFIX))
            continue
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise ConfigError(f"there is no option {name}; {_nearest(name.lower(), use)}")
        if not option.use & use:
            raise ConfigError(f"option {option.name} {_REASONS[option.use]}")


_REASONS: Final = {
    Use.BATCH: "is for batch queries: a stream has no end",
    Use.STREAM: "is for streams",
    Use.READ: "is for reading",
    Use.WRITE: "is for writing",
    Use.ALL: "",
}


def _nearest(name: str, use: Use) -> str:
    if name in _HINTS and use is not Use.WRITE:
        return f"did you mean {_HINTS[name]}?"
    known = {option.name.lower(): option.name for option in OPTIONS if option.use & use}
    known |= {PREFIX + name: PREFIX + name for name in (PRODUCER if use is Use.WRITE else KAFKA)}
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {known[near[0]]}?"
    return f"there are {', '.join(option.name for option in OPTIONS if option.use & use)}, and kafka.*"
