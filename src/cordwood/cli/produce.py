"""``cordwood produce``: each line of standard input becomes a record."""

import argparse
import os
import sys
from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cordwood.client.connect import ClientError, Cluster, cause, one_topic, sentence

from .options import add_cluster_options, pairs, shown, topic_name, whole_number
from .progress import Progress

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Equal keys go to the same partition, which is the same one as with Kafka's Java client."
    parser.add_argument("topic", metavar="TOPIC", type=topic_name)
    parser.add_argument(
        "--key-separator", metavar="TEXT", type=_separator, help="lines are key, TEXT, value; default: no keys"
    )
    parser.add_argument("--partition", type=whole_number, help="send everything to this partition")
    parser.add_argument(
        "--header",
        dest="headers",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="a header of every record; may be repeated",
    )
    parser.add_argument(
        "--null",
        metavar="TEXT",
        type=os.fsencode,
        help="send a value that is TEXT as null, which deletes the key in a compacted topic",
    )
    parser.add_argument("--compression", choices=CODECS, default="none")
    parser.add_argument(
        "--acks",
        choices=("0", "1", "all"),
        default="all",
        help="who must have a record before it counts as sent: nobody, the leader, all in sync; default: all",
    )
    add_cluster_options(parser)


def _separator(text: str) -> bytes:
    if not text:
        raise argparse.ArgumentTypeError("it cannot be empty; leave it out for no keys")
    return os.fsencode(text)


def _header(text: str) -> tuple[str, bytes]:
    """A name, which is text, and a value, which is bytes."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{shown(text)} has no {'value' if name else 'name'}; write NAME=VALUE")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"its name is not a text in UTF-8: {shown(text)}") from None
    return name, os.fsencode(value)


def run(arguments: argparse.Namespace) -> int:
    if sys.stdin is None:
        raise ClientError(
            f"there is no standard input to take lines from; write `cordwood produce {arguments.topic} < FILE`"
        )
    cluster = Cluster(arguments.bootstrap, pairs("-X", arguments.properties))
    producer = cluster.producer(
        acks=arguments.acks,
        compression_type=arguments.compression,
        linger_ms=20,
        enable_idempotence=arguments.acks == "all",
    )
    found = one_topic(producer, arguments.topic, patience_s=5)
    if arguments.partition is not None and arguments.partition not in found.partitions:
        raise ClientError(
            f"{arguments.topic} has no partition {arguments.partition}; it has 0 to {len(found.partitions) - 1}"
        )
    return _send_all(producer, arguments)


def _send_all(producer: Producer, arguments: argparse.Namespace) -> int:
    sender = _Sender(producer, arguments.topic, arguments.partition, arguments.headers)
    try:
        for number, key, value in _records(arguments.key_separator):
            sender.send(number, key, None if value == arguments.null else value)
    finally:
        sender.finish()
    return 0


def _records(separator: bytes | None) -> Iterator[tuple[int, bytes | None, bytes]]:
    """The lines of standard input with their numbers: key and value, byte for byte."""
    if sys.stdin.isatty():
        print("Each line is a record. Ctrl-D ends it.", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is None:
            yield number, None, text
            continue
        key, found, value = text.partition(separator)
        if not found:
            mark = separator.decode(errors="backslashreplace")
            raise ClientError(f"line {number} has no {mark!r} between key and value; the lines before it were sent")
        yield number, key, value


def _refusal(line: int, error: KafkaError) -> str:
    """Why librdkafka does not accept a line."""
    if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return f"line {line} was not sent: {sentence(error)}"
    return (
        f"line {line} is too large for a record; -X message.max.bytes=N allows larger ones, as far as the topic's "
        "max.message.bytes does. The lines before it were sent"
    )


def _records_were(count: int) -> str:
    return "1 record was" if count == 1 else f"{count:,} records were"


class _Sender:
    """Sends records and remembers the first that failed."""

    def __init__(self, producer: Producer, topic: str, partition: int | None, headers: list[tuple[str, bytes]]) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._headers: list[tuple[str, str | bytes | None]] | None = [*headers] or None
        self._progress = Progress("sent")
        self._error: KafkaError | None = None
        self._failed = 0

    def send(self, line: int, key: bytes | None, value: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, self._partition, on_delivery=self._delivered, headers=self._headers
                )
            except BufferError:
                self._producer.poll(0.1)
                continue
            except KafkaException as exception:
                raise ClientError(_refusal(line, cause(exception))) from None
            self._producer.poll(0)
            return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._progress.add(len(message))
        else:
            self._failed += 1
            self._error = self._error or error

    def finish(self) -> None:
        """Wait for the last answers.

        Raises:
            ClientError: records were not acknowledged.
        """
        left = self._producer.flush(30)
        self._progress.finish()
        if self._error is not None:
            raise ClientError(f"{_records_were(self._failed)} not taken: {sentence(self._error)}")
        if left:
            raise ClientError(f"{_records_were(left)} not answered within 30 s, and may or may not have been taken")
