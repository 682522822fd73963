"""Where the metadata store keeps what, and in which format.

The paths and the JSON are those of Kafka's ZooKeeper era, so that anybody who knows Kafka can read the store. Only this
module knows them; the rest of the core speaks of topics, partitions and brokers.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

from cordwood.ids import NodeId, TopicId, TopicName

CLUSTER_ID = "/cluster/id"
BROKERS = "/brokers/ids"
INCARNATIONS = "/brokers/incarnations"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
TOPICS = "/brokers/topics"
CONFIGS = "/config"
DELETED_TOPICS = "/admin/deleted_topics"
DELETIONS = "/admin/deletions"
"""A counter that every deletion of a topic increments. A node that is created again starts at version 0 again; so a
change of a partition checks this node's version, to make sure that the topic is still the one that was meant."""
PRODUCER_IDS = "/latest_producer_id_block"
DEFAULT_BROKER = "<default>"

PRODUCER_ID_BLOCK_SIZE = 1000


_encode = json.JSONEncoder(separators=(",", ":")).encode


def encode(value: object) -> bytes:
    return _encode(value).encode()


def decode(data: bytes) -> dict[str, object]:
    value = json.loads(data)
    assert isinstance(value, dict)
    return value


def broker_path(node: NodeId) -> str:
    return f"{BROKERS}/{node}"


@lru_cache(maxsize=1000)  # every fetch of a follower asks for it
def incarnation_path(node: NodeId) -> str:
    """A node that every registration writes: its version tells a broker's lives apart (the *broker epoch*)."""
    return f"{INCARNATIONS}/{node}"


def broker_data(
    endpoints: Mapping[str, tuple[str, str, int]], rack: str | None, *, shutting_down: bool = False
) -> bytes:
    """*endpoints*: by listener name, its protocol, host and port. The first is also written in the old format."""
    _, host, port = next(iter(endpoints.values()))
    value: dict[str, object] = {
        "version": 5,
        "endpoints": [f"{name}://{_bracketed(host)}:{port}" for name, (_, host, port) in endpoints.items()],
        "listener_security_protocol_map": {name: protocol for name, (protocol, _, _) in endpoints.items()},
        "host": host,
        "port": port,
        "jmx_port": -1,
    }
    if rack is not None:
        value["rack"] = rack
    if shutting_down:
        value["shutting_down"] = True
    return encode(value)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_broker(data: bytes) -> tuple[dict[str, tuple[str, int]], str | None, bool]:
    """(host and port by listener name, rack, whether it is shutting down)"""
    value = decode(data)
    endpoints, rack = value["endpoints"], value.get("rack")
    assert isinstance(endpoints, list)
    found = {}
    for text in endpoints:
        name, address = text.split("://")
        host, port = address.rsplit(":", 1)
        found[name] = (host.strip("[]"), int(port))
    return found, None if rack is None else str(rack), bool(value.get("shutting_down"))


class Incarnation(NamedTuple):
    """The data directory with which a broker last registered, and the boot of its machine at that time."""

    directory_id: UUID
    boot_id: str = ""


def incarnation_data(incarnation: Incarnation) -> bytes:
    directory_id, boot_id = incarnation
    return encode({"version": 1, "directory_id": uuid_text(directory_id), "boot_id": boot_id})


def parse_incarnation(data: bytes) -> Incarnation:
    value = decode(data)
    return Incarnation(parse_uuid(str(value["directory_id"])), str(value.get("boot_id", "")))


def controller_data(node: NodeId, wall_ms: int) -> bytes:
    return encode({"version": 1, "brokerid": node, "timestamp": str(wall_ms)})


def parse_controller(data: bytes) -> NodeId:
    node = decode(data)["brokerid"]
    assert isinstance(node, int)
    return NodeId(node)


def topic_path(topic: TopicName) -> str:
    return f"{TOPICS}/{topic}"


def partition_path(topic: TopicName, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: TopicName) -> str:
    return f"{CONFIGS}/topics/{topic}"


def broker_config_path(name: str) -> str:
    return f"{CONFIGS}/brokers/{name}"


def group_config_path(group_id: str) -> str:
    """A group's name may contain any character, but in a path a slash would begin another node."""
    return f"{CONFIGS}/groups/{quote(group_id, safe='')}"


def parse_group_name(text: str) -> str:
    return unquote(text)


def deleted_topic_path(topic_id: TopicId) -> str:
    return f"{DELETED_TOPICS}/{uuid_text(topic_id)}"


class DeletedTopic(NamedTuple):
    """A deleted topic, while these brokers may still have files of it."""

    name: TopicName
    replicas: tuple[NodeId, ...]


def deleted_topic_data(topic: DeletedTopic) -> bytes:
    return encode({"version": 2, "name": topic.name, "replicas": list(topic.replicas)})


def parse_deleted_topic(data: bytes) -> DeletedTopic:
    value = decode(data)
    name, replicas = value["name"], value.get("replicas", [])
    assert isinstance(name, str)
    assert isinstance(replicas, list)
    return DeletedTopic(TopicName(name), tuple(NodeId(node) for node in replicas))


def uuid_text(value: UUID) -> str:
    """A UUID as Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


class Assignment(NamedTuple):
    """The replicas of a partition, in the order of preference.

    While the partition moves, they include those that it had and those that it will have. *adding* are those that it
    did not have before, *removing* those that it will not have in the end. A replica that was being added, and then is
    no longer wanted, is in both.
    """

    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()


def topic_data(topic_id: TopicId, assignments: Sequence[Assignment]) -> bytes:
    return encode(
        {
            "version": 3,
            "topic_id": uuid_text(topic_id),
            "partitions": {str(index): replicas for index, (replicas, _, _) in enumerate(assignments)},
            "adding_replicas": {str(index): adding for index, (_, adding, _) in enumerate(assignments) if adding},
            "removing_replicas": {str(index): nodes for index, (_, _, nodes) in enumerate(assignments) if nodes},
        }
    )


def parse_topic(data: bytes) -> tuple[TopicId, list[Assignment]]:
    """The topic's id and the replicas of each partition, in the order of the partitions."""
    value = decode(data)
    text, partitions = value["topic_id"], value["partitions"]
    adding, removing = value["adding_replicas"], value["removing_replicas"]
    assert isinstance(text, str)
    assert isinstance(partitions, dict)
    assert isinstance(adding, dict)
    assert isinstance(removing, dict)
    return TopicId(parse_uuid(text)), [
        Assignment(tuple(partitions[index]), tuple(adding.get(index, ())), tuple(removing.get(index, ())))
        for index in map(str, range(len(partitions)))
    ]


def partition_data(*, leader: NodeId, leader_epoch: int, isr: Sequence[NodeId], controller_epoch: int) -> bytes:
    # Written without the JSON encoder: the death of a broker changes thousands of these at once.
    return (
        f'{{"version":1,"controller_epoch":{controller_epoch},"leader":{leader},"leader_epoch":{leader_epoch},'
        f'"isr":[{",".join(map(str, isr))}]}}'
    ).encode()


def parse_partition(data: bytes) -> tuple[NodeId, int, tuple[NodeId, ...]]:
    """(leader, leader epoch, in-sync replicas)"""
    value = decode(data)
    leader, epoch, isr = value["leader"], value["leader_epoch"], value["isr"]
    assert isinstance(leader, int)
    assert isinstance(epoch, int)
    assert isinstance(isr, list)
    return NodeId(leader), epoch, tuple(NodeId(node) for node in isr)


def config_data(config: Mapping[str, str]) -> bytes:
    return encode({"version": 1, "config": dict(sorted(config.items()))})


def parse_config(data: bytes) -> dict[str, str]:
    config = decode(data)["config"]
    assert isinstance(config, dict)
    return config


def cluster_id_data(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def parse_cluster_id(data: bytes) -> str:
    cluster_id = decode(data)["id"]
    assert isinstance(cluster_id, str)
    return cluster_id


def producer_ids_data(node: NodeId, first: int) -> bytes:
    last = first + PRODUCER_ID_BLOCK_SIZE - 1
    return encode({"version": 1, "broker": node, "block_start": str(first), "block_end": str(last)})


def parse_producer_ids(data: bytes) -> int:
    """The last producer id that has been given to any broker."""
    return int(str(decode(data)["block_end"]))
