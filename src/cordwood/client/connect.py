"""Connecting to a Kafka cluster, quietly, and with a single sentence when nobody is there.

librdkafka retries forever and writes every problem to standard error. Somebody at a keyboard wants to know at once, and
in words, so the first step here is to knock at the door.
"""

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, TopicMetadata

from cordwood.errors import CordwoodError

KNOCK_TIMEOUT_S = 3.0
ANSWER_TIMEOUT_S = 10.0
RETRY_S = 0.1
# Topics that Kafka's brokers keep for themselves.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
NEW_TOPIC = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)


C = TypeVar("C")


class ClientError(CordwoodError):
    """A cluster could not do what it was asked to; the text says what happened and what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is, and the librdkafka properties to use for it."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def admin(self) -> AdminClient:
        return self._made(AdminClient, {})

    def producer(self, **settings: str | int | bool) -> Producer:
        """A producer that puts a key into the same partition as the Java client would."""
        return self._made(Producer, {"partitioner": "murmur2_random", **_dotted(settings)})

    def consumer(self, *, on_error: Callable[[KafkaError], None], **settings: str | int | bool) -> Consumer:
        """A consumer for manual assignment; it joins no group and commits nothing."""
        fixed = {"group.id": "cordwood", "enable.auto.commit": False, "error_cb": on_error}
        return self._made(Consumer, {**fixed, **_dotted(settings)})

    def member(self, group: str, *, on_error: Callable[[KafkaError], None], **settings: str | int | bool) -> Consumer:
        """A consumer in a group; now and then, and when it leaves, it commits the offsets that were stored with it."""
        fixed = {"group.id": group, "enable.auto.offset.store": False, "error_cb": on_error}
        return self._made(Consumer, {**fixed, **_dotted(settings)})

    def _made(self, kind: Callable[[dict[str, Any]], C], more: Mapping[str, object]) -> C:
        try:
            return kind(self._settings(more))
        except KafkaException as exception:
            raise ClientError(f"the client cannot be set up: {sentence(cause(exception))}") from None

    def _settings(self, more: Mapping[str, object]) -> dict[str, object]:
        knock(self.bootstrap)
        silent = logging.getLogger("cordwood.client.librdkafka")
        if not silent.handlers:
            silent.addHandler(logging.NullHandler())
        silent.propagate = False
        base: dict[str, object] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "cordwood",
            "logger": silent,
            "error_cb": _ignore,
        }
        settings = {**base, **more, **self.properties}
        if settings.get("group.id") == "":  # confluent-kafka would abort the process
            raise ClientError("group.id is empty; leave it out")
        return settings


def _dotted(settings: Mapping[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _ignore(error: KafkaError) -> None:
    """Ignore it: if it matters, the call that fails because of it reports it."""


def knock(bootstrap: str) -> None:
    """Return if one of the addresses accepts a connection.

    Raises:
        ClientError: none does.
    """
    reasons = [reason for address in bootstrap.split(",") if (reason := _refusal(address.strip())) is not None]
    if len(reasons) == len(bootstrap.split(",")):
        raise ClientError(
            f"no broker answers at {bootstrap} ({reasons[0]}); start one with `cordwood serve`, "
            "or name another with --bootstrap host:port"
        )


def _refusal(address: str) -> str | None:
    """Why a connection to host:port fails, in a few words."""
    host, _, port = address.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise ClientError(
            f"{address or 'an empty text'} is not an address; write it as host:port, such as 127.0.0.1:9092"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_TIMEOUT_S).close()
    except (socket.gaierror, UnicodeError):  # UnicodeError: a name that cannot even be looked up
        return "no such host"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None


def sentence(error: KafkaError) -> str:
    """A cluster's error in a sentence for users: the broker's own words, if there are any."""
    is_the_brokers = error.code() > 0
    if is_the_brokers and error.str() != KafkaError(error.code()).str():
        return error.str()
    texts = {
        KafkaError._ALL_BROKERS_DOWN: "the broker hung up; is it a Kafka broker, and does it want TLS or a password?",
        KafkaError._TRANSPORT: "the broker hung up; is it a Kafka broker, and does it want TLS or a password?",
        KafkaError._TIMED_OUT: "the broker took too long to answer",
        KafkaError.TOPIC_EXCEPTION: "a topic's name is 1 to 249 letters, digits, dots, dashes and underscores",
        KafkaError.INVALID_RECORD: "the topic does not take such a record; in a compacted topic each needs a key",
        KafkaError._MSG_TIMED_OUT: "the broker took too long to take a record",
    }
    return texts.get(error.code()) or error.str()


def cause(exception: KafkaException) -> KafkaError:
    error = exception.args[0]
    assert isinstance(error, KafkaError)
    return error


def error_of(future: "Future[Any]") -> KafkaError | None:
    """Wait, and return what went wrong, if anything did."""
    exception = future.exception()
    if exception is None:
        return None
    if isinstance(exception, KafkaException):
        return cause(exception)
    raise exception


def all_topics(client: AdminClient | Consumer | Producer) -> dict[str, TopicMetadata]:
    """The cluster's topics by name.

    Raises:
        ClientError: the cluster did not answer.
    """
    try:
        return client.list_topics(timeout=ANSWER_TIMEOUT_S).topics
    except KafkaException as exception:
        raise ClientError(sentence(cause(exception))) from None


def one_topic(client: AdminClient | Consumer | Producer, topic: str, *, patience_s: float) -> TopicMetadata:
    """A topic's partitions, once all of them have a leader.

    For a moment after a topic was created, Kafka's brokers may not have heard of it, and say that it does not exist.

    Raises:
        ClientError: there really is no such topic, or the cluster did not answer.
    """
    deadline_s = time.monotonic() + patience_s
    pause = threading.Event()
    while True:
        found = _asked(client, topic)
        error = found.error
        if error is None and all(p.leader >= 0 for p in found.partitions.values()):
            return found
        if time.monotonic() > deadline_s or (error is not None and error.code() not in NEW_TOPIC):
            break
        pause.wait(RETRY_S)
    if error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise unknown_topic(topic)
    if error is not None and error.code() != KafkaError.LEADER_NOT_AVAILABLE:
        raise ClientError(f"{topic or 'an empty name'}: {sentence(error)}")
    return found


def _asked(client: AdminClient | Consumer | Producer, topic: str) -> TopicMetadata:
    try:
        return client.list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
    except KafkaException as exception:
        raise ClientError(sentence(cause(exception))) from None


def unknown_topic(topic: str) -> ClientError:
    return ClientError(f"there is no topic {topic}; `cordwood topics list` shows those that exist")
