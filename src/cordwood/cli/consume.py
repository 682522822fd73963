"""``cordwood consume``: prints records of topics until it is stopped: on its own, or as a member of a group.

On its own, it reads all partitions, or one, from wherever it is told to, and commits nothing. As a member, it reads
what the group assigns to it, from the committed offsets on, and commits only what it has printed: a record whose line
may not have been written is printed again by the next owner of the partition.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from cordwood.client.connect import ANSWER_TIMEOUT_S, ClientError, Cluster, cause, one_topic, sentence
from cordwood.client.offsets import Partition
from cordwood.errors import ConfigError

from .options import Once, add_cluster_options, group_name, pairs, positive, topic_name, whole_number
from .position import HELP, Position, Where, parse_position
from .show import COLUMNS, Show

_Handler = Callable[[int, FrameType | None], None] | signal.Handlers

BATCH = 2000
POLL_S = 0.2
COMMIT_INTERVAL_MS = 1000

RESETS = {Where.EARLIEST: "earliest", Where.LATEST: "latest"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Without --group it joins no group and commits nothing. With --group, a TOPIC "
        "that begins with ^ is a pattern, and -X group.protocol=consumer joins by the newer protocol. Ctrl-C ends it."
    )
    parser.add_argument("topics", metavar="TOPIC", type=topic_name, action=Once, nargs="+")
    parser.add_argument(
        "--group",
        type=group_name,
        metavar="NAME",
        help="share the partitions with this group, and commit what is printed",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        type=_start,
        default=Position(Where.EARLIEST),
        help=f"{HELP}; default: earliest. A partition that ends before an offset is read from its end on, one that "
        "begins after it from its first record. With --group: earliest or latest, where nothing is committed",
    )
    parser.add_argument("--partition", type=whole_number, help="only this partition; default: all")
    parser.add_argument("--max", type=positive, metavar="N", help="end after N records")
    parser.add_argument("--until-end", action="store_true", help="end when everything that is there has been printed")
    parser.add_argument(
        "--with",
        dest="columns",
        metavar="COLUMNS",
        type=_columns,
        default=(),
        help=f"columns to print before the value, separated by tabs; a list of {', '.join(COLUMNS)}",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each record, with all columns")
    add_cluster_options(parser)


def _start(text: str) -> Position:
    try:
        return parse_position(text, now_ms=time.time_ns() // 1_000_000)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is neither a place nor a time; it may be {HELP}") from None


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(text.split(","))
    for column in columns:
        if column not in COLUMNS:
            raise argparse.ArgumentTypeError(
                f"{column or 'an empty text'} is not a column; there are {', '.join(COLUMNS)}"
            )
    return columns


def run(arguments: argparse.Namespace) -> int:
    cluster = Cluster(arguments.bootstrap, pairs("-X", arguments.properties))
    consumer = _alone(cluster, arguments) if arguments.group is None else _member(cluster, arguments)
    try:
        _begin(consumer, arguments)
        numbers = (signal.SIGINT,) if arguments.group is None else (signal.SIGINT, signal.SIGTERM)
        with _stopping(*numbers) as stop:
            _print_records(consumer, Show(arguments.columns, json=arguments.json), arguments, stop)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    except KafkaException as exception:
        raise ClientError(sentence(cause(exception))) from None
    finally:
        with _handled(signal.SIG_DFL, signal.SIGINT):  # closing may take long if a broker is gone
            consumer.close()
    return 0


def _alone(cluster: Cluster, arguments: argparse.Namespace) -> Consumer:
    for topic in arguments.topics:
        if topic.startswith("^"):
            raise ConfigError(f"{topic} is a pattern, and patterns need --group")
    return cluster.consumer(on_error=_report, auto_offset_reset="error", **_fetching(arguments))


def _member(cluster: Cluster, arguments: argparse.Namespace) -> Consumer:
    if arguments.partition is not None:
        raise ConfigError("--partition does not go with --group: the group says who reads which")
    if arguments.start.where not in RESETS:
        raise ConfigError(
            "with --group, --from is earliest or latest, for partitions without a committed offset; "
            "to move committed offsets, use `cordwood groups reset-offsets`"
        )
    return cluster.member(
        arguments.group,
        on_error=_report,
        auto_offset_reset=RESETS[arguments.start.where],
        auto_commit_interval_ms=COMMIT_INTERVAL_MS,
        **_fetching(arguments),
    )


def _fetching(arguments: argparse.Namespace) -> dict[str, int | bool]:
    return {
        "enable_partition_eof": True,
        "fetch_queue_backoff_ms": 10,
        "fetch_wait_max_ms": 100 if arguments.until_end else 500,
    }


class _Stop:
    """Ctrl-C and the like. The first is a request, and waits until what was printed is stored; the second acts at once.

    Neither raises an exception: that might happen in a callback of confluent-kafka, which would lose it.
    """

    def __init__(self) -> None:
        self.is_wanted = False

    def signalled(self, number: int, frame: FrameType | None) -> None:
        self.is_wanted = True
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def _stopping(*numbers: signal.Signals) -> Iterator[_Stop]:
    """Take signals as requests: a member that dies at once leaves its work undone and the others waiting."""
    stop = _Stop()
    with _handled(stop.signalled, *numbers):
        yield stop


@contextmanager
def _handled(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _begin(consumer: Consumer, arguments: argparse.Namespace) -> None:
    if arguments.group is None:
        partitions = [p for topic in arguments.topics for p in _partitions(consumer, topic, arguments.partition)]
        consumer.assign(_placed(consumer, partitions, arguments.start))
        return
    for topic in arguments.topics:
        if not topic.startswith("^"):
            one_topic(consumer, topic, patience_s=1)
    try:
        consumer.subscribe(arguments.topics)
    except KafkaException:  # only the patterns have been checked so far
        patterns = " or ".join(topic for topic in arguments.topics if topic.startswith("^"))
        raise ClientError(f"{patterns} is not a pattern that librdkafka understands") from None


def _report(error: KafkaError) -> None:
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        print("cordwood: the broker is gone; waiting for it to come back", file=sys.stderr)


def _partitions(consumer: Consumer, topic: str, only: int | None) -> list[TopicPartition]:
    known = sorted(one_topic(consumer, topic, patience_s=1).partitions)
    if only is not None and only not in known:
        raise ClientError(f"{topic} has no partition {only}; it has 0 to {len(known) - 1}")
    return [TopicPartition(topic, partition) for partition in known if only in (None, partition)]


def _placed(consumer: Consumer, partitions: list[TopicPartition], start: Position) -> list[TopicPartition]:
    """The partitions with the offsets to start from."""
    try:
        match start.where:
            case Where.EARLIEST:
                return _all_at(partitions, OFFSET_BEGINNING)
            case Where.LATEST:
                return _all_at(partitions, OFFSET_END)
            case Where.TIME_MS:
                return consumer.offsets_for_times(_all_at(partitions, start.number), ANSWER_TIMEOUT_S)
            case Where.OFFSET | Where.BEFORE_END:
                return _at_offsets(consumer, partitions, start)
    except KafkaException as exception:
        raise ClientError(f"the offsets could not be read: {sentence(cause(exception))}") from None


def _all_at(partitions: list[TopicPartition], offset: int) -> list[TopicPartition]:
    return [TopicPartition(p.topic, p.partition, offset) for p in partitions]


def _at_offsets(consumer: Consumer, partitions: list[TopicPartition], start: Position) -> list[TopicPartition]:
    """Start each partition at the offset, or at the nearest that it has; at least one partition must contain it."""
    ranges = [consumer.get_watermark_offsets(partition, ANSWER_TIMEOUT_S) for partition in partitions]
    if start.where is Where.OFFSET:
        _check_is_reached(partitions, [end for _, end in ranges], start.number)
    placed = []
    for partition, (first, end) in zip(partitions, ranges, strict=True):
        wanted = start.number if start.where is Where.OFFSET else end - start.number
        placed.append(TopicPartition(partition.topic, partition.partition, min(max(first, wanted), end)))
    return placed


def _check_is_reached(partitions: list[TopicPartition], ends: list[int], offset: int) -> None:
    end = max(ends)
    if offset <= end:
        return
    furthest = partitions[ends.index(end)]
    name = f"{furthest.topic} partition {furthest.partition}"
    if len(partitions) == 1:
        raise ClientError(f"{name} ends at offset {end}; --from {offset} is beyond it")
    raise ClientError(f"--from {offset} is beyond the end of all partitions; the furthest, {name}, ends at {end}")


def _print_records(consumer: Consumer, show: Show, arguments: argparse.Namespace, stop: _Stop) -> None:
    """Print until there are enough records, or all have been read, or somebody stops it."""
    left = sys.maxsize if arguments.max is None else arguments.max
    ended: set[Partition] = set()
    output = sys.stdout.buffer
    while left and not stop.is_wanted and not (arguments.until_end and _all_is_read(consumer, ended)):
        printed: dict[Partition, Message] = {}
        for message in _next(consumer, min(left, BATCH)):
            if _is_record(message, ended):
                output.write(show.line(message))
                printed[_partition_of(message)] = message
                left -= 1
        output.flush()
        if arguments.group is not None:
            _store(consumer, printed)


def _all_is_read(consumer: Consumer, ended: set[Partition]) -> bool:
    """A member without partitions waits: it is there to take over from one that ends."""
    held = {(p.topic, p.partition) for p in consumer.assignment()}
    ended &= held
    return bool(held) and held == ended


def _store(consumer: Consumer, printed: dict[Partition, Message]) -> None:
    """Let the next commit cover what has been printed."""
    for message in printed.values():
        with suppress(KafkaException):  # the partition has another owner by now, who will print these again
            consumer.store_offsets(message=message)


def _next(consumer: Consumer, limit: int) -> list[Message]:
    """The messages that are there, at once; or the first to arrive within a while."""
    first = consumer.poll(POLL_S)
    if first is None:
        return []
    return [first, *consumer.consume(limit - 1, 0)] if limit > 1 else [first]


def _is_record(message: Message, ended: set[Partition]) -> bool:
    """Tell a record from the end of a partition, which is noted, and from an error, which is raised."""
    error = message.error()
    if error is None:
        return True
    if error.code() != KafkaError._PARTITION_EOF:
        raise ClientError(": ".join(filter(None, [message.topic(), sentence(error)])))
    ended.add(_partition_of(message))
    return False


def _partition_of(message: Message) -> Partition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return topic, partition
