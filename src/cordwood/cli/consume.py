"""``cordwood consume``: prints records, of all partitions or of one, until it is stopped."""

import argparse
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from cordwood.client.connect import ANSWER_TIMEOUT_S, ClientError, Cluster, cause, one_topic, sentence

from .options import add_cluster_options, pairs, positive, whole_number
from .position import HELP, Position, Where, parse_position
from .show import COLUMNS, Show

BATCH = 2000
POLL_S = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "It reads as nobody in particular: it joins no group and leaves no trace. Ctrl-C ends it."
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--from", dest="start", metavar="WHERE", type=_start, default="earliest", help=f"{HELP}; default: earliest"
    )
    parser.add_argument("--partition", type=whole_number, help="only this one; default: all")
    parser.add_argument("--max", type=positive, metavar="N", help="end after N records")
    parser.add_argument("--until-end", action="store_true", help="end when all that is there has been printed")
    parser.add_argument(
        "--with",
        dest="columns",
        metavar="COLUMNS",
        type=_columns,
        default=(),
        help=f"columns before the value, parted by tabs; a list of {', '.join(COLUMNS)}",
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
            raise argparse.ArgumentTypeError(f"{column} is no column; there are {', '.join(COLUMNS)}")
    return columns


def run(arguments: argparse.Namespace) -> int:
    cluster = Cluster(arguments.bootstrap, pairs("-X", arguments.properties))
    consumer = cluster.consumer(
        on_error=_report,
        enable_partition_eof=True,
        auto_offset_reset="error",
        fetch_queue_backoff_ms=10,
        fetch_wait_max_ms=100 if arguments.until_end else 500,
    )
    try:
        partitions = _partitions(consumer, arguments.topic, arguments.partition)
        consumer.assign(_placed(consumer, partitions, arguments.start))
        _print_records(consumer, Show(arguments.columns, json=arguments.json), len(partitions), arguments)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    finally:
        consumer.close()
    return 0


def _report(error: KafkaError) -> None:
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        print("cordwood: the broker is gone; waiting for it to come back", file=sys.stderr)


def _partitions(consumer: Consumer, topic: str, only: int | None) -> list[TopicPartition]:
    known = sorted(one_topic(consumer, topic, patience_s=1).partitions)
    if only is not None and only not in known:
        raise ClientError(f"{topic} has no partition {only}; it has 0 to {len(known) - 1}")
    return [TopicPartition(topic, partition) for partition in known if only in (None, partition)]


def _placed(consumer: Consumer, partitions: list[TopicPartition], start: Position) -> list[TopicPartition]:
    """The partitions with the offset to start from."""
    try:
        match start.where:
            case Where.EARLIEST:
                return _all_at(partitions, OFFSET_BEGINNING)
            case Where.LATEST:
                return _all_at(partitions, OFFSET_END)
            case Where.TIME_MS:
                return consumer.offsets_for_times(_all_at(partitions, start.number), ANSWER_TIMEOUT_S)
            case Where.OFFSET | Where.BEFORE_END:
                return [_at_offset(consumer, partition, start) for partition in partitions]
    except KafkaException as exception:
        raise ClientError(f"the offsets could not be read: {sentence(cause(exception))}") from None


def _all_at(partitions: list[TopicPartition], offset: int) -> list[TopicPartition]:
    return [TopicPartition(p.topic, p.partition, offset) for p in partitions]


def _at_offset(consumer: Consumer, partition: TopicPartition, start: Position) -> TopicPartition:
    first, end = consumer.get_watermark_offsets(partition, ANSWER_TIMEOUT_S)
    wanted = start.number if start.where is Where.OFFSET else end - start.number
    if wanted > end:
        raise ClientError(f"partition {partition.partition} ends at offset {end}; --from {wanted} is beyond it")
    return TopicPartition(partition.topic, partition.partition, max(first, wanted))


def _print_records(consumer: Consumer, show: Show, partitions: int, arguments: argparse.Namespace) -> None:
    """Print until there were enough, or all, or somebody stops it."""
    left = sys.maxsize if arguments.max is None else arguments.max
    ended: set[int] = set()
    output = sys.stdout.buffer
    while left and not (arguments.until_end and len(ended) == partitions):
        for message in _next(consumer, min(left, BATCH)):
            if _is_record(message, ended):
                output.write(show.line(message))
                left -= 1
        output.flush()


def _next(consumer: Consumer, limit: int) -> list[Message]:
    """What is there, at once; or what comes first, within a while."""
    first = consumer.poll(POLL_S)
    if first is None:
        return []
    return [first, *consumer.consume(limit - 1, 0)] if limit > 1 else [first]


def _is_record(message: Message, ended: set[int]) -> bool:
    """Tell a record from the end of a partition, which is noted, and from an error, which is raised."""
    error = message.error()
    if error is None:
        return True
    if error.code() != KafkaError._PARTITION_EOF:
        raise ClientError(f"partition {message.partition()}: {sentence(error)}")
    partition = message.partition()
    assert partition is not None
    ended.add(partition)
    return False
