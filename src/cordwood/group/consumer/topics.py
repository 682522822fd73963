"""A group's topics in the cluster's metadata: do they exist, and has anything changed that matters to the group?"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final
from uuid import UUID

from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.ids import TopicName

NO_TOPICS_HASH: Final = 0


def existing(image: MetadataImage, names: Iterable[str]) -> list[TopicInfo]:
    """Those of the topics that exist, in the order of their names."""
    topics = image.topics
    return [topics[TopicName(name)] for name in sorted(name for name in names if name in topics)]


def topic_ids(image: MetadataImage, names: Iterable[str]) -> frozenset[UUID]:
    topics = image.topics
    return frozenset([topics[TopicName(name)].id for name in names if name in topics])


def metadata_hash(image: MetadataImage, names: Iterable[str]) -> int:
    """A number that changes when a topic is created, deleted, recreated, or gets partitions."""
    digest = blake2b(digest_size=8)
    topics = existing(image, names)
    for topic in topics:
        digest.update(topic.id.bytes)
        digest.update(b"%d %s\0" % (len(topic.partitions), topic.name.encode()))
    return int.from_bytes(digest.digest(), signed=True) if topics else NO_TOPICS_HASH
