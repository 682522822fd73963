"""A member that is a confluent-kafka consumer, with either protocol. Its callbacks run inside of its polls."""

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, TopicPartition

from clients.groups.events import Place, Wish
from clients.groups.member import POLL_S, Voice


def run(voice: Voice) -> None:
    wish = voice.wish
    consumer = Consumer({**_settings(wish), "error_cb": lambda error: voice.say("error", text=_text(error))})

    def commit() -> None:
        with voice.commit() as offsets:
            if offsets:
                told = [TopicPartition(*place, after) for place, after in offsets.items()]
                _raise_failed(consumer.commit(offsets=told, asynchronous=False))

    def on_assign(_: Consumer, places: list[TopicPartition]) -> None:
        voice.assigned(_places(places))

    def on_revoke(_: Consumer, places: list[TopicPartition]) -> None:
        commit()
        voice.given_up(_places(places))

    def on_lost(_: Consumer, places: list[TopicPartition]) -> None:
        voice.lost(_places(places))

    topics = [f"^{wish.pattern}$"] if wish.pattern else list(wish.topics)
    consumer.subscribe(topics, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
    while not voice.closing.is_set():
        message = consumer.poll(POLL_S)
        if message is not None:
            _take(voice, message)
        if voice.wants_to_commit:
            commit()
    # Told of a rebalance before it closes, the client leaves first and calls back then: too late for a commit, and
    # others may have its partitions by that time. It reads no more from here on, so it has given them up.
    commit()
    voice.given_up(set(voice.owned))
    consumer.close()


def _raise_failed(answers: list[TopicPartition] | None) -> None:
    for answer in answers or ():
        if answer.error is not None:
            raise confluent_kafka.KafkaException(answer.error)


def _take(voice: Voice, message: confluent_kafka.Message) -> None:
    if (error := message.error()) is not None:
        voice.say("error", text=_text(error))
        return
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    voice.read(Place(topic, partition), offset, offset + 1)


def _settings(wish: Wish) -> dict[str, str | int | bool]:
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": wish.bootstrap,
        "group.id": wish.group,
        "group.protocol": wish.protocol,
        "client.id": wish.member,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": wish.metadata_age_ms,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 200,
        # Between a failed fetch and the next: else half a second passes after every assignment.
        "fetch.error.backoff.ms": 20,
    }
    if wish.instance:
        settings["group.instance.id"] = wish.instance
    if wish.protocol == "consumer":
        return settings | {"group.remote.assignor": wish.assignor}
    return settings | {
        "partition.assignment.strategy": wish.assignor,
        "session.timeout.ms": wish.session_timeout_ms,
        "heartbeat.interval.ms": wish.heartbeat_ms,
    }


def _places(places: list[TopicPartition]) -> list[Place]:
    return [Place(place.topic, place.partition) for place in places]


def _text(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"
