"""A member that is an aiokafka consumer.

Its rebalances run beside its reading, in the same event loop. What it hands over is told of before the loop goes on, so
only commits, which take a while, have to be kept apart.
"""

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from clients.groups.events import Place, Wish
from clients.groups.member import POLL_S, Voice

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, voice: Voice, consumer: AIOKafkaConsumer) -> None:
        self.voice = voice
        self.consumer = consumer
        self.lock = asyncio.Lock()

    async def commit(self) -> None:
        async with self.lock:
            with self.voice.commit() as offsets:
                if offsets:
                    await self.consumer.commit({TopicPartition(*place): after for place, after in offsets.items()})

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """aiokafka calls this also when the member was expelled; it has no generation any more then."""
        if self.consumer._coordinator.generation < 0:
            self.voice.lost(_places(revoked))
            return
        await self.commit()
        self.voice.given_up(_places(revoked))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.voice.assigned(_places(assigned))


def run(voice: Voice) -> None:
    asyncio.run(_run(voice))


async def _run(voice: Voice) -> None:
    consumer = _consumer(voice.wish)
    await consumer.start()
    listener = Listener(voice, consumer)
    if voice.wish.pattern:
        consumer.subscribe(pattern=f"^{voice.wish.pattern}$", listener=listener)
    else:
        consumer.subscribe(topics=list(voice.wish.topics), listener=listener)
    while not voice.closing.is_set():
        for place, records in (await consumer.getmany(timeout_ms=int(POLL_S * 1_000))).items():
            voice.read(Place(*place), records[0].offset, records[-1].offset + 1)
        if voice.wants_to_commit:
            await listener.commit()
    await listener.commit()
    voice.given_up(set(voice.owned))  # it does not call back when it stops
    await consumer.stop()


def _consumer(wish: Wish) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
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
    )


def _places(places: Iterable[TopicPartition]) -> list[Place]:
    return [Place(place.topic, place.partition) for place in sorted(places)]
