"""A member that is a kafka-python consumer.

It rebalances only inside of its polls, but calls back from a thread of its own in which it cannot commit. So all that
a poll brings is committed before the next one.
"""

from collections.abc import Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from clients.groups.events import Place, Wish
from clients.groups.member import Voice

POLL_MS = 3_000
"""Longer than a rebalance that waits for a member that was killed: a poll whose time runs out while the client joins
may leave it hanging for good (seen with 3.0.12, on Apache Kafka too)."""

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, voice: Voice) -> None:
        self.voice = voice

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.voice.given_up(_places(revoked))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.voice.assigned(_places(assigned))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.voice.lost(_places(lost))


def run(voice: Voice) -> None:
    wish = voice.wish
    consumer = _consumer(wish)
    if wish.pattern:
        consumer.subscribe(pattern=f"^{wish.pattern}$", listener=Listener(voice))
    else:
        consumer.subscribe(topics=list(wish.topics), listener=Listener(voice))
    while not voice.closing.is_set():
        try:
            polled = consumer.poll(timeout_ms=POLL_MS)
        except KafkaError as error:
            if not error.retriable:
                raise
            voice.say("error", text=repr(error))  # such as a broker that is away: what to do is left to the user
            continue
        for place, records in polled.items():
            voice.read(Place(place.topic, place.partition), records[0].offset, records[-1].offset + 1)
        with voice.commit() as offsets:
            if offsets:
                consumer.commit(
                    {TopicPartition(*place): OffsetAndMetadata(after, "", -1) for place, after in offsets.items()}
                )
    consumer.close()


def _consumer(wish: Wish) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=wish.bootstrap,
        group_id=wish.group,
        group_instance_id=wish.instance or None,
        client_id=wish.member,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        partition_assignment_strategy=(ASSIGNORS[wish.assignor],),
        session_timeout_ms=wish.session_timeout_ms,
        heartbeat_interval_ms=wish.heartbeat_ms,
        metadata_max_age_ms=wish.metadata_age_ms,
        fetch_max_wait_ms=100,
        reconnect_backoff_max_ms=200,
    )


def _places(places: Iterable[TopicPartition]) -> list[Place]:
    return [Place(place.topic, place.partition) for place in sorted(places)]
