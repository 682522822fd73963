"""A metadata store in memory. It survives a simulated crash: what a ``multi`` returned is durable by its contract."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from cordwood.errors import StoreConflict
from cordwood.ports import Check, Create, Delete, MetadataChange, Node, Set, StoreOp


class SimStore:
    """A ``MetadataStore`` of plain dictionaries."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def load(self) -> Iterable[Node]:
        return [self._nodes[path] for path in sorted(self._nodes)]

    def multi(self, operations: Sequence[StoreOp], /) -> MetadataChange:
        nodes = dict(self._nodes)
        written = [node for operation in operations for node in _apply(nodes, operation)]
        self._nodes = nodes
        return MetadataChange(written, [operation.path for operation in operations if isinstance(operation, Delete)])

    def purge(self) -> None:
        """Does nothing: nobody else is told of changes."""

    def close(self) -> None:
        pass


def _apply(nodes: dict[str, Node], operation: StoreOp) -> list[Node]:
    match operation:
        case Create(path, data):
            if path in nodes:
                raise StoreConflict(f"{path} exists already")
            nodes[path] = Node(path, data, 0)
            return [nodes[path]]
        case Set(path, data, expected):
            nodes[path] = Node(path, data, _expect(nodes, path, expected) + 1)
            return [nodes[path]]
        case Delete(path, expected):
            _expect(nodes, path, expected)
            for gone in [name for name in nodes if name == path or name.startswith(path + "/")]:
                del nodes[gone]
            return []
        case Check(path, expected):
            _expect(nodes, path, expected)
            return []
        case _:
            assert_never(operation)


def _expect(nodes: dict[str, Node], path: str, expected: int | None) -> int:
    node = nodes.get(path)
    if node is None:
        raise StoreConflict(f"{path} does not exist")
    if expected is not None and node.version != expected:
        raise StoreConflict(f"{path} has version {node.version}, not {expected}")
    return node.version
