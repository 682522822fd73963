"""Situations of partitions, written as short as a table wants them."""

from cordwood.cluster.image import PartitionInfo, TopicInfo
from cordwood.cluster.states import Live
from cordwood.ids import NO_TOPIC_ID, NodeId, TopicName


def nodes(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(digit)) for digit in text)


def live(text: str) -> Live:
    """Who is there, as digits; those behind a slash are about to stop."""
    able, _, stopping = text.partition("/")
    return Live(frozenset(nodes(able + stopping)), frozenset(nodes(able)))


def topic_of(info: PartitionInfo) -> TopicInfo:
    return TopicInfo(TopicName("t"), NO_TOPIC_ID, [info])
