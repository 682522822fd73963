"""The groups that this broker coordinates: those whose partition of ``__consumer_offsets`` it leads.

A group belongs to the partition that its name's hash gives. For every such partition that this broker leads there is a
shard (see ``coordinator``), loaded a slice at a time and driven from here: requests, deadlines, changes of topics.

A fenced broker leads nothing, so it has no shards. It could not write what its groups decide, and members that are not
told so would begin one generation after the other. When it is registered again, it loads its shards anew, and members,
which could not reach it in the meantime, get their full timeouts again.

Invariants (``check``): there is a shard for each local partition of the topic that is led here, and no other.
"""

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, TypeVar

from cordwood.broker.portions import states_max
from cordwood.broker.timers import Timer
from cordwood.cluster.controller import create_topic, plan_topic
from cordwood.cluster.image import NO_LEADER, Delta
from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.coordinator.shard import LOAD_SLICE_BYTES, Shard, ShardState
from cordwood.effects import Linger
from cordwood.errors import Error, Refused, StorageError
from cordwood.group.machine import GroupMachine
from cordwood.group.memory import GroupMemory
from cordwood.group.state import GroupState
from cordwood.group.stored import OFFSETS_TOPIC
from cordwood.ids import NodeId, TopicName
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, StoreOp
from cordwood.record.batch import Codec

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

TOPIC: Final = TopicName(OFFSETS_TOPIC)
SEGMENT_BYTES_LEAST: Final = 1 << 20
"""No topic may have segments smaller than this, although the setting for the offsets topic would allow it."""

# Every request of a group needs its partition, and hashing takes a while. Long names would take much memory.
REMEMBERED_NAMES: Final = 4096
REMEMBERED_NAME_MAX: Final = 256
FOLDED_BYTES_MIN: Final = 256
"""From this length on, it pays to hash a name by folding."""

LOAD_AGAIN_MS: Final = 10_000
"""When to load a shard again that could not be loaded. Until then its groups get NOT_COORDINATOR, as in Kafka."""

LATE_MS: Final = 500
LISTEN_MS: Final = 20
"""If a deadline is handled more than *LATE_MS* late, it is put off by this much, once: the broker was not running
(stopped, or without a CPU), and what members have sent meanwhile is still in their sockets."""

R = TypeVar("R")
Handler = Callable[[GroupState, Caller, Instant], Outcome]
RequestHandler = Callable[[GroupState, R, Caller, Instant], Outcome]


class GroupShard:
    """A shard, its groups, and the timer of its next deadline."""

    __slots__ = ("listens", "machine", "shard", "timer")

    def __init__(self, shard: Shard, machine: GroupMachine) -> None:
        self.shard = shard
        self.machine = machine
        self.timer: Timer | None = None
        self.listens = False
        """Were its deadlines put off, so that members are heard first? Its timer ends that."""

    def end(self) -> None:
        self.shard.end()
        if self.timer is not None:
            self.timer.cancel()


class GroupCoordinator:
    """All shards of this broker, by partition index."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._shards: dict[int, GroupShard] = {}
        self._homes: dict[str, GroupShard] = {}
        """The shards of groups that were recently asked for."""
        self._loading: deque[GroupShard] = deque()
        self._load_timer: Timer | None = None
        self._linger_ms = broker.config.group_coordinator_append_linger_ms
        self._lingering: list[GroupShard] = []
        """Those in which requests have been gathered, and perhaps written since."""
        self._memory = GroupMemory(
            lambda: broker.config.max_groups_bytes, lambda: [found.machine.state for found in self._shards.values()]
        )

    # ------------------------------------------------------------------ who coordinates what

    def node_for(self, group_id: str) -> NodeId:
        """The broker that coordinates a group, perhaps another one.

        Raises:
            Refused: there is none now.
        """
        topic = self._broker.image.topics.get(TOPIC)
        if topic is None:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, "The offsets' topic does not exist yet. Try again.")
        leader = topic.partitions[partition_for(group_id, len(topic.partitions))].leader
        if leader == NO_LEADER:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, "The group's partition has no leader now. Try again.")
        return leader

    def prepare_topic(self, done: Callable[[Refused | None], None]) -> None:
        """Make sure that the topic exists, then go on."""
        if TOPIC in self._broker.image.topics:
            done(None)
        else:
            self._broker.propose(self.topic_creation, done)

    def topic_creation(self) -> list[StoreOp]:
        """A plan that creates the topic as its settings say, whoever asks for it; nothing if it exists."""
        broker = self._broker
        if TOPIC in broker.image.topics:
            return []
        config = broker.config
        plan = plan_topic(
            broker.image,
            broker.entropy,
            name=TOPIC,
            partitions=config.offsets_topic_num_partitions,
            # A broker on its own makes do with one replica. In a cluster, others may not have registered yet: then this
            # must wait, or the topic would have too few replicas for ever.
            replicas=config.offsets_topic_replication_factor if broker.clustered else 1,
            manual={},
            config={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(max(config.offsets_topic_segment_bytes, SEGMENT_BYTES_LEAST)),
            },
        )
        return create_topic(broker.image, plan, states_max=states_max(broker))

    def _find(self, group_id: str) -> GroupShard:
        topic = self._broker.image.topics.get(TOPIC)
        found = self._shards.get(partition_for(group_id, len(topic.partitions))) if topic is not None else None
        if found is None:
            raise Refused(Error.NOT_COORDINATOR)
        if len(group_id) <= REMEMBERED_NAME_MAX:
            if len(self._homes) >= REMEMBERED_NAMES:
                self._homes.clear()
            self._homes[group_id] = found
        return found

    # ------------------------------------------------------------------ requests and deadlines

    def handle(self, group_id: str, caller: Caller, handler: Handler) -> None:
        """Let the group's shard handle a request; the caller is answered now or later."""
        try:
            found = self._homes.get(group_id) or self._find(group_id)
        except Refused as refusal:
            caller.refuse(refusal)
            return
        self._handle(found, caller, handler)

    def ask(self, group_id: str, request: R, caller: Caller, handler: RequestHandler[R]) -> None:
        """Like ``handle``, for members' frequent requests: with few calls, and without a function made for each."""
        self.gather(group_id, request, caller, handler, None)

    def gather(
        self, group_id: str, request: R, caller: Caller, handler: RequestHandler[R], kind: object = None
    ) -> None:
        """Like ``ask``, for requests that may be written together with others of their *kind*; see ``Shard.gather``."""
        now = self._broker.now
        try:
            found = self._homes.get(group_id) or self._find(group_id)
            shard = found.shard
            shard.make_way(kind, now)
            outcome = handler(found.machine.state, request, caller, now)
        except Refused as refusal:
            caller.refuse(refusal)
            return
        if shard.gather(outcome, now):
            self._linger(found, now)
        if outcome.gathers is None:
            self._arm(found)

    def _linger(self, found: GroupShard, now: Instant) -> None:
        """A first request was gathered in a shard. It waits for others that have already arrived, or for a set time."""
        self._lingering.append(found)
        if self._linger_ms == 0:
            self.write_gathered(now)
        elif len(self._lingering) == 1:
            if self._linger_ms < 0:
                self._broker.effects.append(Linger())
            else:
                self._broker.timers.at(now.mono_ms + self._linger_ms, self.write_gathered)

    def write_gathered(self, now: Instant) -> None:
        """Write whatever has been gathered, in all shards."""
        lingering, self._lingering = self._lingering, []
        for found in lingering:
            found.shard.write_gathered(now)
            if found.shard.state is ShardState.SERVING:
                self._arm(found)

    def serving(self) -> list[int]:
        """The shards that are serving now; ``handle_shard`` takes one of these."""
        return list(self._shards)

    def handle_shard(self, index: int, caller: Caller, handler: Handler) -> None:
        """Let one shard handle a request about all of its groups."""
        self._handle(self._shards[index], caller, handler)

    def _handle(self, found: GroupShard, caller: Caller, handler: Handler) -> None:
        now = self._broker.now
        found.shard.handle(caller, partial(handler, found.machine.state, caller, now), now)
        self._arm(found)

    def _arm(self, found: GroupShard, not_before_ms: int = 0) -> None:
        """Wake up at the shard's next deadline."""
        earliest = found.shard.earliest()
        timer = found.timer
        if earliest is None or found.listens or (timer is not None and timer.deadline_ms <= earliest):
            return
        if timer is not None:
            timer.cancel()
        found.timer = self._broker.timers.at(max(earliest, not_before_ms), partial(self._due, found))

    def _due(self, found: GroupShard, now: Instant) -> None:
        timer, found.timer = found.timer, None
        assert timer is not None
        found.listens = not found.listens and now.mono_ms - timer.deadline_ms > LATE_MS
        if found.listens:
            found.timer = self._broker.timers.at(now.mono_ms + LISTEN_MS, partial(self._due, found))
            return
        found.shard.run_due(now)
        if found.shard.state is ShardState.SERVING:
            self._arm(found, now.mono_ms + 1)  # if more is due, others have their turn first

    # ------------------------------------------------------------------ shards come and go

    def start(self) -> None:
        self._match_metadata()

    def apply(self, delta: Delta) -> None:
        """The metadata has changed: this broker may lead other partitions, and groups are told of their topics."""
        if TOPIC in delta.topics:
            self._match_metadata()
        names = [name for name, states in delta.topics.items() if name != TOPIC and states is None]
        if not names:
            return
        for found in self._shards.values():
            if found.shard.state is ShardState.SERVING:
                now = self._broker.now
                found.shard.write_gathered(now)
                for outcome in found.machine.topics_changed(names, now):
                    found.shard.finish(outcome, now)
                self._arm(found)

    def fenced_changed(self) -> None:
        """This broker may no longer lead, or may lead again."""
        self._match_metadata()

    def _led(self) -> dict[int, Partition]:
        local = self._broker.replicas.by_name.get(TOPIC, {})
        return {index: partition for index, partition in local.items() if partition.leading}

    def _match_metadata(self) -> None:
        self._homes.clear()
        led = self._led()
        for index, found in list(self._shards.items()):
            if led.get(index) is not found.shard.partition or found.shard.epoch != found.shard.partition.leader_epoch:
                del self._shards[index]
                found.end()
        for index, partition in led.items():
            if index not in self._shards:
                self._begin(index, partition)
        self._load(self._broker.now)

    def _begin(self, index: int, partition: Partition) -> None:
        broker = self._broker
        state = GroupState(
            config=lambda: broker.config,
            image=broker.image,
            entropy=broker.entropy,
            logger=broker.logger,
            memory=self._memory,
        )
        machine = GroupMachine(state)
        shard = Shard(
            partition,
            machine,
            broker.logger,
            record_bytes_max=broker.config.max_decompressed_message_bytes,
            want_sync=lambda partition: _sync(broker, partition),
            commit_timeout_ms=broker.config.offsets_commit_timeout_ms,
            codec=Codec(broker.config.offsets_topic_compression_codec),
        )
        found = self._shards[index] = GroupShard(shard, machine)
        self._loading.append(found)

    def _load(self, now: Instant) -> None:
        """Load for a while, then let others have their turn."""
        if self._load_timer is not None:
            self._load_timer.cancel()
            self._load_timer = None
        spent = 0
        while self._loading and spent < LOAD_SLICE_BYTES:
            found = self._loading[0]
            if found.shard.state is ShardState.LOADING:
                spent += found.shard.load_slice(now)
            if found.shard.state is not ShardState.LOADING:
                self._loading.popleft()
                self._loaded(found, now)
        if self._loading:
            self._load_timer = self._broker.timers.at(now.mono_ms + 1, self._load)

    def _loaded(self, found: GroupShard, now: Instant) -> None:
        """Serve requests; or loading has failed, and is retried later, unless the records are not valid."""
        if found.shard.state is ShardState.SERVING:
            self._arm(found)
        elif isinstance(found.shard.load_error, StorageError):
            found.timer = self._broker.timers.at(now.mono_ms + LOAD_AGAIN_MS, partial(self._load_again, found))

    def _load_again(self, found: GroupShard, now: Instant) -> None:
        index = found.shard.partition.name.partition
        assert self._shards.pop(index) is found
        self._homes.clear()
        self._begin(index, found.shard.partition)
        self._load(now)

    def check(self) -> None:
        assert self._shards.keys() == self._led().keys()
        for found in self._shards.values():
            found.shard.check()
        for group_id, home in list(self._homes.items()):
            assert home is self._find(group_id)


def _sync(broker: "Broker", partition: Partition) -> None:
    """What was written waits for other replicas, or for the disk too."""
    if partition.sync_due():
        broker.replicas.syncs.start(partition, broker.effects)


def partition_for(group_id: str, partitions: int) -> int:
    """The partition that a group belongs to: Java's hash of the string, without its sign bit."""
    find = _remembered_hash if len(group_id) <= REMEMBERED_NAME_MAX else _hash
    return find(group_id) % partitions


def _hash(text: str) -> int:
    """Java's hash: each 16-bit unit counts 31 times as much as the one behind it, modulo 2**32.

    A loop over a name of 32 kB takes 5 ms, and a request may name hundreds. So long names are folded: taken as one
    number, units are combined in pairs, then the results in pairs, and so on. That is a few multiplications of large
    numbers.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = _folded(units) if len(units) > FOLDED_BYTES_MIN else _summed(units)
    return min(value, (1 << 32) - value) & 0x7FFFFFFF  # as in Kafka, -2**31 becomes 0


def _summed(units: bytes) -> int:
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value


def _folded(units: bytes) -> int:
    """Lanes of 16, then 32, then 64 bits, each with the hash of its contents. No lane overflows into the next."""
    lanes = -(-len(units) // 8)
    quarters = int.from_bytes(units)
    low = int.from_bytes(b"\0\0\xff\xff" * (2 * lanes))
    pairs = (quarters >> 16 & low) * 31 + (quarters & low)
    low = int.from_bytes(b"\0\0\0\0\xff\xff\xff\xff" * lanes)
    value = (pairs >> 32 & low) * 31**2 + (pairs & low) & low
    while lanes > 1:
        half = lanes // 2
        lanes -= half
        first, second = value >> 64 * half, value & (1 << 64 * half) - 1
        low &= (1 << 64 * lanes) - 1
        value = first * pow(31, 4 * half, 1 << 32) + second & low
    return value


_remembered_hash: Final = lru_cache(REMEMBERED_NAMES)(_hash)
