"""The metadata as this broker knows it: an image of the store's nodes, and nothing else changes it.

Nodes may arrive in any order: what belongs to a topic that has not arrived yet waits for it.

Brokers only read what brokers wrote; but people can edit a shared store. A node whose content makes no sense changes
nothing: what was known of it stays, even when everything is read anew, and it must not be taken for a missing node.

Invariants (``check``): a topic's partitions are numbered without gaps; names and ids of topics map one to one; every
leader is one of its partition's in-sync replicas, or -1; the in-sync replicas are replicas.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cordwood.cluster import layout
from cordwood.cluster.layout import Assignment, DeletedTopic, Incarnation
from cordwood.cluster.topic_names import folded
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.ports import Node

NO_LEADER: Final = NodeId(-1)


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered broker: its addresses, by listener name."""

    id: NodeId
    endpoints: dict[str, tuple[str, int]]
    rack: str | None = None
    shutting_down: bool = False


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker of the cluster and where clients reach it."""

    id: NodeId
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True)
class PartitionInfo:
    """Who holds a partition, who leads it, and in which epoch."""

    index: int
    replicas: tuple[NodeId, ...]
    leader: NodeId = NO_LEADER
    leader_epoch: int = -1
    isr: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    """While it moves: the replicas that it did not have before."""
    removing: tuple[NodeId, ...] = ()
    """While it moves: the replicas that it will not have in the end."""

    @property
    def assignment(self) -> Assignment:
        return Assignment(self.replicas, self.adding, self.removing)

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(slots=True)
class TopicInfo:
    """A topic: its id, its partitions, and its own settings."""

    name: TopicName
    id: TopicId
    partitions: list[PartitionInfo]
    config: dict[str, str] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


INTERNAL_TOPICS: Final = frozenset(
    TopicName(name) for name in ("__consumer_offsets", "__transaction_state", "__share_group_state")
)


@dataclass(slots=True)
class Delta:
    """What a set of changed nodes affected, by name."""

    topics: dict[TopicName, dict[int, None] | None] = field(default_factory=dict)
    """With the partitions whose state has changed; or None: more than that has, the topic itself."""
    broker_configs: dict[str, None] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    """Paths of nodes whose content makes no sense."""
    departed: list[Registration] = field(default_factory=list)
    """The registrations of brokers that went."""
    brokers: dict[NodeId, None] = field(default_factory=dict)
    """The brokers that came, went, or changed."""
    controller: bool = False
    reloaded: bool = False
    """Everything was read anew: it is not known what has changed."""

    def partition(self, topic: TopicName, index: int) -> None:
        """A partition's state has changed."""
        states = self.topics.setdefault(topic, {})
        if states is not None:
            states[index] = None


class MetadataImage:
    """Topics, brokers and settings, looked up by name or id in O(1)."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.brokers: dict[NodeId, Registration] = {}
        self.incarnations: dict[NodeId, Incarnation] = {}
        """Of every broker that ever registered, whether it is there now or not."""
        self.controller: NodeId | None = None
        self.controller_epoch = 0
        self.topics: dict[TopicName, TopicInfo] = {}
        self.topic_names: dict[TopicId, TopicName] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.group_configs: dict[str, dict[str, str]] = {}
        self.deleted_topics: dict[TopicId, DeletedTopic] = {}
        """Topics that are gone from the metadata, while some of their files may remain."""
        self.last_producer_id = -1
        self.versions: dict[str, int] = {}
        self.damaged: dict[str, None] = {}
        """Paths of nodes that exist, but make no sense."""
        self._early_configs: dict[TopicName, dict[str, str]] = {}
        self._early_states: dict[TopicName, dict[int, tuple[NodeId, int, tuple[NodeId, ...]]]] = {}
        self._similar: dict[str, dict[TopicName, None]] = {}

    def topic_by_id(self, topic_id: TopicId) -> TopicInfo | None:
        name = self.topic_names.get(topic_id)
        return self.topics[name] if name is not None else None

    def topic(self, key: TopicName | TopicId) -> TopicInfo | None:
        return self.topics.get(key) if isinstance(key, str) else self.topic_by_id(key)

    def has_partition(self, key: TopicName | TopicId, index: int) -> bool:
        topic = self.topic(key)
        return topic is not None and 0 <= index < len(topic.partitions)

    def similar(self, name: TopicName) -> list[TopicName]:
        """The topics whose names are equal, or differ only in '.' and '_'."""
        return list(self._similar.get(folded(name), ()))

    def apply(self, changed: Iterable[Node], deleted: Iterable[str] = ()) -> Delta:
        """Take in nodes with their current content, and the paths of nodes that are gone."""
        delta = Delta()
        for path in deleted:
            self.damaged.pop(path, None)
            with suppress(ValueError):  # a name that makes no sense: nothing of it was taken in
                self._delete(path, delta)
        for node in changed:
            self.versions[node.path] = node.version
            try:
                self._set(node.path, node.data, delta)
                self.damaged.pop(node.path, None)
            except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
                self.damaged[node.path] = None
                delta.damaged.append(node.path)
        return delta

    def replace(self, nodes: Iterable[Node]) -> Delta:
        """Forget everything, and take in these nodes instead: they are all there are."""
        nodes = list(nodes)
        damaged = MetadataImage().apply(nodes).damaged
        kept = {*damaged, *map(_holder, damaged)}
        delta = self.apply(nodes, [path for path in self.versions if path not in kept])
        delta.controller = delta.reloaded = True
        return delta

    def _set(self, path: str, data: bytes, delta: Delta) -> None:
        match path.split("/")[1:]:
            case ["cluster", "id"]:
                self.cluster_id = layout.parse_cluster_id(data)
            case ["brokers", "ids", node]:
                self._set_broker(NodeId(int(node)), data)
                delta.brokers[NodeId(int(node))] = None
            case ["brokers", "incarnations", node]:
                self.incarnations[NodeId(int(node))] = layout.parse_incarnation(data)
                delta.brokers[NodeId(int(node))] = None
            case ["controller"]:
                self.controller = layout.parse_controller(data)
                delta.controller = True
            case ["controller_epoch"]:
                self.controller_epoch = int(data)
                delta.controller = True
            case ["brokers", "topics", topic]:
                self._set_topic(TopicName(topic), data)
                delta.topics[TopicName(topic)] = None
            case ["brokers", "topics", topic, "partitions", index, "state"]:
                self._set_partition(TopicName(topic), int(index), layout.parse_partition(data))
                delta.partition(TopicName(topic), int(index))
            case ["config", "topics", topic]:
                self._set_topic_config(TopicName(topic), layout.parse_config(data))
                delta.topics[TopicName(topic)] = None
            case ["config", "brokers", name]:
                self.broker_configs[name] = layout.parse_config(data)
                delta.broker_configs[name] = None
            case ["config", "groups", name]:
                self.group_configs[layout.parse_group_name(name)] = layout.parse_config(data)
            case ["admin", "deleted_topics", text]:
                self.deleted_topics[TopicId(layout.parse_uuid(text))] = layout.parse_deleted_topic(data)
            case ["latest_producer_id_block"]:
                self.last_producer_id = layout.parse_producer_ids(data)
            case _:
                pass  # A parent that holds nothing, or a node of a later version.

    def _delete(self, path: str, delta: Delta) -> None:
        self.versions.pop(path, None)
        match path.split("/")[1:]:
            case ["brokers", "ids", node]:
                gone_broker = self.brokers.pop(NodeId(int(node)), None)
                if gone_broker is not None:
                    delta.departed.append(gone_broker)
                delta.brokers[NodeId(int(node))] = None
            case ["brokers", "incarnations", node]:
                self.incarnations.pop(NodeId(int(node)), None)
                delta.brokers[NodeId(int(node))] = None
            case ["controller"]:
                self.controller = None
                delta.controller = True
            case ["brokers", "topics", topic]:
                self._delete_topic(TopicName(topic))
                delta.topics[TopicName(topic)] = None
            case ["config", "topics", topic]:
                self._set_topic_config(TopicName(topic), {})
                delta.topics[TopicName(topic)] = None
            case ["config", "brokers", name]:
                self.broker_configs.pop(name, None)
                delta.broker_configs[name] = None
            case ["config", "groups", name]:
                self.group_configs.pop(layout.parse_group_name(name), None)
            case ["admin", "deleted_topics", text]:
                self.deleted_topics.pop(TopicId(layout.parse_uuid(text)), None)
            case _:
                pass  # The cluster's id and counters are never deleted, a partition goes with its topic.

    def _delete_topic(self, name: TopicName) -> None:
        indexes = list(self._early_states.pop(name, ()))
        gone = self.topics.pop(name, None)
        if gone is not None:
            self._forget_similar(gone.name)
            del self.topic_names[gone.id]
            indexes += range(len(gone.partitions))
        for index in indexes:
            path = layout.partition_path(name, index)
            self.versions.pop(path, None)
            self.damaged.pop(path, None)

    def _set_broker(self, node: NodeId, data: bytes) -> None:
        endpoints, rack, shutting_down = layout.parse_broker(data)
        self.brokers[node] = Registration(node, endpoints, rack, shutting_down)

    def broker_epoch(self, node: NodeId) -> int:
        """The epoch that tells a broker's lives apart; -1 if it was never there."""
        return self.versions.get(layout.incarnation_path(node), -1)

    def _set_topic(self, name: TopicName, data: bytes) -> None:
        topic_id, assignment = layout.parse_topic(data)
        topic = self.topics.get(name)
        if topic is None or topic.id != topic_id:
            if topic is not None:
                del self.topic_names[topic.id]
            topic = TopicInfo(name, topic_id, [], self._early_configs.pop(name, {}))
            self.topics[name] = topic
            self.topic_names[topic_id] = name
            self._similar.setdefault(folded(name), {})[name] = None
        for index, (replicas, adding, removing) in enumerate(assignment):
            if index == len(topic.partitions):
                topic.partitions.append(PartitionInfo(index, replicas))
            partition = topic.partitions[index]
            partition.replicas, partition.adding, partition.removing = replicas, adding, removing
        for index, state in self._early_states.pop(name, {}).items():
            self._set_partition(name, index, state)

    def _forget_similar(self, name: TopicName) -> None:
        names = self._similar[folded(name)]
        del names[name]
        if not names:
            del self._similar[folded(name)]

    def _set_partition(self, name: TopicName, index: int, state: tuple[NodeId, int, tuple[NodeId, ...]]) -> None:
        topic = self.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            self._early_states.setdefault(name, {})[index] = state
            return
        partition = topic.partitions[index]
        partition.leader, partition.leader_epoch, partition.isr = state

    def _set_topic_config(self, name: TopicName, config: dict[str, str]) -> None:
        topic = self.topics.get(name)
        if topic is not None:
            topic.config = config
        elif config:
            self._early_configs[name] = config
        else:
            self._early_configs.pop(name, None)

    def check(self) -> None:
        assert {topic.id: name for name, topic in self.topics.items()} == self.topic_names
        assert sorted(name for names in self._similar.values() for name in names) == sorted(self.topics)
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                assert partition.index == index
                assert partition.leader == NO_LEADER or partition.leader in partition.isr
                assert set(partition.isr) <= set(partition.replicas)
                assert {*partition.adding, *partition.removing} <= set(partition.replicas)
                assert len(set(partition.replicas)) == len(partition.replicas)


def _holder(path: str) -> str:
    """The node whose deletion removes all that is known from the one at *path*: that node itself, or its topic's."""
    match path.split("/")[1:]:
        case ["brokers", "topics", topic, *_] | ["config", "topics", topic]:
            return layout.topic_path(TopicName(topic))
    return path
