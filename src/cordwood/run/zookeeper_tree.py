"""The tree of nodes in ZooKeeper: walking up, walking down, reading all of it."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from cordwood.ports import Node

from .zookeeper_client import StoredNode
from .zookeeper_feed import FEED

ZOOKEEPERS_OWN: Final = "/zookeeper"
"""Without a chroot, this node is in our tree too; what is below it is not ours."""


class Reads(Protocol):
    """The questions that ZooKeeper is asked here."""

    def read(self, paths: Sequence[str]) -> list[StoredNode | None]: ...

    def children(self, paths: Sequence[str]) -> list[list[str] | None]: ...


def parents(path: str) -> Iterator[str]:
    """The nodes above this one, from the top.

    >>> list(parents("/brokers/topics/t"))
    ['/brokers', '/brokers/topics']
    """
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def all_below(path: str, reads: Reads) -> list[str]:
    found: list[str] = []
    level = [path]
    while level:
        names = reads.children(level)
        level = [f"{parent}/{name}" for parent, below in zip(level, names, strict=True) for name in below or ()]
        found += level
    return found


def read_tree(reads: Reads) -> dict[str, Node]:
    """All nodes with data, except the feed, level by level. They are not read at the same moment."""
    nodes: dict[str, Node] = {}
    (names,) = reads.children([""])
    level = [f"/{name}" for name in names or () if f"/{name}" not in (FEED, ZOOKEEPERS_OWN)]
    while level:
        stored = dict(zip(level, reads.read(level), strict=True))
        for path, node in stored.items():
            if node is not None and node.data is not None:
                nodes[path] = Node(path, node.data, node.version)
        above = [path for path, node in stored.items() if node is not None and node.children]
        below = zip(above, reads.children(above), strict=True)
        level = [f"{path}/{name}" for path, found in below for name in found or ()]
    return nodes
